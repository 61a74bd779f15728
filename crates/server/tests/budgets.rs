//! What one tenant asks for has a price that is known before it is paid, and the others do not pay it.

use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use std::{sync::mpsc, time::Duration};
use tokio::task::JoinHandle;
use windlass_core::{JobId, Namespace, RecordKey, RunId, WorkerId, commands::claim::Claim, principal::Role, stage};
use windlass_engine::testing::eventually;
use windlass_server::{App, flows::planner};

async fn start(server: &Server, namespace: &str, yaml: &str, input: Value) -> String {
    let path = format!("/api/v1/runs?namespace={namespace}");
    let started = server.post(&path, json!({"source": yaml, "input": input})).await.expect(201);
    started["id"].as_str().unwrap().to_owned()
}

async fn shown(server: &Server, namespace: &str, run: &str) -> Value {
    server.get(&format!("/api/v1/runs/{run}?namespace={namespace}")).await.expect(200)
}

fn step<'a>(shown: &'a Value, name: &str) -> &'a Value {
    shown["steps"].as_array().unwrap().iter().find(|step| step["name"] == name).unwrap()
}

/// Plans all there is; the run has failed then, and says why.
async fn failed(server: &Server, run: &str, name: &str) -> String {
    assert_eq!(planner::tick(&server.app).await.unwrap(), 0, "nothing is left to be tried again");
    let shown = shown(server, "default", run).await;
    assert_eq!(shown["state"], "failed", "{shown}");
    let job = step(&shown, name)["job"].as_str().unwrap().to_owned();
    let job = server.get(&format!("/api/v1/jobs/{job}")).await.expect(200);
    job["error"]["message"].as_str().or(job["message"].as_str()).unwrap_or(&job.to_string()).to_owned()
}

#[tokio::test]
async fn a_template_that_multiplies_its_input_ends_its_run_with_a_reason() {
    let server = Server::start().await;
    let payload = json!(vec!["${{input}}"; 8_000]);
    let yaml = json!({"steps": {"a": {"payload": payload}}}).to_string();
    let run = start(&server, "default", &yaml, json!("x".repeat(1_000_000))).await;
    let why = failed(&server, &run, "a").await;
    assert!(why.contains("bytes of memory, the most that a turn may take"), "{why}");
}

#[tokio::test]
async fn a_map_larger_than_a_batch_may_be_ends_its_run_with_a_reason() {
    let server = Server::start().await;
    let yaml = "steps:\n  a: {map: {over: input.list}, payload: '${{ input.big }}'}\n";
    let list: Vec<u32> = (0..300).collect();
    let run = start(&server, "default", yaml, json!({"list": list, "big": "x".repeat(950_000)})).await;
    let why = failed(&server, &run, "a").await;
    assert!(why.contains("bytes together, the most that a turn may submit"), "{why}");
    let run = start(&server, "default", yaml, json!({"list": [1, 2, 3], "big": "x".repeat(950_000)})).await;
    assert_eq!(planner::tick(&server.app).await.unwrap(), 0);
    assert_eq!(shown(&server, "default", &run).await["steps"].as_array().unwrap().len(), 4, "what fits goes");
}

#[tokio::test]
async fn a_pattern_costs_what_its_texts_cost_and_is_compiled_within_limits() {
    let server = Server::start().await;
    let bad = r"steps: {a: {if: 'input.matches(''(\\pL{30}){6}[k]'')'}}";
    let refused = server.post("/api/v1/runs", json!({"source": bad})).await.expect(422);
    assert!(refused["detail"].as_str().unwrap().contains("when it is compiled"), "{refused}");
    let yaml = "steps:\n  a: {map: {over: input.list}, payload: '${{ item.matches(input.p) }}'}\n";
    let list = vec!["x".repeat(3_000); 300];
    let run = start(&server, "default", yaml, json!({"list": list, "p": r"^[a-z]{1000}\d$"})).await;
    let why = failed(&server, &run, "a").await;
    assert!(why.contains("steps of work, the most that a turn may take"), "{why}");
}

