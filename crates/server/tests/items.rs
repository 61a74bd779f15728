//! Items, bills of material and graphs in the native API: in every namespace, and in Silo's the same things that its protocol shows.

use crate::support::{Answer, Server};
use http::Method;
use serde_json::{Value, json};
use windlass_core::principal::Role;

async fn patch(server: &Server, path: &str, body: Value) -> Answer {
    server.send(Role::Admin, Method::PATCH, path, Some(body)).await
}

/// A path of the native API, for the items that Silo's protocol has.
fn silo(path: &str) -> String {
    in_namespace("silo", path)
}

fn in_namespace(name: &str, path: &str) -> String {
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("{path}{sign}namespace={name}")
}

fn fields<'a>(page: &'a Value, field: &str) -> Vec<&'a str> {
    page["items"].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

fn problem(answer: Answer, status: u16, code: &str) -> Value {
    let body = answer.expect(status);
    assert_eq!(body["type"], format!("/docs/errors#{code}"), "{body}");
    body
}

#[tokio::test]
async fn both_ways_lead_to_the_same_items() {
    let server = Server::start().await;
    server.post(&silo("/api/v1/projects"), json!({"code": "P1", "name": "First"})).await.expect(201);
    problem(server.post(&silo("/api/v1/projects"), json!({"code": "P1"})).await, 409, "exists");
    assert_eq!(fields(&server.get(&silo("/api/v1/projects")).await.expect(200), "code"), ["P1"]);
    let body = json!({"part_number": "A-1", "item_type": "assembly", "properties": {"mass": 2}, "projects": ["P1"]});
    let made = server.post(&silo("/api/v1/items"), body).await.expect(201);
    assert_eq!((&made["revision"], &made["schema"]), (&json!(1), &json!("default")));
    let there = server.get("/api/items/A-1").await.expect(200);
    assert_eq!((&there["id"], &there["projects"]), (&made["id"], &json!(["P1"])));
    server.post("/api/items", json!({"part_number": "B-1", "description": "A Bolt"})).await.expect(201);
    assert_eq!(server.get(&silo("/api/v1/items/B-1")).await.expect(200)["description"], "A Bolt");
    let changed =
        patch(&server, &silo("/api/v1/items/B-1"), json!({"description": "A bolt", "item_type": "screw"})).await;
    assert_eq!(changed.expect(200)["item_type"], "screw");
    assert_eq!(server.get("/api/items?item_type=screw").await.expect(200)[0]["part_number"], "B-1");
    let second = server.post(&silo("/api/v1/items/A-1/revisions"), json!({"comment": "c"})).await.expect(201);
    assert_eq!((&second["revision"], &second["comment"]), (&json!(2), &json!("c")));
    assert_eq!(server.get("/api/items/A-1/revisions/2").await.expect(200)["comment"], "c");
    assert_eq!(server.get(&silo("/api/v1/items/A-1/revisions/1")).await.expect(200)["comment"], "");
    server.delete(&silo("/api/v1/items/B-1")).await.expect(204);
    server.get("/api/items/B-1").await.expect(404);
}

