//! The dependency graph.

use super::*;

fn nodes(keys: &[(&str, &str)]) -> Vec<Value> {
    keys.iter().map(|(key, hash)| json!({"node_key": key, "node_type": "pad", "properties_hash": hash})).collect()
}

fn edges(list: &[(&str, &str)]) -> Vec<Value> {
    list.iter().map(|(source, target)| json!({"source_key": source, "target_key": target})).collect()
}

fn cross(list: &[(&str, &str, &str)]) -> Vec<Value> {
    let one = |(part, source, target): &(&str, &str, &str)| json!({"source_part_number": part, "source_key": source, "target_key": target, "edge_type": "constrains"});
    list.iter().map(one).collect()
}

#[tokio::test]
async fn a_graph_is_written_read_and_asked_for_its_cones() {
    let silo = Silo::start(&[]).await;
    let item = silo.item("P", "part").await;
    let empty = silo.get("/api/items/P/dag").await;
    assert_eq!((&empty["nodes"], &empty["revision_number"]), (&json!([]), &json!(1)));
    let body = json!({"nodes": nodes(&[("c", "1"), ("a", "1"), ("b", "1"), ("z", "1")]), "edges": edges(&[("a", "b"), ("b", "c"), ("a", "b")])});
    let synced = silo.put("/api/items/P/dag", body.clone()).await.expect(200);
    assert_eq!(
        synced,
        json!({"synced": true, "item_id": item["id"], "part_number": "P", "revision_number": 1, "node_count": 4, "edge_count": 2,
            "added": ["a", "b", "c", "z"], "changed": [], "removed": [], "dirty": [], "released": [], "cross_dirty": []})
    );
    let before = silo.get("/api/items/P/dag").await;
    assert_eq!(all(&before["nodes"], "node_key"), [&json!("a"), &json!("b"), &json!("c"), &json!("z")]);
    assert_eq!(before["nodes"][0].as_object().unwrap().len(), 10);
    silo.put("/api/items/P/dag", body).await.expect(200);
    assert_eq!(silo.get("/api/items/P/dag").await, before, "the same again changes nothing");
    let cone = silo.get("/api/items/P/dag/forward-cone/a").await;
    assert_eq!((&cone["keys"], &cone["direction"]), (&json!(["a", "b", "c"]), &json!("forward")));
    assert_eq!(all(&cone["nodes"], "depth"), [&json!(0), &json!(1), &json!(2)]);
    assert_eq!(silo.get("/api/items/P/dag/forward-cone/a?max_depth=1").await["keys"], json!(["a", "b"]));
    assert_eq!(silo.get("/api/items/P/dag/backward-cone/c").await["keys"], json!(["c", "b", "a"]));
    let marked = silo.post("/api/items/P/dag/mark-dirty/b", json!({})).await.expect(200);
    assert_eq!(marked, json!({"marked": "b", "dirty": ["b", "c"], "dirty_count": 2, "cross_dirty": []}));
    let dirty = silo.get("/api/items/P/dag/dirty").await;
    assert_eq!(
        (all(&dirty["nodes"], "node_key"), dirty["edges"].as_array().unwrap().len()),
        (vec![&json!("b"), &json!("c")], 1)
    );
    assert_eq!(silo.get("/api/items/P/dag/dirty?state=clean").await["nodes"].as_array().unwrap().len(), 2);
    let after = silo.get("/api/items/P/dag").await;
    assert_eq!(after["nodes"][0], before["nodes"][0], "what is not in the cone is not touched");
    let partial = json!({"partial": true, "nodes": [{"node_key": "b", "validation_state": "failed", "validation_message": "no face"}]});
    silo.put("/api/items/P/dag", partial).await.expect(200);
    assert_eq!(silo.get("/api/items/P/dag").await["nodes"][1]["validation_message"], "no face");
    let compare = silo.get("/api/items/P/dag/compare?a=c&b=z").await;
    assert_eq!(compare, json!({"shared_upstream": [], "shared_downstream": [], "auto_merge_safe": true}));
    assert_eq!(silo.get("/api/items/P/dag/compare?a=a&b=c").await["auto_merge_safe"], false);
    let viewer = token(Role::Viewer);
    for missing in ["/api/items/P/dag/forward-cone/x", "/api/items/Q/dag", "/api/items/P/dag?revision=7"] {
        silo.call(&viewer, "GET", missing, Value::Null).await.refused(404, "not_found");
    }
    silo.call(&viewer, "GET", "/api/items/P/dag/dirty?state=odd", Value::Null).await.refused(400, "invalid_request");
}

