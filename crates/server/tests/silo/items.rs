//! Items, revisions, projects, bills of material.

use super::*;

#[tokio::test]
async fn items_are_made_numbered_found_changed_and_deleted() {
    let silo = Silo::start(&[]).await;
    silo.post("/api/projects", json!({"code": "P1", "name": "First"})).await.expect(201);
    silo.post("/api/projects", json!({"code": "P1"})).await.refused(409, "conflict");
    let made = silo.post("/api/items", json!({"part_number": "F01-0001", "projects": ["P1"]})).await.expect(201);
    let expected = [
        ("item_type", json!("part")),
        ("schema", json!("default")),
        ("category", json!(null)),
        ("description", json!("")),
        ("properties", json!({})),
        ("projects", json!(["P1"])),
        ("current_revision", json!(1)),
        ("created_by", json!(token(Role::Editor))),
    ];
    for (field, value) in expected {
        assert_eq!(made[field], value, "{field}");
    }
    assert_eq!(made.as_object().unwrap().len(), 13);
    let numbered = |body: Value| async { silo.post("/api/items", body).await.expect(201)["part_number"].clone() };
    assert_eq!(numbered(json!({"category": "F01"})).await, "F01-0002", "the first number was taken by hand");
    assert_eq!(numbered(json!({"category": "F01", "description": "A Bolt"})).await, "F01-0003");
    for (body, status) in [
        (json!({}), 400),
        (json!({"part_number": "a b"}), 400),
        (json!({"part_number": "flat"}), 400),
        (json!({"part_number": 7}), 400),
        (json!({"part_number": "X", "item_type": "Part"}), 400),
        (json!({"part_number": "X", "projects": ["NO"]}), 404),
        (json!({"part_number": "F01-0001"}), 409),
    ] {
        assert_eq!(silo.post("/api/items", body.clone()).await.status, status, "{body}");
    }
    let id = text(&made["id"]);
    assert_eq!(silo.get(&format!("/api/items/by-uuid/{id}")).await, made);
    assert_eq!(silo.get("/api/items/F01-0001").await, made);
    silo.call(&token(Role::Viewer), "GET", "/api/items/by-uuid/nonsense", Value::Null).await.refused(404, "not_found");
    assert_eq!(all(&silo.get("/api/items?search=BOLT").await, "part_number"), [&json!("F01-0003")]);
    assert_eq!(all(&silo.get("/api/items?project=P1").await, "part_number"), [&json!("F01-0001")]);
    let page = silo.call(&token(Role::Viewer), "GET", "/api/items?limit=1&offset=1", Value::Null).await;
    assert_eq!(page.headers["x-total-count"], "3");
    assert_eq!(all(&page.body, "part_number"), [&json!("F01-0002")], "newest first");
    for wrong in ["limit=0", "limit=501", "limit=x", "offset=-1"] {
        let path = format!("/api/items?{wrong}");
        silo.call(&token(Role::Viewer), "GET", &path, Value::Null).await.refused(400, "invalid_request");
    }
    let changed = silo.put("/api/items/F01-0001", json!({"description": "new", "projects": []})).await.expect(200);
    assert_eq!((&changed["description"], &changed["projects"]), (&json!("new"), &json!([])));
    assert_eq!(silo.get("/api/projects/P1/items").await, json!([]));
    silo.put("/api/items/none", json!("not even a map")).await.refused(404, "not_found");
    assert_eq!(silo.delete("/api/items/F01-0001").await.status, 204);
    silo.delete("/api/items/F01-0001").await.refused(404, "not_found");
    assert_eq!(silo.get("/api/items").await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn revisions_are_counted_and_set_off_what_matches() {
    let all_parts = "job:\n  name: a-parts\n  trigger: {type: revision_created, filter: {item_type: part}}\n  compute: {type: custom, command: c}\n";
    let per_project = "job:\n  name: b-projects\n  trigger: {type: revision_created}\n  scope: {type: project}\n  compute: {type: custom, command: c}\n";
    let silo = Silo::start(&[("a.yaml", all_parts), ("b.yaml", per_project), ("v.yaml", VALIDATE)]).await;
    for code in ["P1", "P2"] {
        silo.post("/api/projects", json!({"code": code})).await.expect(201);
    }
    silo.post("/api/items", json!({"part_number": "A", "projects": ["P1", "P2"]})).await.expect(201);
    assert_eq!(silo.get("/api/jobs").await, json!([]), "an empty shell has nothing to compute");
    let second = silo.post("/api/items/A/revisions", json!({"comment": "c", "properties": {"x": 1}})).await.expect(201);
    assert_eq!((&second["revision_number"], &second["properties"]), (&json!(2), &json!({"x": 1})));
    let names = all(&second["triggered_jobs"], "definition_name");
    assert_eq!(names, [&json!("a-parts"), &json!("b-projects"), &json!("b-projects")]);
    let third = silo.post("/api/items/A/revisions", Value::Null).await.expect(201);
    assert_eq!(third["revision_number"], 3);
    assert_eq!(all(&silo.get("/api/items/A/revisions").await, "revision_number"), [&json!(3), &json!(2), &json!(1)]);
    assert_eq!(silo.get("/api/items/A/revisions/2").await["comment"], "c");
    silo.call(&token(Role::Viewer), "GET", "/api/items/A/revisions/9", Value::Null).await.refused(404, "not_found");
    let job = silo.get(&format!("/api/jobs/{}", text(&second["triggered_jobs"][1]["id"]))).await;
    assert_eq!(
        (&job["project"], &job["part_number"], &job["trigger_type"]),
        (&json!("P1"), &json!("A"), &json!("revision_created"))
    );
    assert_eq!(
        job["scope"],
        json!({"type": "project", "part_number": null, "project": "P1", "items": [
            {"part_number": "A", "item_id": job["item_id"], "item_type": "part", "revision_number": 1, "depth": 0, "quantity": 1}
        ]})
    );
    assert_eq!(silo.delete("/api/items/A").await.status, 204);
    let jobs = silo.get("/api/jobs?status=cancelled").await;
    assert_eq!(jobs.as_array().unwrap().len(), 6, "what waited for a runner is cancelled");
    assert_eq!(jobs[0]["cancelled_by"], "system");
}

#[tokio::test]
async fn many_revisions_of_one_item_at_once_are_all_made() {
    let silo = Silo::start(&[]).await;
    silo.item("A", "part").await;
    let made = futures_util::future::join_all((0..20).map(|_| silo.post("/api/items/A/revisions", json!({})))).await;
    let mut numbers: Vec<u64> =
        made.into_iter().map(|one| one.expect(201)["revision_number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (2..=21).collect::<Vec<_>>());
}

#[tokio::test]
async fn bills_of_material_expand_merge_and_never_close_a_cycle() {
    let changed = "job:\n  name: changed\n  trigger: {type: bom_changed}\n  scope: {type: assembly}\n  compute: {type: custom, command: c}\n";
    let silo = Silo::start(&[("c.yaml", changed)]).await;
    for part in ["TOP", "SUB", "BOLT", "NUT"] {
        silo.item(part, "part").await;
    }
    let add = |parent: &'static str, child: &'static str, quantity: f64| {
        let body = json!({"child_part_number": child, "quantity": quantity});
        let silo = &silo;
        async move { silo.post(&format!("/api/items/{parent}/bom"), body).await }
    };
    let row = add("TOP", "SUB", 2.0).await.expect(201);
    assert_eq!(
        (&row["source"], &row["rel_type"], &row["quantity"]),
        (&json!("manual"), &json!("component"), &json!(2))
    );
    add("SUB", "BOLT", 4.0).await.expect(201);
    add("TOP", "BOLT", 0.5).await.expect(201);
    add("TOP", "SUB", 1.0).await.refused(409, "conflict");
    add("TOP", "NONE", 1.0).await.refused(404, "not_found");
    add("TOP", "NUT", 0.0).await.refused(400, "invalid_request");
    assert!(text(&add("BOLT", "TOP", 1.0).await.refused(409, "conflict")["message"]).contains("BOLT -> TOP -> BOLT"));
    add("TOP", "TOP", 1.0).await.refused(409, "conflict");
    assert_eq!(silo.get("/api/items/TOP/bom/flat").await, json!([{"part_number": "BOLT", "total_quantity": 8.5}]));
    let levels = silo.get("/api/items/TOP/bom/expanded").await;
    assert_eq!(all(&levels, "child_part_number"), [&json!("BOLT"), &json!("SUB"), &json!("BOLT")]);
    assert_eq!(all(&levels, "level"), [&json!(1), &json!(1), &json!(2)]);
    assert_eq!(silo.get("/api/items/TOP/bom/expanded?depth=1").await.as_array().unwrap().len(), 2);
    assert_eq!(
        all(&silo.get("/api/items/BOLT/bom/where-used").await, "parent_part_number"),
        [&json!("SUB"), &json!("TOP")]
    );
    let changed = silo.put("/api/items/TOP/bom/BOLT", json!({"quantity": 3, "unit": "pcs"})).await.expect(200);
    assert_eq!((&changed["quantity"], &changed["unit"]), (&json!(3), &json!("pcs")));
    silo.delete("/api/items/BOLT").await.refused(409, "conflict");
    let merge = |entries: Value| {
        let silo = &silo;
        async move { silo.post("/api/items/TOP/bom/merge", json!({"entries": entries, "source": "ignored"})).await }
    };
    let first =
        merge(json!([{"child_part_number": "NUT", "quantity": 2}, {"child_part_number": "SUB", "quantity": 9}])).await;
    let first = first.expect(200);
    assert_eq!(first["diff"]["added"], json!([{"part_number": "NUT", "quantity": 2}]));
    assert_eq!(
        first["diff"]["unchanged"],
        json!([{"part_number": "SUB", "quantity": 2}]),
        "people's rows are not touched"
    );
    assert_eq!(all(&first["triggered_jobs"], "definition_name"), [&json!("changed")]);
    let second = merge(json!([])).await.expect(200);
    assert_eq!(second["warnings"][0]["type"], "unreferenced");
    assert_eq!(second["diff"]["removed"], json!([{"part_number": "NUT", "quantity": 2}]));
    assert_eq!(second["resolve_url"], "/items/TOP/bom");
    assert_eq!(second["triggered_jobs"].as_array().unwrap().len(), 1, "also for a merge that changes nothing");
    merge(json!([{"child_part_number": "GHOST"}])).await.refused(400, "invalid_request");
    merge(json!([{"child_part_number": "TOP"}])).await.refused(409, "conflict");
    assert_eq!(silo.get("/api/items/TOP/bom").await.as_array().unwrap().len(), 3, "and nothing of it was applied");
    assert_eq!(silo.delete("/api/items/TOP/bom/NUT").await.status, 204);
    silo.delete("/api/items/TOP/bom/NUT").await.refused(404, "not_found");
}

#[tokio::test]
async fn of_two_rows_that_close_a_cycle_together_one_is_refused() {
    for round in 0..5 {
        let silo = Silo::start(&[]).await;
        silo.item("A", "part").await;
        silo.item("B", "part").await;
        let row = |parent: &'static str, child: &'static str| {
            let silo = &silo;
            async move { silo.post(&format!("/api/items/{parent}/bom"), json!({"child_part_number": child})).await.status }
        };
        let (one, other) = tokio::join!(row("A", "B"), row("B", "A"));
        let mut statuses = [one, other];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "round {round}");
    }
}