#[tokio::test]
async fn refusals_say_what_and_where() {
    let server = Server::start().await;
    server.post("/api/v1/items", json!({"part_number": "A"})).await.expect(201);
    problem(server.post("/api/v1/items", json!({"part_number": "A"})).await, 409, "exists");
    for (body, field) in [
        (json!({}), "part_number"),
        (json!({"part_number": "a b"}), "part_number"),
        (json!({"part_number": "X", "item_type": "Part"}), "item_type"),
        (json!({"category": "low"}), "category"),
        (json!({"part_number": "X", "schema": ""}), "schema"),
    ] {
        let told = problem(server.post("/api/v1/items", body.clone()).await, 422, "invalid");
        assert_eq!(told["field"], field, "{body}");
    }
    problem(server.post("/api/v1/items", json!({"part_number": "X", "projects": ["NO"]})).await, 404, "not-found");
    problem(server.post("/api/v1/items", json!({"part_number": "X", "colour": "red"})).await, 400, "bad-request");
    problem(server.get("/api/v1/items/none").await, 404, "not-found");
    problem(server.get("/api/v1/items/A/revisions/2").await, 404, "not-found");
    problem(server.get("/api/v1/items?limit=0").await, 422, "invalid");
    let told = problem(server.get("/api/v1/items?namespace=a/b").await, 422, "invalid");
    assert_eq!(told["field"], "namespace");
    for kind in ["", "Pad", "a b"] {
        let body = json!({"nodes": [{"key": "n", "kind": kind}]});
        assert_eq!(problem(server.put("/api/v1/items/A/graph", body).await, 422, "invalid")["field"], "kind");
    }
    let viewer = server.send(Role::Viewer, Method::POST, "/api/v1/items", Some(json!({"part_number": "V"}))).await;
    problem(viewer, 403, "forbidden");
}