/// Keeps the only thread that a namespace may have aside, until it is dropped.
struct BusyThread {
    _let_go: mpsc::Sender<()>,
    _work: JoinHandle<()>,
}

async fn keep_busy(app: &App, namespace: &str) -> BusyThread {
    let ((runs, running), (let_go, go)) = (mpsc::channel(), mpsc::channel::<()>());
    let (app, namespace) = (app.clone(), Namespace::new(namespace).unwrap());
    let work = tokio::spawn(async move {
        let hold = move || {
            let _ = runs.send(());
            let _ = go.recv();
        };
        drop(app.aside.run(&namespace, hold).await);
    });
    tokio::task::spawn_blocking(move || running.recv()).await.unwrap().unwrap();
    BusyThread { _let_go: let_go, _work: work }
}

/// Runs whose second step looks at more than is decided without a word about it.
async fn dear_ones(server: &Server, namespace: &str, count: usize) -> Vec<(String, JobId)> {
    let yaml = "steps:
  a: {tags: [any], payload: '${{ 1 }}'}
  b: {needs: a, tags: [other], payload: '${{ size(steps.a.output) }}'}
";
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(start(server, namespace, yaml, json!(null)).await);
    }
    // Their plans are known from here on.
    assert_eq!(planner::tick(&server.app).await.unwrap(), 0);
    let claim = json!({"worker": "w", "tags": ["any"], "max": count});
    let claimed = server.work(&format!("/api/v1/leases/claim?namespace={namespace}"), claim).await.expect(200);
    let result: Vec<u8> = vec![1; 100_000];
    for leased in claimed["leases"].as_array().unwrap() {
        let done = json!({"lease": leased["lease"], "result": result});
        server.work(&format!("/api/v1/leases/complete?namespace={namespace}"), done).await.expect(200);
    }
    let mut found = Vec::new();
    for run in runs {
        let job = step(&shown(server, namespace, &run).await, "b")["job"].as_str().unwrap().parse().unwrap();
        found.push((run, job));
    }
    found
}

async fn dear(server: &Server, namespace: &str) -> (String, JobId) {
    dear_ones(server, namespace, 1).await.remove(0)
}

