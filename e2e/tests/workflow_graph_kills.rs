//! Two of workflow-graph's own workers at work on many workflows while the server is killed again and again: every job
//! succeeds exactly once, dependents always start, and never before what they depend on.
//!
//! The stock worker says every result once. What it says while there is no server is lost, so its job is run again when the
//! lease has run out, thirty seconds later: that costs an execution, never a second success. The short form kills while
//! jobs sleep, so that it need not wait for that; `scripts/test --long` kills anywhere.

use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_e2e::{GraphCalls, GraphWorker, Server, events_so_far, job, knob};
use windlass_sdk::{
    Client,
    api::{
        event::Event,
        job::{Job, ListJobs, State},
    },
};

/// In rows, each job behind up to three of the row before.
fn workflow(jobs: usize, command: &str) -> Vec<Value> {
    let width = if jobs < 20 { 2 } else { 10 };
    let needs = |at: usize| -> Vec<String> {
        let row = at / width * width;
        let before = |step: usize| row - width + (at + step) % width;
        if row == 0 { Vec::new() } else { (0..width.min(3)).map(|step| format!("j{}", before(step))).collect() }
    };
    let one = |at: usize| {
        let needs = needs(at);
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        let mut job = job(&format!("j{at}"), command, &needs);
        job["max_retries"] = json!(100);
        job
    };
    (0..jobs).map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_succeeds_exactly_once_however_often_the_server_is_killed() {
    let (flows, jobs) = (knob("WINDLASS_GRAPH_FLOWS", 2), knob("WINDLASS_GRAPH_JOBS", 6));
    let kills = knob("WINDLASS_GRAPH_KILLS", 2);
    let anywhere = kills > 2;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let graph = GraphCalls(server.admin());
    let runs = folder.path().join("runs");
    let command = format!("echo x >> {}; sleep {}", runs.display(), if anywhere { "0.02" } else { "1.5" });
    let mut ids = Vec::new();
    for _ in 0..flows {
        ids.push(graph.start(&workflow(jobs, &command)).await);
    }
    let _workers = [GraphWorker::stock(&server.url, ""), GraphWorker::stock(&server.url, "")];
    let begun = Instant::now();
    for kill in 0..kills {
        if anywhere {
            let alive = Duration::from_millis(1_500 + (kill as u64 * 7_919) % 3_000);
            tokio::time::sleep(alive).await; // It is killed at any moment.
        } else {
            until_both_work(&graph, &ids).await;
        }
        server.kill();
        server.restart().await;
    }
    let patience = Duration::from_secs(60 + (flows * jobs) as u64);
    for id in &ids {
        graph.become_within(id, &vec!["success"; jobs], patience).await;
    }
    let executions = std::fs::read_to_string(&runs).unwrap().lines().count();
    println!(
        "{} jobs in {flows} workflows, {kills} kills, {executions} executions, {:.1} s",
        flows * jobs,
        begun.elapsed().as_secs_f64()
    );
    check(&server, flows * jobs).await;
}

/// Until both workers are in the first half of a job: the rest of it is longer than a restart takes. Not for ever: a kill at
/// another moment only makes the test longer.
async fn until_both_work(graph: &GraphCalls, ids: &[String]) {
    let begun = Instant::now();
    let mut first_seen: BTreeMap<(String, String, String), Instant> = BTreeMap::new();
    while begun.elapsed() < Duration::from_secs(10) {
        let mut now = Vec::new();
        for id in ids {
            let running = graph.jobs(id).await.into_iter().filter(|job| job["status"] == "running");
            now.extend(running.map(|job| (id.clone(), job["id"].to_string(), job["started_at"].to_string())));
        }
        let young = now.iter().filter(|job| {
            let seen = first_seen.entry((*job).clone()).or_insert_with(Instant::now);
            seen.elapsed() < Duration::from_millis(800)
        });
        if young.count() == 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // The pause between two looks: how long jobs run is measured.
    }
}

async fn check(server: &Server, expected: usize) {
    let client = server.admin_of("wfg");
    let jobs = all_jobs(&client).await;
    assert_eq!(jobs.len(), expected);
    assert!(jobs.iter().all(|job| job.state == State::Completed));
    let events = events_so_far(&client).await;
    let mut completed: BTreeMap<Uuid, Vec<u64>> = BTreeMap::new();
    let mut claimed: BTreeMap<Uuid, u64> = BTreeMap::new();
    for Event { id, kind, job, .. } in &events {
        match (kind.as_str(), job) {
            ("completed", Some(job)) => completed.entry(*job).or_default().push(*id),
            ("claimed", Some(job)) => drop(claimed.entry(*job).or_insert(*id)),
            _ => {}
        }
    }
    for job in &jobs {
        assert_eq!(completed.get(&job.id).map(Vec::len), Some(1), "{} succeeded exactly once", job.id);
        for parent in &job.after {
            assert!(completed[parent][0] < claimed[&job.id], "{} began before {parent} had ended", job.id);
        }
    }
}

async fn all_jobs(client: &Client) -> Vec<Job> {
    let mut query = ListJobs { limit: Some(1_000), ..ListJobs::default() };
    let mut all = Vec::new();
    loop {
        let page = client.jobs(&query).await.unwrap();
        all.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return all,
        }
    }
}