#[tokio::test]
async fn lists_come_in_pages_newest_first() {
    let server = Server::start().await;
    for n in 0..25 {
        let kind = if n % 2 == 0 { "part" } else { "assembly" };
        let body = json!({"part_number": format!("N-{n:02}"), "item_type": kind, "description": format!("no {n}")});
        server.post(&silo("/api/v1/items"), body).await.expect(201);
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = server.get(&silo(&format!("/api/v1/items?limit=10{cursor}"))).await.expect(200);
        seen.extend(fields(&page, "part_number").into_iter().map(str::to_owned));
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let expected: Vec<String> = (0..25).rev().map(|n| format!("N-{n:02}")).collect();
    assert_eq!((seen, pages), (expected, 3));
    let page = server.get(&silo("/api/v1/items?item_type=assembly&limit=3")).await.expect(200);
    assert_eq!(fields(&page, "part_number"), ["N-23", "N-21", "N-19"]);
    assert_eq!(fields(&server.get(&silo("/api/v1/items?search=NO%202")).await.expect(200), "part_number").len(), 6);
    // Silo's lists: a place and a count.
    for (query, parts, total) in [
        ("limit=2&offset=3", vec!["N-21", "N-20"], "25"),
        ("limit=2&offset=24", vec!["N-00"], "25"),
        ("limit=2&offset=99", vec![], "25"),
        ("item_type=part&limit=1&offset=12", vec!["N-00"], "13"),
        ("item_type=part&schema=default&limit=1", vec!["N-24"], "13"),
        ("search=no%201&limit=2&offset=1", vec!["N-18", "N-17"], "11"),
    ] {
        let answer = server.get(&format!("/api/items?{query}")).await;
        assert_eq!(answer.headers["x-total-count"], total, "{query}");
        let body = answer.expect(200);
        let found: Vec<&str> =
            body.as_array().unwrap().iter().map(|one| one["part_number"].as_str().unwrap()).collect();
        assert_eq!(found, parts, "{query}");
    }
    for n in 2..=12 {
        server.post(&silo("/api/v1/items/N-00/revisions"), json!({"comment": n.to_string()})).await.expect(201);
    }
    let first = server.get(&silo("/api/v1/items/N-00/revisions?limit=5")).await.expect(200);
    assert_eq!(fields(&first, "comment"), ["12", "11", "10", "9", "8"]);
    let rest = silo(&format!("/api/v1/items/N-00/revisions?limit=50&cursor={}", first["next"].as_str().unwrap()));
    let rest = server.get(&rest).await.expect(200);
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next"]), (7, &Value::Null));
    let silo = server.get("/api/items/N-00/revisions?limit=2&offset=10").await;
    assert_eq!(silo.headers["x-total-count"], "12");
    assert_eq!(silo.expect(200)[1]["revision_number"], 1);
}

#[tokio::test]
async fn what_contains_what_is_written_and_asked_for_both_ways() {
    let server = Server::start().await;
    for part in ["CAR", "AXLE", "WHEEL", "BOLT"] {
        server.post(&silo("/api/v1/items"), json!({"part_number": part})).await.expect(201);
    }
    let row = |parent: &str, child: &str| silo(&format!("/api/v1/items/{parent}/bom/rows/{child}"));
    let put = async |parent: &str, child: &str, quantity: f64| {
        server.put(&row(parent, child), json!({"quantity": quantity})).await
    };
    put("CAR", "AXLE", 2.0).await.expect(200);
    put("AXLE", "WHEEL", 2.0).await.expect(200);
    let bolts = server.put(&row("WHEEL", "BOLT"), json!({"quantity": 5, "unit": "pc"})).await.expect(200);
    assert_eq!((&bolts["unit"], &bolts["source"], &bolts["level"]), (&json!("pc"), &json!("manual"), &json!(1)));
    let again = server.put(&row("WHEEL", "BOLT"), json!({"unit": null})).await.expect(200);
    assert_eq!((again.get("unit"), &again["quantity"]), (None, &json!(5.0)), "what is absent stays, null takes away");
    let told = problem(put("BOLT", "CAR", 1.0).await, 422, "cycle");
    assert!(told["detail"].as_str().unwrap().contains("CAR"), "{told}");
    problem(put("CAR", "NONE", 1.0).await, 404, "not-found");
    problem(put("CAR", "BOLT", 0.0).await, 422, "invalid");
    let levels = server.get(&silo("/api/v1/items/CAR/bom/levels")).await.expect(200);
    assert_eq!(fields(&levels, "child"), ["AXLE", "WHEEL", "BOLT"]);
    let leaves = server.get(&silo("/api/v1/items/CAR/bom/leaves")).await.expect(200);
    assert_eq!(leaves["items"], json!([{"part_number": "BOLT", "quantity": 20.0}]));
    assert_eq!(fields(&server.get(&silo("/api/v1/items/WHEEL/where-used")).await.expect(200), "parent"), ["AXLE"]);
    assert_eq!(server.get("/api/items/CAR/bom").await.expect(200)[0]["child_part_number"], "AXLE");
    problem(server.delete(&silo("/api/v1/items/BOLT")).await, 409, "in-use");
    problem(server.get(&silo("/api/v1/items/CAR/bom/levels?depth=21")).await, 422, "invalid");
    let merge = json!({"entries": [{"child": "BOLT", "quantity": 3}, {"child": "AXLE", "quantity": 9}]});
    let merged = server.post(&silo("/api/v1/items/CAR/bom/merge"), merge).await.expect(200);
    assert_eq!(merged["added"], json!([{"part_number": "BOLT", "quantity": 3.0}]));
    assert_eq!(merged["unchanged"], json!([{"part_number": "AXLE", "quantity": 2.0}]), "written by hand");
    let page = server.get(&silo("/api/v1/items/CAR/bom?limit=1")).await.expect(200);
    assert_eq!((fields(&page, "child"), &page["next"]), (vec!["AXLE"], &json!("AXLE")));
    assert_eq!(fields(&server.get(&silo("/api/v1/items/CAR/bom?cursor=AXLE")).await.expect(200), "child"), ["BOLT"]);
    server.delete(&row("CAR", "BOLT")).await.expect(204);
    server.delete(&row("CAR", "BOLT")).await.expect(404);
}

#[tokio::test]
async fn a_graph_has_states_and_cones_that_cross_items() {
    let server = Server::start().await;
    for part in ["P", "TOP"] {
        server.post(&silo("/api/v1/items"), json!({"part_number": part})).await.expect(201);
    }
    let node = |key: &str, hash: &str| json!({"key": key, "kind": "pad", "properties_hash": hash});
    let graph = |hash: &str| {
        json!({"nodes": [node("sketch", hash), node("pad", "1"), node("free", "1")],
            "edges": [{"source": "sketch", "target": "pad"}]})
    };
    let empty = server.get(&silo("/api/v1/items/P/graph")).await.expect(200);
    assert_eq!((&empty["nodes"], &empty["revision"]), (&json!([]), &json!(1)));
    let first = server.put(&silo("/api/v1/items/P/graph"), graph("1")).await.expect(200);
    assert_eq!((&first["added"], &first["dirty"]), (&json!(["free", "pad", "sketch"]), &json!([])));
    let top = json!({"nodes": [node("mate", "1")],
        "edges": [{"item": "P", "source": "pad", "target": "mate", "kind": "constrains"}]});
    server.put(&silo("/api/v1/items/TOP/graph"), top).await.expect(200);
    let changed = server.put(&silo("/api/v1/items/P/graph"), graph("2")).await.expect(200);
    assert_eq!(changed["dirty"], json!(["pad", "sketch"]));
    assert_eq!(changed["elsewhere"], json!([{"item": "TOP", "key": "mate", "state": "dirty"}]));
    let cone = server.get(&silo("/api/v1/items/P/graph/cone?node=sketch")).await.expect(200);
    let keys: Vec<_> = cone["nodes"].as_array().unwrap().iter().map(|node| (&node["key"], &node["depth"])).collect();
    assert_eq!(keys, [(&json!("sketch"), &json!(0)), (&json!("pad"), &json!(1))]);
    assert_eq!(cone["elsewhere"], json!([{"item": "TOP", "key": "mate", "state": "dirty", "depth": 2}]));
    let back =
        server.get(&silo("/api/v1/items/TOP/graph/cone?node=mate&direction=backward&max_depth=1")).await.expect(200);
    assert_eq!(back["elsewhere"], json!([{"item": "P", "key": "pad", "state": "dirty", "depth": 1}]));
    let dirty = server.get(&silo("/api/v1/items/P/graph/dirty")).await.expect(200);
    assert_eq!((&dirty["nodes"][0]["key"], &dirty["edges"][0]["source"]), (&json!("sketch"), &json!("sketch")));
    assert_eq!(server.get("/api/items/TOP/dag/dirty").await.expect(200)["nodes"][0]["node_key"], "mate");
    let undone = server
        .put("/api/items/P/dag", json!({"partial": true, "nodes": [{"node_key": "sketch", "properties_hash": "1"}]}));
    assert_eq!(undone.await.expect(200)["dirty"], json!([]));
    assert_eq!(server.get(&silo("/api/v1/items/TOP/graph/dirty")).await.expect(200)["nodes"], json!([]));
    let marked = server.post(&silo("/api/v1/items/P/graph/dirty"), json!({"node": "pad"})).await.expect(200);
    assert_eq!(marked["dirty"], json!(["pad"]));
    let body = json!({"partial": true, "nodes": [{"key": "pad", "state": "clean"}]});
    let put = async |lease: Option<&str>| {
        let mut request = Server::request(Role::Worker, Method::PUT, &silo("/api/v1/items/P/graph"))
            .header(http::header::CONTENT_TYPE, "application/json");
        request = lease.into_iter().fold(request, |request, lease| request.header("windlass-lease", lease));
        server.call(request.body(body.to_string().into()).unwrap()).await
    };
    assert_eq!(problem(put(None).await, 422, "invalid")["field"], "Windlass-Lease");
    server.post("/api/v1/jobs?namespace=silo", json!({})).await.expect(201);
    let claimed = server.work("/api/v1/leases/claim?namespace=silo", json!({"worker": "w"})).await.expect(200);
    let lease = claimed["leases"][0]["lease"].as_str().unwrap();
    problem(put(Some(&format!("{}{}", &lease[..32], "0".repeat(32)))).await, 409, "lease-lost");
    let worker = put(Some(lease)).await.expect(200);
    server.work("/api/v1/leases/complete?namespace=silo", json!({"lease": lease})).await.expect(200);
    problem(put(Some(lease)).await, 409, "lease-lost");
    assert_eq!(worker["dirty"], json!([]));
    let whole = server.get(&silo("/api/v1/items/TOP/graph")).await.expect(200);
    assert_eq!(whole["edges"][0], json!({"item": "P", "source": "pad", "target": "mate", "kind": "constrains"}));
    problem(server.get(&silo("/api/v1/items/P/graph/cone?node=none")).await, 404, "not-found");
    problem(server.get(&silo("/api/v1/items/P/graph/dirty?state=odd")).await, 422, "invalid");
    problem(server.post(&silo("/api/v1/items/P/graph/dirty"), json!({"node": "none"})).await, 404, "not-found");
    for edges in [json!([{"source": "a", "target": "x"}]), json!([{"source": "a", "target": "a"}])] {
        let body = json!({"nodes": [node("a", "1")], "edges": edges});
        assert_eq!(problem(server.put(&silo("/api/v1/items/P/graph"), body).await, 422, "invalid")["field"], "edges");
    }
    let round = json!({"nodes": [node("pad", "1")], "edges": [{"item": "TOP", "source": "mate", "target": "pad"}]});
    problem(server.put(&silo("/api/v1/items/P/graph"), round).await, 422, "cycle");
}

#[tokio::test]
async fn every_namespace_has_its_own_items_and_only_silos_are_silos() {
    let server = Server::start().await;
    let paths = ["/api/v1/items".to_owned(), in_namespace("film", "/api/v1/items"), silo("/api/v1/items")];
    for path in &paths {
        server.post(path, json!({"part_number": "A", "description": path})).await.expect(201);
        problem(server.post(path, json!({"part_number": "A"})).await, 409, "exists");
    }
    assert_eq!(server.get("/api/v1/items/A").await.expect(200)["description"], paths[0]);
    assert_eq!(server.get("/api/items/A").await.expect(200)["description"], paths[2]);
    let film = |path: &str| in_namespace("film", path);
    // A kind is any word here; Silo's protocol has nine.
    let graph = json!({"nodes": [{"key": "seam", "kind": "weld"}]});
    server.put(&film("/api/v1/items/A/graph"), graph).await.expect(200);
    let shown = server.get(&film("/api/v1/items/A/graph")).await.expect(200);
    assert_eq!(shown["nodes"][0]["kind"], "weld");
    assert_eq!(server.get(&silo("/api/v1/items/A/graph")).await.expect(200)["nodes"], json!([]));
    let sent = json!({"nodes": [{"node_key": "seam", "node_type": "weld"}]});
    let told = server.put("/api/items/A/dag", sent).await.expect(400);
    let expected =
        "expected one of `sketch`, `pad`, `pocket`, `fillet`, `chamfer`, `constraint`, `body`, `part`, `datum`";
    assert!(told["message"].as_str().unwrap().contains(expected), "{told}");
    // A worker's lease counts in the namespace of its job.
    server.post("/api/v1/jobs?namespace=film", json!({})).await.expect(201);
    let claimed = server.work("/api/v1/leases/claim?namespace=film", json!({"worker": "w"})).await.expect(200);
    let lease = claimed["leases"][0]["lease"].as_str().unwrap();
    let put = async |path: String, body: Value| {
        let request = Server::request(Role::Worker, Method::PUT, &path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header("windlass-lease", lease);
        server.call(request.body(body.to_string().into()).unwrap()).await
    };
    let failed = json!({"partial": true, "nodes": [{"key": "seam", "state": "failed"}]});
    put(film("/api/v1/items/A/graph"), failed).await.expect(200);
    let foreign = put(silo("/api/v1/items/A/graph"), json!({"nodes": [{"key": "seam", "kind": "pad"}]})).await;
    assert!(foreign.status.is_client_error(), "{}", foreign.status);
    assert_eq!(server.get(&silo("/api/v1/items/A/graph")).await.expect(200)["nodes"], json!([]));
    server.delete(&film("/api/v1/items/A")).await.expect(204);
    server.get("/api/items/A").await.expect(200);
    problem(server.get(&film("/api/v1/items/A")).await, 404, "not-found");
}