async fn times_begun(app: &App, run: &str, job: JobId) -> Option<u64> {
    let run: RunId = run.parse().unwrap();
    let key = stage::turn_key(&Namespace::default(), run, Some(job));
    let key = RecordKey { namespace: stage::system_namespace(), kind: "turn_begun".into(), key: key.into() };
    let found = app.engine.store().record(&key).await.unwrap()?;
    serde_json::from_str::<Value>(&found.value).unwrap()["times"].as_u64()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_ended_its_server_twice_is_not_tried_a_third_time() {
    let server = Server::start().await;
    let (run, job) = dear(&server, "default").await;
    let kept = keep_busy(&server.app, "default").await;
    for times in 1..=2 {
        let app = server.app.clone();
        let planning = tokio::spawn(async move { planner::tick(&app).await.is_ok() });
        eventually("it is begun", async || times_begun(&server.app, &run, job).await.filter(|begun| *begun == times))
            .await;
        // As if the server ended here.
        planning.abort();
        drop(planning.await);
    }
    drop(kept);
    let why = failed(&server, &run, "b").await;
    assert!(why.contains("ended 2 times"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dear_turn_that_comes_to_its_end_leaves_no_mark_and_one_that_a_stop_cuts_short_does_not_count() {
    let server = Server::start().await;
    let (run, job) = dear(&server, "default").await;
    assert_eq!(planner::tick(&server.app).await.unwrap(), 0);
    assert_eq!(step(&shown(&server, "default", &run).await, "b")["state"], "pending");
    assert_eq!(times_begun(&server.app, &run, job).await, None);
    let (run, job) = dear(&server, "default").await;
    let _kept = keep_busy(&server.app, "default").await;
    let planning = tokio::spawn(planner::run(server.app.clone()));
    eventually("it is begun", async || times_begun(&server.app, &run, job).await).await;
    server.app.drain.cancel();
    planning.await.unwrap();
    assert_eq!(
        times_begun(&server.app, &run, job).await,
        None,
        "it is told to stop, and nothing is wrong with the turn"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_one_namespace_do_not_wait_for_those_of_another() {
    let server = Server::start().await;
    dear_ones(&server, "busy", 12).await;
    let _kept = keep_busy(&server.app, "busy").await;
    let yaml = "steps:\n  a: {payload: '${{ input }}'}\n  b: {needs: a, map: {over: '[1, 2]'}}\n";
    let run = start(&server, "quiet", yaml, json!(7)).await;
    let app = server.app.clone();
    let planning = tokio::spawn(async move { planner::tick(&app).await.is_ok() });
    let first = eventually("the other namespace's run goes on", async || {
        let shown = shown(&server, "quiet", &run).await;
        (step(&shown, "a")["state"] == "pending").then(|| step(&shown, "a").clone())
    });
    first.await;
    assert!(!planning.is_finished(), "although the first one's turns still wait");
    planning.abort();
}

#[tokio::test]
async fn of_a_cancelled_run_nothing_is_worked_out() {
    let server = Server::start().await;
    let run = start(&server, "default", "steps: {a: {payload: '${{ input }}'}}", json!(1)).await;
    server.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    assert_eq!(planner::tick(&server.app).await.unwrap(), 0);
    assert_eq!(shown(&server, "default", &run).await["state"], "cancelled");
    let run: RunId = run.parse().unwrap();
    assert!(server.app.plans.get(run).is_none(), "not even its plan was read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_takes_long_to_check_is_checked_aside_and_one_that_takes_too_long_is_refused() {
    let server = Server::start().await;
    let tree = json!({"type": "array", "items": {"$ref": "#"}});
    let schema = json!({"anyOf": [tree.clone(), tree]});
    server.put("/api/v1/definitions/d", json!({"tags": ["t"], "payload_schema": schema})).await.expect(200);
    let nested = |depth: usize| (0..depth).fold(json!([]), |inner, _| json!([inner]));
    server.post("/api/v1/jobs", json!({"definition": "d", "payload": nested(3)})).await.expect(201);
    let refused = server.post("/api/v1/jobs", json!({"definition": "d", "payload": nested(40)})).await.expect(422);
    assert!(refused["detail"].as_str().unwrap().contains("steps, the most that a check may take"), "{refused}");
    assert!(refused["field"].as_str().unwrap().starts_with("/0/0/0"), "{refused}");
    // What costs more than a moment waits for the thread of its namespace; what does not, does not.
    let kept = keep_busy(&server.app, "default").await;
    server.post("/api/v1/jobs", json!({"definition": "d", "payload": nested(3)})).await.expect(201);
    let waiting = tokio::time::timeout(
        Duration::from_millis(200),
        server.post("/api/v1/jobs", json!({"definition": "d", "payload": nested(12)})),
    );
    assert!(waiting.await.is_err(), "it is checked aside");
    drop(kept);
    server.post("/api/v1/jobs", json!({"definition": "d", "payload": nested(12)})).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_step_whose_payload_takes_too_long_to_check_ends_its_run() {
    let server = Server::start().await;
    let tree = json!({"type": "array", "items": {"$ref": "#"}});
    let schema = json!({"anyOf": [tree.clone(), tree]});
    server.put("/api/v1/definitions/d", json!({"tags": ["t"], "payload_schema": schema})).await.expect(200);
    let nested = (0..40).fold(json!([]), |inner, _| json!([inner]));
    let yaml = "steps:\n  a: {definition: d, payload: '${{ input }}'}\n";
    let run = start(&server, "default", yaml, nested).await;
    let why = failed(&server, &run, "a").await;
    assert!(why.contains("steps, the most that a check may take"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_and_definitions_are_read_aside() {
    let server = Server::start().await;
    let kept = keep_busy(&server.app, "default").await;
    let large = json!({"tags": ["t"], "payload": "x".repeat(100_000)});
    let soon = Duration::from_millis(200);
    assert!(tokio::time::timeout(soon, server.post("/api/v1/jobs", large.clone())).await.is_err());
    let put = |yaml: &str| {
        let request = Server::request(Role::Editor, Method::PUT, "/api/v1/workflows/w");
        request.body(yaml.to_owned().into()).unwrap()
    };
    assert!(tokio::time::timeout(soon, server.call(put("steps: {a: {}}"))).await.is_err());
    server.post("/api/v1/jobs", json!({"tags": ["t"], "payload": 1})).await.expect(201);
    server.post("/api/v1/jobs?namespace=other", large.clone()).await.expect(201);
    drop(kept);
    server.post("/api/v1/jobs", large).await.expect(201);
    server.call(put("steps: {a: {}}")).await.expect(200);
}

fn crowded(workers_max: usize, offers_max: usize, lanes_max: usize) -> windlass_engine::Settings {
    let limits = windlass_core::Limits { workers_max, offers_max, lanes_max, ..Default::default() };
    windlass_engine::Settings { limits, ..Default::default() }
}

#[tokio::test]
async fn a_namespace_has_so_many_workers_and_no_more() {
    let server = Server::set(crowded(5, 100, 100), Default::default()).await;
    let register = async |name: String| server.work("/api/v1/workers/register", json!({"worker": name})).await;
    let claim = async |name: String| server.work("/api/v1/leases/claim", json!({"worker": name})).await;
    for at in 0..5 {
        // A claim makes its worker known as well.
        if at % 2 == 0 {
            register(format!("w{at}")).await.expect(200)
        } else {
            claim(format!("w{at}")).await.expect(200)
        };
    }
    for refused in [register("w9".into()).await, claim("w9".into()).await] {
        let problem = refused.expect(429);
        let told = problem["detail"].as_str().unwrap();
        assert!(told.contains("5 workers") && told.contains("workers_per_namespace_max"), "{told}");
    }
    register("w3".into()).await.expect(200);
    claim("w4".into()).await.expect(200);
    let other = server.work("/api/v1/workers/register?namespace=other", json!({"worker": "w9"})).await;
    other.expect(200);
    server.delete("/api/v1/workers/w0").await.expect(204);
    eventually("there is room for another", async || (register("w9".into()).await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn the_jobs_of_a_namespace_wait_with_so_many_sets_of_tags_and_no_more() {
    let server = Server::set(crowded(100, 100, 300), Default::default()).await;
    let submit = async |namespace: &str, tags: Vec<String>| {
        server.post(&format!("/api/v1/jobs?namespace={namespace}"), json!({"tags": tags})).await
    };
    let mut taken = 0;
    let refused = loop {
        let answer = submit("default", vec![format!("t{taken}")]).await;
        if answer.status != 201 {
            break answer.expect(429);
        }
        taken += 1;
        assert!(taken < 2_000, "nothing ends it");
    };
    let told = refused["detail"].as_str().unwrap();
    assert!(taken >= 300 && told.contains("300 sets of tags") && told.contains("tag_sets_per_namespace_max"), "{told}");
    submit("default", vec![]).await.expect(201);
    submit("other", vec!["x".into()]).await.expect(201);
    let tags: Vec<String> = (0..taken).map(|at| format!("t{at}")).collect();
    let claim = json!({"worker": "w", "tags": tags, "max": 500});
    server.work("/api/v1/leases/claim", claim).await.expect(200);
    eventually("there is room for others", async || {
        (submit("default", vec!["y".into()]).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_workers_of_a_namespace_wait_with_so_many_sets_of_tags_and_no_more() {
    let server = Server::set(crowded(100, 3, 100), Default::default()).await;
    let engine = server.engine.clone();
    let wait = |tag: usize| {
        let app = server.app.clone();
        tokio::spawn(async move {
            let offered = [format!("t{tag}").as_str()].into_iter().collect();
            let (worker, secrets) = (WorkerId::new("w").unwrap(), windlass_engine::ids::secrets(1));
            let claim = Claim::new(&Namespace::default(), worker, offered, secrets);
            app.engine.claim(claim, Duration::from_secs(60)).await
        })
    };
    let waiting: Vec<_> = (0..3).map(wait).collect();
    eventually("all wait", async || (engine.waiting(&Namespace::default()) == 3).then_some(())).await;
    let refused = server.work("/api/v1/leases/claim", json!({"worker": "w", "tags": ["other"]})).await.expect(429);
    assert!(refused["detail"].as_str().unwrap().contains("offers_per_namespace_max"), "{refused}");
    server.work("/api/v1/leases/claim", json!({"worker": "w", "tags": ["t1"]})).await.expect(200);
    waiting.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn what_a_definition_adds_to_many_jobs_counts_as_if_it_had_been_sent() {
    let bodies = windlass_server::room::Limits { total: 1 << 30, share: 1 << 20 };
    let server = Server::with(windlass_server::Options { bodies, ..Default::default() }).await;
    server.put("/api/v1/definitions/large", json!({"payload": "x".repeat(200_000)})).await.expect(200);
    let many = |count: usize| json!({"jobs": vec![json!({"definition": "large"}); count]});
    let answer = server.post("/api/v1/jobs/batch", many(50)).await.expect(200).to_string();
    assert!(answer.contains("bodies_per_principal_max"), "{}", &answer[..answer.len().min(2_000)]);
    let jobs = server.get("/api/v1/jobs").await.expect(200);
    assert!((1..10).contains(&jobs["items"].as_array().unwrap().len()), "as many as there is room for");
    assert_eq!(server.app.rooms.taken(), 0, "and it is given back");
}

#[tokio::test]
async fn a_namespace_has_so_many_schedules_and_no_more() {
    let limits = windlass_core::Limits { schedules_max: 2, ..Default::default() };
    let server = Server::set(windlass_engine::Settings { limits, ..Default::default() }, Default::default()).await;
    let put = async |path: &str| server.put(path, json!({"every_ms": 60_000, "job": {}})).await;
    put("/api/v1/schedules/a").await.expect(200);
    put("/api/v1/schedules/b").await.expect(200);
    let refused = put("/api/v1/schedules/c").await.expect(429);
    assert!(refused["detail"].as_str().unwrap().contains("schedules_per_namespace_max"), "{refused}");
    put("/api/v1/schedules/a").await.expect(200);
    put("/api/v1/schedules/c?namespace=other").await.expect(200);
    server.delete("/api/v1/schedules/b").await.expect(204);
    put("/api/v1/schedules/c").await.expect(200);
}

#[tokio::test]
async fn a_namespace_has_so_many_definitions_and_no_more() {
    let limits = windlass_core::Limits { definitions_max: 2, ..Default::default() };
    let server = Server::set(windlass_engine::Settings { limits, ..Default::default() }, Default::default()).await;
    let put = async |path: &str| server.put(path, json!({"payload": path})).await;
    put("/api/v1/definitions/a").await.expect(200);
    put("/api/v1/definitions/b").await.expect(200);
    let refused = put("/api/v1/definitions/c").await.expect(429);
    assert!(refused["detail"].as_str().unwrap().contains("definitions_per_namespace_max"), "{refused}");
    put("/api/v1/definitions/a").await.expect(200);
    put("/api/v1/definitions/c?namespace=other").await.expect(200);
    // A deleted one is still there, and counts.
    server.delete("/api/v1/definitions/b").await.expect(204);
    put("/api/v1/definitions/c").await.expect(429);
}
