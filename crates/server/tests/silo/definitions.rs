//! The folder of definitions, and calendars.

use super::*;
use windlass_core::Millis;
use windlass_server::dialects::silo::schedule;

async fn reload(silo: &Silo) -> Value {
    silo.admin("POST", "/api/job-definitions/reload", json!({})).await.expect(200)
}

#[tokio::test]
async fn each_file_stands_alone_and_what_was_good_stays() {
    let silo = Silo::start(&[("a.yaml", &manual("a", "")), ("b.yml", &manual("b", "  priority: 7\n"))]).await;
    silo.write(".hidden.yaml", &manual("hidden", ""));
    silo.write("notes.txt", "nothing");
    let report = reload(&silo).await;
    assert_eq!((&report["loaded"], &report["unchanged"]), (&json!(2), &json!(["a", "b"])));
    let before = silo.get("/api/job-definitions/b").await;
    assert_eq!((&before["priority"], &before["source_file"]), (&json!(7), &json!("b.yml")));
    assert_eq!((&before["trigger"]["filter"], &before["next_run_at"]), (&json!({}), &json!(null)));

    silo.write("b.yml", "job:\n  name: b\n  trigger:\n    type: sometimes\n  compute: {type: custom, command: c}\n");
    silo.write("c.yaml", &manual("a", ""));
    silo.write("d.yaml", &manual("d", ""));
    let report = reload(&silo).await;
    assert_eq!((&report["definitions"], &report["added"]), (&json!(["a", "b", "d"]), &json!(["d"])));
    let errors = report["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2);
    assert_eq!(
        (&errors[0]["file"], &errors[0]["line"], &errors[0]["column"]),
        (&json!("b.yml"), &json!(4), &json!(11))
    );
    assert_eq!(errors[0]["field"], "trigger.type");
    assert_eq!(
        (&errors[1]["file"], &errors[1]["line"], &errors[1]["field"]),
        (&json!("c.yaml"), &json!(2), &json!("name"))
    );
    assert_eq!(silo.get("/api/job-definitions/b").await, before, "its last good version is in force");
    assert_eq!(silo.get("/ready").await["jobdef_errors"], 2);

    silo.item("P", "part").await;
    let job = silo.job("d", "P").await;
    std::fs::remove_file(silo.folder.path().join("d.yaml")).unwrap();
    silo.write("b.yml", &manual("b", "  priority: 8\n"));
    let report = reload(&silo).await;
    assert_eq!((&report["removed"], &report["updated"]), (&json!(["d"]), &json!(["b"])));
    silo.call(&token(Role::Viewer), "GET", "/api/job-definitions/d", Value::Null).await.refused(404, "not_found");
    silo.post("/api/jobs", json!({"definition_name": "d", "part_number": "P"})).await.refused(404, "not_found");
    let runner = silo.runner("r", &[]).await;
    let claimed = silo.claim(&runner).await.unwrap();
    assert_eq!((&claimed["job"]["id"], &claimed["definition"]["name"]), (&json!(job), &json!("d")), "its jobs stay");
    assert_eq!(silo.get("/api/job-definitions/b").await["id"], before["id"], "the same over reloads");
    assert_eq!(all(&silo.get("/api/job-definitions").await, "name"), [&json!("a"), &json!("b")]);
    std::fs::remove_dir_all(silo.folder.path()).unwrap();
    silo.admin("POST", "/api/job-definitions/reload", json!({})).await.refused(500, "internal");
    assert_eq!(silo.get("/api/job-definitions").await.as_array().unwrap().len(), 2, "nothing changed");
    std::fs::create_dir_all(silo.folder.path()).unwrap();
}

#[tokio::test]
async fn a_schedule_without_cron_fires_only_by_hand_and_the_list_says_so() {
    let body = "job:\n  name: planned\n  trigger: {type: schedule}\n  compute: {type: custom, command: c}\n";
    let silo = Silo::start(&[("p.yaml", body), ("m.yaml", &manual("m", ""))]).await;
    silo.item("P", "part").await;
    let listed = silo.get("/api/job-definitions").await;
    let planned = listed.as_array().unwrap().iter().find(|one| one["name"] == "planned").unwrap();
    assert_eq!((&planned["trigger"]["cron"], &planned["next_run_at"]), (&Value::Null, &Value::Null));
    assert!(planned["note"].as_str().unwrap().contains("no cron"), "{planned}");
    assert!(silo.get("/api/job-definitions/m").await["note"].is_null());
    silo.listening.server.pass(Millis(90_000_000)).await;
    schedule::tick(silo.app()).await.map_err(|error| error.message).unwrap();
    assert!(silo.get("/api/jobs").await.as_array().unwrap().is_empty());
    silo.job("planned", "P").await;
    assert_eq!(silo.get("/api/jobs").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn tags_are_told_in_the_order_in_which_they_were_given() {
    let body = "job:\n  name: d\n  trigger: {type: manual}\n  compute: {type: custom, command: c}\n  runner: {tags: [z, a, m]}\n";
    let silo = Silo::start(&[("d.yaml", body)]).await;
    silo.item("P", "part").await;
    let given = json!({"name": "r", "tags": ["z", "m", "a", "z", "b"]});
    let made = silo.admin("POST", "/api/runners", given).await.expect(201);
    let (order, runner) = (json!(["z", "m", "a", "b"]), made["token"].as_str().unwrap());
    assert_eq!(made["tags"], order);
    assert_eq!(silo.call(runner, "POST", "/api/runner/heartbeat", Value::Null).await.expect(200)["tags"], order);
    let id = silo.job("d", "P").await;
    let tags = json!(["z", "a", "m"]);
    assert_eq!(silo.get(&format!("/api/jobs/{id}")).await["runner_tags"], tags);
    assert_eq!(silo.claim(runner).await.unwrap()["job"]["runner_tags"], tags);
}

#[tokio::test]
async fn a_calendar_makes_a_job_per_item_unless_the_last_one_is_open() {
    let every_second = "job:\n  name: tick\n  trigger: {type: schedule, cron: '* * * * * *', filter: {item_type: assembly}}\n  compute: {type: custom, command: c}\n";
    let never = "job:\n  name: never\n  trigger: {type: schedule, cron: '0 0 1 1 *'}\n  scope: {type: project, project: NONE}\n  compute: {type: custom, command: c}\n";
    let silo = Silo::start(&[("t.yaml", every_second), ("n.yaml", never)]).await;
    for (part, kind) in [("A1", "assembly"), ("A2", "assembly"), ("P1", "part")] {
        silo.item(part, kind).await;
    }
    assert!(silo.get("/api/job-definitions/never").await["next_run_at"].is_string());
    schedule::tick(silo.app()).await.map_err(|error| error.message).unwrap();
    silo.listening.server.pass(Millis(1_100)).await;
    schedule::tick(silo.app()).await.map_err(|error| error.message).unwrap();
    let jobs = silo.get("/api/jobs").await;
    let mut parts: Vec<String> = all(&jobs, "part_number").into_iter().map(text).collect();
    parts.sort();
    assert_eq!(parts, ["A1", "A2"]);
    assert_eq!((&jobs[0]["trigger_type"], &jobs[0]["created_by"]), (&json!("schedule"), &json!("schedule")));
    silo.listening.server.pass(Millis(1_100)).await;
    schedule::tick(silo.app()).await.map_err(|error| error.message).unwrap();
    assert_eq!(silo.get("/api/jobs").await.as_array().unwrap().len(), 2, "both are still waiting");
}
