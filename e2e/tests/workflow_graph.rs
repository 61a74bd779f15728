//! workflow-graph's own worker, unmodified, against the real server.

use serde_json::json;
use std::time::Duration;
use windlass_e2e::{GraphCalls, GraphWorker, Server, job};

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_runs_a_diamond_with_labels_retries_and_logs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let graph = GraphCalls(server.admin());
    let _worker = GraphWorker::stock(&server.url, "docker,linux");
    let mut labelled = job("left", "echo left", &["top"]);
    labelled["required_labels"] = json!(["docker"]);
    let flag = folder.path().join("flag");
    let mut flaky = job("right", &format!("test -e {0} || {{ touch {0}; exit 3; }}", flag.display()), &["top"]);
    flaky["max_retries"] = json!(1);
    let top = job("top", "echo one; echo two", &[]);
    let id = graph.start(&[top, labelled, flaky, job("end", "true", &["left", "right"])]).await;
    graph.become_so(&id, &["success"; 4]).await;
    assert_eq!(graph.jobs(&id).await[2]["attempt"], 1, "the retry of a job that is no root counts");
    assert_eq!(graph.log(&id, "top").await, "one\ntwo\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn log_chunks_come_back_as_they_were_sent_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let graph = GraphCalls(server.admin());
    let id = graph.start(&[job("a", "true", &[])]).await;
    let claim = json!({"worker_id": "w", "labels": [], "lease_ttl_secs": 600});
    let worker = GraphCalls(server.client(&server.worker_token().await));
    let claimed = worker.call("POST", "/api/jobs/claim", Some(claim)).await;
    let path = format!("/api/jobs/{}/logs", claimed["lease"]["lease_id"].as_str().unwrap());
    let streams = ["stdout", "stderr"];
    let chunk = |at: usize| json!({"workflow_id": id, "job_id": "a", "sequence": at * 3 % 7, "data": "x\ny".repeat(at % 5 * 20), "timestamp_ms": 1_000 - at % 9, "stream": streams[at % 2]});
    let sent: Vec<_> = (0..10_000).map(chunk).collect();
    worker.call("POST", &path, Some(json!({"chunks": sent}))).await;
    let end = path.replace("/logs", "/complete");
    worker.call("POST", &end, Some(json!({"outputs": {}}))).await;
    server.kill();
    server.restart().await;
    let graph = GraphCalls(server.admin());
    let kept = graph.call("GET", &format!("/api/workflows/{id}/jobs/a/logs"), None).await;
    assert!(*kept.as_array().unwrap() == sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_notices_cancellation_and_failure_skips() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let graph = GraphCalls(server.admin());
    let _worker = GraphWorker::stock(&server.url, "");
    let id = graph.start(&[job("long", "sleep 60", &[]), job("after", "true", &["long"])]).await;
    graph.become_so(&id, &["running", "queued"]).await;
    graph.cancel(&id).await;
    graph.become_so(&id, &["cancelled", "cancelled"]).await;
    // The worker is free again once it has noticed, and what it then reports changes nothing.
    let bad = [job("bad", "exit 3", &[]), job("after", "true", &["bad"]), job("other", "true", &[])];
    let bad = graph.start(&bad).await;
    graph.become_so(&bad, &["failure", "skipped", "success"]).await;
    assert_eq!(graph.statuses(&id).await, ["cancelled", "cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_uses_up_a_budget_skips_all_that_follows_and_takes_only_what_it_offers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let graph = GraphCalls(server.admin());
    let _worker = GraphWorker::stock(&server.url, "linux");
    let runs = folder.path().join("runs");
    let mut bad = job("bad", &format!("echo x >> {}; echo no luck; sleep 0.1; exit 7", runs.display()), &[]);
    bad["max_retries"] = json!(2);
    let (next, last) = (job("next", "true", &["bad", "fine"]), job("last", "true", &["next"]));
    let mut gpu = job("gpu", "true", &["fine"]);
    gpu["required_labels"] = json!(["gpu", "linux"]);
    let id = graph.start(&[bad, job("fine", "true", &[]), next, last, gpu]).await;
    graph.become_so(&id, &["failure", "success", "skipped", "skipped", "queued"]).await;
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "x\nx\nx\n", "one execution and two retries");
    let shown = graph.jobs(&id).await;
    assert_eq!((&shown[0]["output"], &shown[0]["attempt"]), (&json!("exit code 7: no luck\n"), &json!(2)));
    assert_eq!(shown[2]["output"], json!(null), "a skipped job has no error of its own");
    let _second = GraphWorker::stock(&server.url, "gpu,linux");
    graph.become_so(&id, &["failure", "success", "skipped", "skipped", "success"]).await;
    // A new run starts from the beginning.
    graph.run(&id).await;
    graph.become_so(&id, &["failure", "success", "skipped", "skipped", "success"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_needs_nothing_but_an_address_to_say_who_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let (graph, token) = (GraphCalls(server.admin()), server.worker_token().await);
    let host = server.url.strip_prefix("http://").unwrap();
    let id = graph.start(&[job("a", "true", &[])]).await;
    {
        // 401 is safe: it goes on asking, and gets nothing.
        let _wrong = [
            GraphWorker::stock(&format!("http://worker:wrong@{host}"), ""),
            GraphWorker::stock(&format!("http://{host}/~wrong"), ""),
        ];
        tokio::time::sleep(Duration::from_secs(3)).await; // Several of their polls.
        assert_eq!(graph.statuses(&id).await, ["queued"]);
    }
    // As a password, as a prefix, and without any on this machine, also where the address ends in a slash.
    for address in [
        format!("http://worker:{token}@{host}"),
        format!("http://{host}/~{token}"),
        format!("http://{host}/~{token}/"),
        format!("http://{host}/"),
    ] {
        let _worker = GraphWorker::stock(&address, "");
        graph.run(&id).await;
        // All of its calls: it polls for cancellation after two seconds, and sends logs.
        let slow = graph.start(&[job("slow", "echo begun; sleep 2.5; echo done", &[])]).await;
        graph.become_so(&id, &["success"]).await;
        graph.become_so(&slow, &["success"]).await;
        assert_eq!(graph.log(&slow, "slow").await, "begun\ndone\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_worker_survives_a_killed_server_in_the_middle_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let graph = GraphCalls(server.admin());
    let _worker = GraphWorker::stock(&server.url, "");
    let marks = folder.path().join("marks");
    let mark = |name: &str| format!("echo {name} >> {}", marks.display());
    let long = format!("{}; sleep 4", mark("long"));
    let jobs =
        [job("first", &mark("first"), &[]), job("long", &long, &["first"]), job("last", &mark("last"), &["long"])];
    let id = graph.start(&jobs).await;
    graph.become_so(&id, &["success", "running", "queued"]).await;
    server.kill();
    server.restart().await;
    assert_eq!(graph.statuses(&id).await, ["success", "running", "queued"], "a restart forgets nothing");
    graph.become_so(&id, &["success"; 3]).await;
    assert_eq!(std::fs::read_to_string(marks).unwrap(), "first\nlong\nlast\n", "each ran once");
}
