//! The story Silo's users tell: a revision sets off a job, a runner does it, one sketch changes and only its cone is looked at.

use super::*;

fn graph(hash: &str) -> Value {
    json!({
        "nodes": [
            {"node_key": "Sketch001", "node_type": "sketch", "properties_hash": hash, "metadata": {"label": "Base"}},
            {"node_key": "Sketch002", "node_type": "sketch", "properties_hash": "b"},
            {"node_key": "Pad001", "node_type": "pad", "properties_hash": "c"},
            {"node_key": "Pocket001", "node_type": "pocket", "properties_hash": "d"},
            {"node_key": "Fillet001", "node_type": "fillet", "properties_hash": "e"},
        ],
        "edges": [
            {"source_key": "Sketch001", "target_key": "Pad001"},
            {"source_key": "Pad001", "target_key": "Fillet001"},
            {"source_key": "Sketch002", "target_key": "Pocket001"},
        ],
    })
}

#[tokio::test]
async fn from_a_revision_to_a_clean_graph_and_back_by_undo() {
    let silo = Silo::start(&[("assembly-validate.yaml", VALIDATE), ("part-export-step.yaml", EXPORT)]).await;
    let mut events = events::Reader::open(&silo, None).await;
    let runner = silo.runner("worker-01", &["create", "linux"]).await;
    silo.call(&runner, "POST", "/api/runner/heartbeat", Value::Null).await.expect(200);

    silo.item("ASM-001", "assembly").await;
    silo.item("PRT-100", "part").await;
    silo.post("/api/items/ASM-001/bom", json!({"child_part_number": "PRT-100", "quantity": 4})).await.expect(201);
    let made = silo.post("/api/items/ASM-001/revisions", json!({"comment": "first"})).await.expect(201);
    assert_eq!(made["triggered_jobs"][0]["definition_name"], "assembly-validate");
    let job = text(&made["triggered_jobs"][0]["id"]);

    let claimed = silo.claim(&runner).await.expect("the job that was set off");
    assert_eq!(claimed["job"]["id"], json!(job));
    assert_eq!(claimed["definition"]["compute"]["command"], "create-validate");
    assert_eq!(all(&claimed["job"]["scope"]["items"], "part_number"), [&json!("ASM-001"), &json!("PRT-100")]);
    assert_eq!(all(&claimed["job"]["scope"]["items"], "quantity"), [&json!(1), &json!(4)]);
    silo.report(&runner, &job, "progress", json!({"progress": 45, "message": "Rebuilding"})).await.expect(200);
    silo.report(&runner, &job, "log", json!({"message": "opened", "metadata": {"ms": 3}})).await.expect(201);
    let synced = silo.report(&runner, &job, "dag", graph("a")).await.expect(200);
    assert_eq!((&synced["revision_number"], &synced["dirty"]), (&json!(2), &json!([])));
    let done = silo.report(&runner, &job, "complete", json!({"result": {"summary": "all well"}})).await.expect(200);
    assert_eq!((&done["status"], &done["progress"]), (&json!("completed"), &json!(100)));

    // One sketch changes: its cone is dirty, and nothing beside it.
    let changed = silo.put("/api/items/ASM-001/dag", graph("a2")).await.expect(200);
    assert_eq!(changed["changed"], json!(["Sketch001"]));
    assert_eq!(changed["dirty"], json!(["Fillet001", "Pad001", "Sketch001"]));
    let job = silo.job("assembly-validate", "ASM-001").await;
    let claimed = silo.claim(&runner).await.unwrap();
    assert_eq!(claimed["job"]["id"], json!(job));
    let order: Vec<&Value> = all(&claimed["dirty"]["nodes"], "node_key");
    assert_eq!(order, [&json!("Sketch001"), &json!("Pad001"), &json!("Fillet001")], "exactly that, sources first");
    let results: Vec<Value> = order.iter().map(|key| json!({"node_key": key, "validation_state": "clean"})).collect();
    let synced = silo.report(&runner, &job, "dag", json!({"partial": true, "nodes": results})).await.expect(200);
    assert_eq!(synced["dirty"], json!([]));
    silo.report(&runner, &job, "complete", json!({})).await.expect(200);

    // Undone before anybody computes anything: clean, and no job.
    let changed = silo.put("/api/items/ASM-001/dag", graph("a3")).await.expect(200);
    assert_eq!(changed["dirty"].as_array().unwrap().len(), 3);
    let undone = silo.put("/api/items/ASM-001/dag", graph("a2")).await.expect(200);
    assert_eq!((&undone["dirty"], undone["released"].as_array().unwrap().len()), (&json!([]), 3));
    assert!(silo.claim(&runner).await.is_none());
    assert_eq!(silo.get("/api/jobs").await.as_array().unwrap().len(), 2);

    let heard = events.until("dag.updated", 4).await;
    let names: Vec<&str> = heard.iter().map(|(_, name, _)| name.as_str()).collect();
    let expected = [
        "runner.online",
        "item.created",
        "item.created",
        "revision.created",
        "job.created",
        "job.claimed",
        "job.progress",
        "dag.updated",
        "job.completed",
        "dag.updated",
        "job.created",
        "job.claimed",
        "dag.updated",
        "job.completed",
        "dag.updated",
        "dag.updated",
    ];
    assert_eq!(names[..], expected[..names.len()], "and so on: {names:?}");
    assert!(heard.windows(2).all(|pair| pair[0].0 < pair[1].0), "numbers grow");
}
