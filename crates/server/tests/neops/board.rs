//! Jobs are handed out, reported on once, and read back.

use super::{SECOND, bare, get, poll, polled, post, push, quick, ready, send, settings, submit, worker};
use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use windlass_core::{Limits, Millis};
use windlass_engine::Settings;
use windlass_server::{Options, dialects::neops::job::Type};

#[tokio::test]
async fn a_poll_hands_out_one_whole_job_and_its_result_is_read_back() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    assert_eq!(poll(&server, &id, &["other"]).await.expect(201), json!([]), "not its block");
    let jobs = polled(&server, &id).await;
    let expected = json!([{
        "functionBlockId": "fb.example/echo:1.0.0", "jobId": job.to_string(), "stepLabel": "a",
        "parameters": {"message": "hi", "count": 1},
        "context": {"devices": [], "deviceGroups": [], "interfaces": []},
        "type": "execute", "runOn": "global", "entityId": null,
    }]);
    assert_eq!(json!(jobs), expected);
    let row = &get(&server, "/blackboard/jobs/active").await[0];
    assert_eq!(
        (&row["status"], &row["resultStatus"], &row["workerName"]),
        (&json!("polled"), &Value::Null, &json!("one"))
    );
    let result = json!({"success": true, "message": "said hi", "data": {"echoed": "hi"}});
    let pushed = push(&server, &job.to_string(), "success", result.clone()).await;
    assert_eq!((pushed.status.as_u16(), pushed.body.len()), (201, 0));
    push(&server, &job.to_string(), "success", result).await.expect(409);
    let read = get(&server, &format!("/blackboard/jobs/{job}/result")).await;
    let expected = json!({"jobId": job.to_string(), "resultStatus": "success-ack", "message": "said hi",
        "data": {"echoed": "hi"}, "retryable": null});
    assert_eq!(read, expected);
    let row = &get(&server, "/blackboard/jobs?status=pushed").await[0];
    assert_eq!((&row["resultMessage"], &row["canceled"]), (&json!("said hi"), &json!(false)));
    assert_eq!(get(&server, "/blackboard/jobs/active").await, json!([]));
}

#[tokio::test]
async fn failures_of_pure_blocks_are_tried_three_more_times_unless_they_say_no() {
    let server = quick().await;
    let (id, first) = ready(&server).await;
    for tries in 0..4 {
        let jobs = polled(&server, &id).await;
        let job = jobs[0]["jobId"].as_str().unwrap().to_owned();
        push(&server, &job, "failed", json!({"success": false, "message": "no", "data": {"at": tries}}))
            .await
            .expect(201);
        assert_eq!(get(&server, &format!("/blackboard/jobs/{job}/result")).await["data"], json!({"at": tries}));
        assert_eq!(job == first.to_string(), tries == 0);
    }
    assert_eq!(polled(&server, &id).await.len(), 0);
    let final_one = submit(&server, "fb.example/echo:1", Type::Execute).await.to_string();
    assert_eq!(polled(&server, &id).await[0]["jobId"], json!(final_one));
    push(&server, &final_one, "failed", json!({"success": false, "retryable": false})).await.expect(201);
    let acquire = submit(&server, "fb.example/echo:1", Type::Acquire).await.to_string();
    assert_eq!(polled(&server, &id).await[0]["jobId"], json!(acquire));
    push(&server, &acquire, "failed", json!({"success": false})).await.expect(201);
    assert_eq!(polled(&server, &id).await.len(), 0, "acquire jobs are tried once");
}

#[tokio::test]
async fn a_stuck_job_fails_however_alive_its_worker_and_one_nobody_polls_is_canceled() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    polled(&server, &id).await;
    for _ in 0..12 {
        bare(&server, &format!("/workers/{id}/ping")).await.expect(200);
        server.pass(SECOND).await;
    }
    push(&server, &job.to_string(), "success", json!({"success": true})).await.expect(409);
    let rows = get(&server, "/blackboard/jobs").await;
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["status"]), (2, &json!("pending")), "{rows}");
    server.pass(settings().pending).await;
    let rows = get(&server, "/blackboard/jobs").await;
    assert_eq!(
        (rows.as_array().unwrap().len(), &rows[0]["canceled"]),
        (2, &json!(true)),
        "and not tried again: {rows}"
    );
    assert_eq!(rows[0]["resultStatus"], "failed-ack");
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_status() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    let unknown = "355f48a3-28e6-483f-b771-b61d305162bd";
    let ok = json!({"success": true});
    push(&server, unknown, "success", ok.clone()).await.expect(404);
    push(&server, "x", "success", ok.clone()).await.expect(400);
    push(&server, &job.to_string(), "success", ok.clone()).await.expect(409);
    let polling = |limit: Value| json!({"functionBlockIds": [], "workerId": id, "limit": limit});
    post(&server, "/blackboard/job", polling(json!(0))).await.expect(400);
    post(&server, "/blackboard/job", polling(json!("1"))).await.expect(400);
    post(&server, "/blackboard/job", json!({"functionBlockIds": []})).await.expect(400);
    polled(&server, &id).await;
    push(&server, &job.to_string(), "done", ok.clone()).await.expect(400);
    push(&server, &job.to_string(), "success", json!({"success": "true"})).await.expect(400);
    push(&server, &job.to_string(), "success", json!({"success": true, "data": [1]})).await.expect(400);
    send(&server, Method::GET, &format!("/blackboard/jobs/{unknown}/result"), None).await.expect(404);
    send(&server, Method::GET, "/blackboard/jobs/x/result", None).await.expect(400);
    send(&server, Method::GET, "/blackboard/jobs?status=lost", None).await.expect(400);
    push(&server, &job.to_string(), "success", ok).await.expect(201);
}