#[tokio::test]
async fn a_new_revision_starts_from_the_last_graph() {
    let silo = Silo::start(&[]).await;
    silo.item("P", "part").await;
    let body = |hash: &str| json!({"nodes": nodes(&[("a", hash), ("b", "1")]), "edges": edges(&[("a", "b")])});
    silo.put("/api/items/P/dag", body("1")).await.expect(200);
    silo.post("/api/items/P/revisions", json!({})).await.expect(201);
    let second = silo.put("/api/items/P/dag", body("2")).await.expect(200);
    assert_eq!((&second["revision_number"], &second["dirty"]), (&json!(2), &json!(["a", "b"])));
    assert_eq!(silo.get("/api/items/P/dag").await["revision_number"], 2);
    let first = silo.get("/api/items/P/dag?revision=1").await;
    assert_eq!(all(&first["nodes"], "validation_state"), [&json!("clean"), &json!("clean")]);
    let mut third = body("1");
    third["revision_number"] = json!(3);
    silo.put("/api/items/P/dag", third).await.refused(404, "not_found");
}

#[tokio::test]
async fn what_is_no_graph_is_refused_and_nothing_of_it_is_stored() {
    let silo = Silo::start(&[]).await;
    silo.item("P", "part").await;
    let two = || nodes(&[("a", "1"), ("b", "1")]);
    let many: Vec<Value> = (0..10_001).map(|n| json!({"node_key": format!("n{n}"), "node_type": "pad"})).collect();
    for (body, status) in [
        (json!({}), 400),
        (json!({"nodes": [{"node_key": "a"}]}), 400),
        (json!({"nodes": [{"node_key": "a", "node_type": "cube"}]}), 400),
        (json!({"nodes": nodes(&[("a", "1"), ("a", "2")])}), 400),
        (json!({"nodes": two(), "edges": edges(&[("a", "x")])}), 400),
        (json!({"nodes": two(), "edges": edges(&[("a", "a")])}), 400),
        (json!({"nodes": two(), "edges": edges(&[("a", "b"), ("b", "a")])}), 400),
        (json!({"nodes": two(), "cross_edges": cross(&[("NONE", "a", "b")])}), 404),
        (json!({"nodes": two(), "partial": true}), 404),
        (json!({"nodes": many}), 400),
    ] {
        let answer = silo.put("/api/items/P/dag", body.clone()).await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    let cycle = json!({"nodes": two(), "edges": edges(&[("a", "b"), ("b", "a")])});
    assert!(text(&silo.put("/api/items/P/dag", cycle).await.body["message"]).contains("a -> b -> a"));
    assert_eq!(silo.get("/api/items/P/dag").await["nodes"], json!([]));
    let runner = silo.runner("r", &[]).await;
    let body = json!({"nodes": two(), "edges": edges(&[("a", "b")])});
    silo.call(&runner, "PUT", "/api/items/P/dag", body).await.expect(200);
    silo.call(&token(Role::Viewer), "PUT", "/api/items/P/dag", json!({"nodes": []})).await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_change_reaches_other_items_and_comes_back_by_undo() {
    let silo = Silo::start(&[]).await;
    for part in ["PART", "SUB", "TOP"] {
        silo.item(part, "assembly").await;
    }
    let part = |hash: &str| json!({"nodes": nodes(&[("sketch", hash), ("pad", "1"), ("other", "1")]), "edges": edges(&[("sketch", "pad")])});
    let sub =
        json!({"nodes": nodes(&[("face", "1"), ("free", "1")]), "cross_edges": cross(&[("PART", "pad", "face")])});
    // Before its source has a graph: kept, and taken as present and constant.
    let early = silo.put("/api/items/SUB/dag", sub).await.expect(200);
    assert_eq!(early["dirty"], json!([]));
    let first = silo.put("/api/items/PART/dag", part("1")).await.expect(200);
    assert_eq!(first["cross_dirty"], json!([{"part_number": "SUB", "node_key": "face"}]), "it is no longer missing");
    silo.put(
        "/api/items/SUB/dag",
        json!({"partial": true, "nodes": [{"node_key": "face", "validation_state": "clean"}]}),
    )
    .await
    .expect(200);
    let top = json!({"nodes": nodes(&[("mate", "1")]), "cross_edges": cross(&[("SUB", "face", "mate")])});
    silo.put("/api/items/TOP/dag", top).await.expect(200);

    let changed = silo.put("/api/items/PART/dag", part("2")).await.expect(200);
    assert_eq!(
        changed["cross_dirty"],
        json!([{"part_number": "SUB", "node_key": "face"}, {"part_number": "TOP", "node_key": "mate"}])
    );
    let state = async |item: &str| {
        let graph = silo.get(&format!("/api/items/{item}/dag")).await;
        all(&graph["nodes"], "validation_state").into_iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(
        (state("SUB").await, state("TOP").await),
        (vec!["dirty".to_owned(), "clean".into()], vec!["dirty".to_owned()])
    );
    let cone = silo.get("/api/items/PART/dag/forward-cone/sketch").await;
    let far: Vec<_> = cone["cross_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| (text(&n["part_number"]), n["depth"].as_u64().unwrap()))
        .collect();
    assert_eq!(far, [("SUB".to_owned(), 2), ("TOP".to_owned(), 3)]);
    let back = silo.get("/api/items/TOP/dag/backward-cone/mate").await;
    assert_eq!(back["cross_nodes"].as_array().unwrap().len(), 3);
    let undone = silo.put("/api/items/PART/dag", part("1")).await.expect(200);
    assert_eq!(undone["cross_dirty"], json!([]));
    assert_eq!((state("SUB").await, state("TOP").await), (vec!["clean".to_owned(); 2], vec!["clean".to_owned()]));

    let round = json!({"nodes": nodes(&[("sketch", "1"), ("pad", "1")]), "edges": edges(&[("sketch", "pad")]),
        "cross_edges": cross(&[("TOP", "mate", "sketch")])});
    let refused = silo.put("/api/items/PART/dag", round).await.refused(409, "conflict");
    assert!(text(&refused["message"]).contains("cycle"));
    assert_eq!(silo.delete("/api/items/PART").await.status, 204);
    assert_eq!(state("TOP").await, ["dirty"], "what it was made from is gone");
}

#[tokio::test]
async fn many_writers_of_graphs_that_see_each_other_leave_what_one_after_the_other_would() {
    let silo = Silo::start(&[]).await;
    for part in ["A", "B"] {
        silo.item(part, "part").await;
    }
    silo.put("/api/items/A/dag", json!({"nodes": nodes(&[("x", "0")])})).await.expect(200);
    silo.put("/api/items/B/dag", json!({"nodes": nodes(&[("y", "0")]), "cross_edges": cross(&[("A", "x", "y")])}))
        .await
        .expect(200);
    let write_a = |n: usize| {
        let silo = &silo;
        async move { silo.put("/api/items/A/dag", json!({"nodes": nodes(&[("x", &n.to_string())])})).await.expect(200) }
    };
    let touch_b = |n: usize| {
        let silo = &silo;
        let body = json!({"partial": true, "nodes": [{"node_key": "y", "metadata": {"n": n}}]});
        async move { silo.put("/api/items/B/dag", body).await.expect(200) }
    };
    futures_util::join!(
        futures_util::future::join_all((1..=8).map(write_a)),
        futures_util::future::join_all((1..=8).map(touch_b)),
    );
    write_a(0).await;
    let graph = silo.get("/api/items/B/dag").await;
    assert_eq!(graph["nodes"][0]["validation_state"], "clean", "the source is what it was");
}

#[tokio::test]
async fn ten_thousand_nodes_are_one_call() {
    let silo = Silo::start(&[]).await;
    silo.item("BIG", "part").await;
    let list: Vec<Value> = (0..10_000)
        .map(|n| json!({"node_key": format!("n{n:05}"), "node_type": "pad", "properties_hash": "h"}))
        .collect();
    let links: Vec<Value> = (100..10_000)
        .map(|n| json!({"source_key": format!("n{:05}", n - 100), "target_key": format!("n{n:05}")}))
        .collect();
    let synced = silo.put("/api/items/BIG/dag", json!({"nodes": list, "edges": links})).await.expect(200);
    assert_eq!((&synced["node_count"], &synced["dirty"]), (&json!(10_000), &json!([])));
    let marked = silo.post("/api/items/BIG/dag/mark-dirty/n00007", json!({})).await.expect(200);
    assert_eq!(marked["dirty_count"], 100);
}