#[tokio::test]
async fn a_native_job_that_strays_onto_the_blackboard_is_in_nobodys_way() {
    let server = quick().await;
    server.post("/api/v1/jobs?namespace=neops", json!({"payload": {}})).await.expect(201);
    let (id, job) = ready(&server).await;
    assert_eq!(polled(&server, &id).await[0]["jobId"], json!(job.to_string()));
    assert_eq!(get(&server, "/blackboard/jobs").await.as_array().unwrap().len(), 1, "and it is not shown");
}

#[tokio::test]
async fn log_lines_are_kept_also_after_the_end() {
    let server = quick().await;
    let (id, job) = ready(&server).await;
    let line = |text: &str| {
        json!({"workflowId": "wf.x/n:1.0.0", "jobId": job.to_string(), "functionBlockId": "fb.example/echo:1.0.0",
            "logEntry": text, "logLevel": "info", "timestamp": "2026-08-13T16:19:15.123Z"})
    };
    post(&server, "/blackboard/job/log", line("early")).await.expect(409);
    polled(&server, &id).await;
    post(&server, "/blackboard/job/log", line("during")).await.expect(201);
    push(&server, &job.to_string(), "success", json!({"success": true})).await.expect(201);
    post(&server, "/blackboard/job/log", line("after")).await.expect(201);
    let log = server.get(&format!("/api/v1/jobs/{job}/logs?namespace=neops")).await;
    let text = String::from_utf8(log.body).unwrap();
    assert!(text.contains("info during") && text.contains("info after"), "{text}");
}

#[tokio::test]
async fn a_result_too_large_for_the_store_is_a_file_of_its_job() {
    let limits = Limits { payload_bytes_max: 10_000, ..Limits::default() };
    let server = Server::set(Settings { limits, ..Settings::default() }, Options::default()).await;
    let (id, job) = ready(&server).await;
    polled(&server, &id).await;
    let data = json!({"echoed": "x".repeat(20_000)});
    let sent = json!({"success": true, "message": "long", "data": data});
    push(&server, &job.to_string(), "success", sent.clone()).await.expect(201);
    assert_eq!(server.artifact_files().len(), 1);
    push(&server, &job.to_string(), "success", sent).await.expect(409);
    assert_eq!(server.artifact_files().len(), 1, "nothing is left of what was refused");
    let read = get(&server, &format!("/blackboard/jobs/{job}/result")).await;
    assert_eq!(read["data"], data);
}

#[tokio::test]
async fn pages_are_filtered_sorted_and_counted() {
    let server = quick().await;
    let (id, first) = ready(&server).await;
    let mut all = vec![first.to_string()];
    for _ in 0..4 {
        server.pass(Millis(10)).await;
        bare(&server, &format!("/workers/{id}/ping")).await.expect(200);
        all.push(submit(&server, "fb.example/echo:1", Type::Acquire).await.to_string());
    }
    polled(&server, &id).await;
    let other = worker(&server, "two").await;
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|row| row["jobId"].as_str().unwrap().to_owned()).collect()
    };
    let one = get(&server, "/blackboard/jobs/page?limit=2").await;
    assert_eq!((ids(&one), &one["total"]), (all[..2].to_vec(), &json!(5)));
    let cursor = one["nextCursor"].as_str().unwrap();
    let two = get(&server, &format!("/blackboard/jobs/page?limit=3&cursor={cursor}")).await;
    assert_eq!((ids(&two), &two["nextCursor"]), (all[2..].to_vec(), &Value::Null));
    let last = get(&server, "/blackboard/jobs/page?limit=1&sort=createdAt:desc&type=acquire").await;
    assert_eq!((ids(&last), &last["total"]), (all[4..].to_vec(), &json!(4)));
    let facets = get(&server, "/blackboard/jobs/page?limit=0&status=pending&include=facets&include=histogram").await;
    assert_eq!(facets["facets"]["status"], json!({"pending": 4, "polled": 1}));
    assert_eq!(facets["facets"]["worker"], json!([]), "{other}");
    assert_eq!(facets["histogram"]["interval"], "5m");
    for bad in ["cursor=made-up", "sort=other", "limit=201", "state=odd", "createdAfter=soon", "facetLimit=0"] {
        send(&server, Method::GET, &format!("/blackboard/jobs/page?{bad}"), None).await.expect(400);
    }
}
