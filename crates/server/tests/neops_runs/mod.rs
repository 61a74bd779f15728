//! Runs of neops workflows, from their start to their end, with the answers of workers made up.

mod ahead;
mod bad_input;
mod entities;
mod given_up;
mod passwords;

use crate::support::Server;
use http::Method;
use serde_json::{Value, json};
use std::collections::HashMap;
use windlass_core::{Millis, principal::Role};
use windlass_engine::Settings;
use windlass_server::{app::Options, flows::planner};

/// A server with one worker that serves a few blocks.
struct Bench {
    server: Server,
    worker: String,
    /// What workers were asked to do, in order.
    log: Vec<String>,
    /// What the jobs were that have been handed out.
    jobs: Vec<Value>,
    /// What to answer, by `type label`, as often as it is there; success otherwise.
    fails: HashMap<&'static str, usize>,
    answers: HashMap<&'static str, Value>,
    /// Blocks that it serves beside those of all tests.
    also: Vec<&'static str>,
}

/// Name, pure, idempotent, reversible, what it runs on.
const BLOCKS: [(&str, bool, bool, bool, &str); 5] = [
    ("look", true, true, false, "global"),
    ("change", false, false, true, "global"),
    ("burn", false, false, false, "global"),
    ("set", false, false, true, "device"),
    ("again", false, true, true, "global"),
];

impl Bench {
    async fn new() -> Self {
        Self::on(Server::start().await).await
    }

    async fn on(server: Server) -> Self {
        let worker = server.work("/workers/register", json!({"version": "0.2.0"})).await.expect(201);
        let worker = worker["uuid"].as_str().unwrap().to_owned();
        for (name, pure, idempotent, reversible, on) in BLOCKS {
            let block = json!({"name": name, "package": "fb", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0,
                "workerId": worker, "description": "", "fbType": "execute", "runOn": on, "isPure": pure,
                "isIdempotent": idempotent, "reversible": reversible,
                "parameterJsonSchema": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
                "resultDataJsonSchema": {"type": "object"}});
            let answer = server.work("/function-blocks/register", block).await;
            assert_eq!(answer.status, 201, "{:?}", answer.body);
        }
        Self { server, worker, log: vec![], jobs: vec![], fails: HashMap::new(), answers: HashMap::new(), also: vec![] }
    }

    /// Publishes a workflow of these steps, each `label block`, or a whole step.
    async fn publish(&self, name: &str, seed: &str, steps: Vec<Value>) {
        self.publish_with(name, seed, steps, json!({})).await;
    }

    async fn publish_with(&self, name: &str, seed: &str, steps: Vec<Value>, more: Value) {
        let step = |step: Value| match step.as_str() {
            Some(text) => {
                let (label, block) = text.split_once(' ').unwrap();
                json!({"type": "functionBlock", "label": label, "functionBlock": format!("fb/{block}:1")})
            }
            None => step,
        };
        let steps: Vec<Value> = steps.into_iter().map(step).collect();
        let mut workflow = json!({"type": "workflow", "label": "wf", "name": name, "package": "wf", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": seed, "steps": steps});
        workflow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.server.post("/workflow-definition/publish", json!({"workflow": workflow})).await.expect(201);
    }

    async fn start(&self, name: &str, ids: &[u64], parameters: Value) -> String {
        let body =
            json!({"workflow": format!("wf/{name}:1"), "executeOnParameters": {"ids": ids}, "parameters": parameters});
        let run = self.server.post("/workflow-execution", body).await.expect(201);
        run["uuid"].as_str().unwrap().to_owned()
    }

    async fn plan(&self) {
        assert_eq!(planner::tick(&self.server.app).await.unwrap(), 0, "no turn goes wrong");
    }

    async fn poll(&self) -> Vec<Value> {
        self.poll_for(50).await
    }

    async fn poll_for(&self, limit: usize) -> Vec<Value> {
        let block = |name: &str| json!({"name": name, "package": "fb", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0});
        let blocks: Vec<Value> =
            BLOCKS.iter().map(|(name, ..)| *name).chain(self.also.iter().copied()).map(block).collect();
        let body = json!({"functionBlockIds": blocks, "workerId": self.worker, "limit": limit});
        self.server.work("/blackboard/job", body).await.expect(201).as_array().unwrap().clone()
    }

    async fn report(&self, job: &Value, status: &str, mut result: Value, acquires: Value) -> u16 {
        result["success"] = json!(status == "success");
        let mut body = json!({"jobExecutionId": job["jobId"], "status": status, "result": result});
        if !acquires.is_null() {
            body["acquires"] = acquires;
        }
        self.server.work("/blackboard/job/result", body).await.status.as_u16()
    }

    /// What a worker answers. Gives the job's `type label entity`.
    async fn answer(&mut self, job: &Value) {
        let (kind, label) = (job["type"].as_str().unwrap(), job["stepLabel"].as_str().unwrap());
        let named = format!("{kind} {label}");
        let entity = job["entityId"].as_u64().map(|id| format!(" {id}")).unwrap_or_default();
        self.log.push(format!("{named}{entity}"));
        self.jobs.push(job.clone());
        if let Some(left) = self.fails.get_mut(&*named).filter(|left| **left > 0) {
            *left -= 1;
            assert_eq!(self.report(job, "failed", json!({"message": "broken"}), Value::Null).await, 201);
            return;
        }
        let result = self.answers.get(&*named).cloned().unwrap_or_else(|| json!({"message": "ok", "data": {}}));
        let acquires = result.get("acquires").cloned().unwrap_or_default();
        assert_eq!(self.report(job, "success", result, acquires).await, 201);
    }

    /// Works until nothing is left to do.
    async fn work(&mut self) {
        loop {
            self.plan().await;
            let jobs = self.poll().await;
            if jobs.is_empty() {
                return;
            }
            for job in &jobs {
                self.answer(job).await;
            }
        }
    }

    async fn run(&self, run: &str) -> Value {
        self.server.get(&format!("/workflow-execution/id/{run}")).await.expect(200)
    }

    /// Status, reason and cause.
    async fn state(&self, run: &str) -> String {
        let run = self.run(run).await;
        let word = |name: &str| run[name].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", word("status"), word("reasonCode"), word("unsafeCause"))
    }

    fn did(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

fn block(label: &str, block: &str, more: Value) -> Value {
    let mut step = json!({"type": "functionBlock", "label": label, "functionBlock": format!("fb/{block}:1")});
    step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    step
}

#[tokio::test]
async fn a_run_past_its_time_is_gone_before_any_sweep() {
    let settings = Settings { sweep_every: None, ..Settings::default() };
    let mut bench = Bench::on(Server::set(settings, Options::default()).await).await;
    bench.publish("one", "global", vec![json!("a look")]).await;
    let run = bench.start("one", &[], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -");
    bench.server.clock.advance(Millis(bench.server.engine.settings().limits.retention.0 + 1));
    assert_eq!(bench.server.get(&format!("/workflow-execution/id/{run}")).await.status, 404);
    let listed = bench.server.get("/workflow-execution").await.expect(200);
    assert!(!listed.to_string().contains(&run), "{listed}");
}

#[tokio::test]
async fn a_run_acquires_executes_and_hands_results_on() {
    let mut bench = Bench::new().await;
    let second = block(
        "b",
        "change",
        json!({"parameters": {"n": "{{ a.result.data.n }}", "t": "{{ parameters.who }}-{{ wf.steps.a.result.message }}"}}),
    );
    let schema =
        json!({"parameterSchema": {"type": "object", "properties": {"who": {"type": "string", "default": "ann"}}}});
    bench.publish_with("two", "global", vec![json!("a look"), second], schema).await;
    bench.answers.insert("execute a", json!({"message": "seen", "data": {"n": 5}}));
    let run = bench.start("two", &[], json!({})).await;
    assert_eq!(bench.state(&run).await, "resource_discovery - -");
    let early = bench.poll().await;
    assert_eq!(early.len(), 2, "all acquire jobs at once");
    assert_eq!((&early[1]["type"], &early[1]["parameters"]["n"]), (&json!("acquire"), &Value::Null));
    for job in &early {
        bench.answer(job).await;
    }
    bench.plan().await;
    assert_eq!(bench.state(&run).await, "running - -");
    bench.work().await;
    assert_eq!(bench.did(), ["acquire a", "acquire b", "execute a", "execute b"]);
    assert_eq!(bench.jobs[3]["parameters"], json!({"n": 5, "t": "ann-seen"}));
    assert_eq!(bench.state(&run).await, "completed_ack - -");
    let shown = bench.run(&run).await;
    assert_eq!((&shown["parameters"]["who"], &shown["cmsResourcesLocked"]), (&json!("ann"), &json!(false)));
    assert!(shown["finishedAt"].is_string());
    let page = bench.server.get("/workflow-execution/page?status=completed_ack&include=facets").await.expect(200);
    assert_eq!((&page["total"], &page["items"][0]["uuid"]), (&json!(1), &json!(run)));
    assert_eq!(page["items"][0]["parameters"], Value::Null);
    for (path, count) in [("", 1), ("/active", 1), ("/latest", 1), ("/state/COMPLETED_ACK", 1), ("/state/running", 0)] {
        let list = bench.server.get(&format!("/workflow-execution{path}")).await.expect(200);
        assert_eq!(list.as_array().map(Vec::len), Some(count), "{path}");
    }
}

#[tokio::test]
async fn what_was_done_is_undone_in_reverse_when_a_step_fails() {
    let mut bench = Bench::new().await;
    let steps = vec![json!("a change"), json!("b look"), json!("c change"), json!("d change"), json!("e change")];
    bench.publish("undone", "global", steps).await;
    bench.fails.insert("execute d", 1);
    let run = bench.start("undone", &[], json!({})).await;
    bench.work().await;
    let did = bench.did();
    let undone = ["execute a", "execute b", "execute c", "execute d", "rollback d", "rollback c", "rollback a"];
    assert_eq!(did[5..], undone, "the failed one was begun, and the pure one changed nothing");
    assert_eq!(bench.state(&run).await, "failed_safe_ack step_failed -");
    assert_eq!(bench.run(&run).await["reason"], "step d: broken");
    bench.fails.extend([("execute d", 1), ("rollback c", 1)]);
    let run = bench.start("undone", &[], json!({})).await;
    bench.work().await;
    assert_eq!(bench.did().last().unwrap(), "rollback c", "what failed stops the rest");
    assert_eq!(bench.state(&run).await, "failed_unsafe_ack step_failed rollback_failed");
}

#[tokio::test]
async fn a_block_that_may_be_repeated_is_tried_four_times_as_new_jobs() {
    let mut bench = Bench::new().await;
    bench.publish("again", "global", vec![json!("a again"), json!("b change")]).await;
    bench.fails.insert("execute a", 3);
    let run = bench.start("again", &[], json!({})).await;
    bench.work().await;
    assert_eq!(bench.did()[2..], ["execute a", "execute a", "execute a", "execute a", "execute b"]);
    assert_eq!(bench.state(&run).await, "completed_ack - -");
    let late = bench.jobs[2].clone();
    assert_eq!(bench.report(&late, "success", json!({}), Value::Null).await, 409, "its copy has taken its place");
    bench.fails.insert("execute a", 4);
    let run = bench.start("again", &[], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack step_failed -");
    assert_eq!(bench.did().iter().filter(|did| *did == "rollback a").count(), 1, "undone once");
}

#[tokio::test]
async fn an_irreversible_step_keeps_its_locks_until_somebody_remedies_it() {
    let mut bench = Bench::new().await;
    let steps = vec![json!("a set"), json!("b burn"), json!("c look")];
    bench.publish("burnt", "device", steps).await;
    bench.fails.insert("execute c", 4);
    let run = bench.start("burnt", &[5, 7], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_unsafe_ack step_failed rollback_blocked");
    assert!(!bench.did().iter().any(|did| did.starts_with("rollback")), "nothing is rolled back");
    let shown = bench.run(&run).await;
    assert_eq!(shown["heldLocks"], json!({"devices": [5, 7], "deviceGroups": [], "interfaces": []}));
    let next = bench.start("burnt", &[5], json!({})).await;
    bench.work().await;
    let waiting = bench.run(&next).await;
    assert_eq!(waiting["status"], "locking");
    assert!(waiting["retryNote"].as_str().unwrap().contains("device/5"), "{waiting}");
    let path = format!("/workflow-execution/{run}/remediation");
    let ledger = bench.server.get(&path).await.expect(200);
    let states = |ledger: &Value| -> Vec<String> {
        let entry =
            |entry: &Value| format!("{} {} {}", entry["stepLabel"], entry["entityId"], entry["state"]).replace('"', "");
        ledger["entries"].as_array().unwrap().iter().map(entry).collect()
    };
    assert_eq!(states(&ledger), ["a 5 open", "a 7 open", "b null open"]);
    let all = bench.server.post(&format!("{path}/rollback"), json!({"all": true})).await.expect(200);
    assert_eq!(all["createdRollbackJobs"], 0, "they wait for the one that cannot be undone");
    let job = ledger["entries"][0]["jobUuid"].clone();
    assert_eq!(bench.server.post(&format!("{path}/rollback"), json!({"jobs": [job]})).await.status, 409);
    let burnt = ledger["entries"][2]["jobUuid"].clone();
    let body = json!({"jobs": [burnt], "note": "replaced by hand", "continueRollback": true});
    let resolved = bench.server.post(&format!("{path}/resolve"), body).await.expect(200);
    assert_eq!((&resolved["resolvedJobs"], &resolved["createdRollbackJobs"]), (&json!(1), &json!(2)));
    bench.did();
    bench.fails.clear();
    bench.work().await;
    let did = bench.did();
    assert_eq!(did.iter().filter(|did| did.starts_with("rollback a")).count(), 2);
    assert_eq!(bench.state(&run).await, "failed_safe_ack step_failed rollback_blocked");
    assert_eq!(
        states(&bench.server.get(&path).await.expect(200)),
        ["a 5 rolled_back", "a 7 rolled_back", "b null resolved"]
    );
    assert_eq!(bench.run(&run).await["cmsResourcesLocked"], false);
    assert_eq!(bench.state(&next).await, "completed_ack - -", "and the one that waited went on by itself");
    let trail = bench.server.get("/api/v1/audit?limit=2").await.expect(200);
    let acts = [("run_resolved", 0), ("run_rolled_back", 1)];
    for (act, at) in acts {
        let noted = &trail["items"][at];
        assert_eq!((&noted["act"], &noted["on"], &noted["by"]), (&json!(act), &json!(run), &json!("test-admin")));
    }
    let other = format!("/workflow-execution/{next}/remediation");
    assert_eq!(bench.server.get(&other).await.status, 409, "nothing is to be remedied");
}

#[tokio::test]
async fn the_second_run_for_a_device_waits_and_goes_on_when_the_first_ends() {
    let mut bench = Bench::new().await;
    bench.publish("set", "device", vec![json!("a set")]).await;
    let (first, second) = (bench.start("set", &[5], json!({})).await, bench.start("set", &[5, 6], json!({})).await);
    let acquires = bench.poll().await;
    for job in &acquires {
        bench.answer(job).await;
    }
    bench.plan().await;
    let states = [bench.state(&first).await, bench.state(&second).await];
    assert_eq!(states, ["running - -", "locking - -"]);
    let jobs = bench.poll().await;
    assert_eq!((jobs.len(), &jobs[0]["entityId"]), (1, &json!(5)));
    assert_eq!(jobs[0]["context"]["devices"], json!([{"id": 5}]));
    bench.answer(&jobs[0]).await;
    // No pause passes: whoever gives a lock back tells those that wait for it.
    bench.work().await;
    assert_eq!([bench.state(&first).await, bench.state(&second).await], ["completed_ack - -", "completed_ack - -"]);
    assert_eq!(bench.did()[2..], ["execute a 5", "execute a 5", "execute a 6"]);
}

#[tokio::test]
async fn what_steps_change_is_seen_by_later_ones_and_kept_in_the_end() {
    let mut bench = Bench::new().await;
    let device = json!({"id": 5, "hostname": "sw1", "password": "secret"});
    bench.server.put("/api/v1/entities/device/5", device).await;
    let second = block("b", "set", json!({"parameters": {"v": "{{ context.device.vendor }}"}}));
    bench.publish("facts", "device", vec![json!("a set"), second]).await;
    let update = json!({"operation": "patch", "entity": "device", "id": 5, "path": "vendor", "value": "acme"});
    bench.answers.insert("execute a", json!({"message": "ok", "dbUpdates": {"updates": [update]}}));
    let run = bench.start("facts", &[5], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "completed_ack - -");
    assert_eq!(bench.jobs[2]["context"]["devices"][0]["password"], "secret", "workers need it");
    assert_eq!(bench.jobs[3]["parameters"]["v"], "acme");
    assert_eq!(bench.jobs[3]["context"]["devices"][0]["vendor"], "acme");
    let shown = bench.run(&run).await;
    assert_eq!(shown["context"]["devices"][0]["hostname"], "sw1");
    assert!(!shown.to_string().contains("secret"));
    let entity = bench.server.send(Role::Admin, Method::GET, "/api/v1/entities/device/5", None).await.expect(200);
    assert_eq!((&entity["vendor"], &entity["hostname"]), (&json!("acme"), &json!("sw1")));
}

#[tokio::test]
async fn a_run_that_cannot_go_well_fails_safely_before_any_job_or_in_its_turn() {
    let mut bench = Bench::new().await;
    let jmes = |text: &str| json!({"type": "jmes", "jmes": text});
    let with = |n: &str| json!({"parameters": {"n": n}});
    let nested = format!("{{{{ {}a{} }}}}", "(".repeat(1_000), ")".repeat(1_000));
    let reference = json!({"type": "workflowReference", "label": "r", "workflow": "wf/x:1", "strategy": "embed"});
    let table = [
        ("unknown", vec![json!("a nobody")], "failed_safe_ack unresolved_reference -", ""),
        ("reference", vec![json!("a look"), reference], "failed_safe_ack invalid_workflow -", ""),
        (
            "early",
            vec![block("a", "look", json!({"parameters": {"n": "{{ parameters.text }}"}}))],
            "failed_safe_ack invalid_parameters -",
            "",
        ),
        ("deep", vec![block("a", "look", with(&nested))], "failed_safe_ack invalid_parameters -", ""),
        (
            "null",
            vec![json!("a look"), block("b", "look", with("x{{ a.result.data.none }}"))],
            "failed_safe_ack interpolation_failed -",
            "execute a",
        ),
        (
            "late",
            vec![json!("a look"), block("b", "look", with("{{ a.result.message }}"))],
            "failed_safe_ack invalid_parameters -",
            "execute a",
        ),
        (
            "assert",
            vec![json!("a look"), block("b", "look", json!({"assert": [jmes("a.result.data.no")]}))],
            "failed_safe_ack assertion_failed -",
            "execute a",
        ),
        (
            "skip",
            vec![
                json!("a look"),
                block("b", "look", json!({"condition": jmes("{{ a.result.data.no }}")})),
                json!("c look"),
            ],
            "completed_ack - -",
            "execute a execute c",
        ),
    ];
    for (name, steps, expected, executed) in table {
        bench.publish(name, "global", steps).await;
        let run = bench.start(name, &[], json!({"text": "no number"})).await;
        bench.work().await;
        assert_eq!(bench.state(&run).await, expected, "{name}: {}", bench.run(&run).await["reason"]);
        let did: Vec<String> = bench.did().into_iter().filter(|did| did.starts_with("execute")).collect();
        assert_eq!(did.join(" "), executed, "{name}");
    }
    bench.publish("acquire", "global", vec![json!("a look"), json!("b change")]).await;
    bench.fails.insert("acquire a", 1);
    let run = bench.start("acquire", &[], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack acquire_failed -");
    bench.answers.insert(
        "acquire a",
        json!({"acquires": [{"type": "elastic", "entity": "device", "query": "x", "assertNotEmpty": true}]}),
    );
    let run = bench.start("acquire", &[], json!({})).await;
    bench.work().await;
    assert_eq!(bench.state(&run).await, "failed_safe_ack acquire_failed -", "there is no search");
}

#[tokio::test]
async fn an_aborted_run_ends_its_jobs_and_is_classified() {
    let mut bench = Bench::new().await;
    bench.publish("long", "global", vec![json!("a change"), json!("b change")]).await;
    let run = bench.start("long", &[], json!({})).await;
    let acquires = bench.poll().await;
    for job in &acquires {
        bench.answer(job).await;
    }
    bench.plan().await;
    let held = bench.poll().await;
    let path = format!("/workflow-execution/{run}");
    bench.server.delete(&path).await.expect(200);
    bench.server.delete(&path).await.expect(200);
    assert_eq!(bench.report(&held[0], "success", json!({}), Value::Null).await, 409, "it was taken away");
    bench.did();
    bench.work().await;
    assert_eq!(bench.did(), ["rollback a"], "a worker had it");
    assert_eq!(bench.state(&run).await, "failed_safe_ack aborted -");
    bench.server.delete(&path).await.expect(200);
    let run = bench.start("long", &[], json!({})).await;
    bench.server.delete(&format!("/workflow-execution/{run}")).await.expect(200);
    bench.work().await;
    assert_eq!((bench.state(&run).await.as_str(), bench.did().len()), ("failed_safe_ack aborted -", 0));
    let unknown = "/workflow-execution/00000000-0000-4000-8000-000000000000";
    assert_eq!(bench.server.delete(unknown).await.status, 404);
}

#[tokio::test]
async fn bad_requests_about_runs_are_told_apart() {
    let bench = Bench::new().await;
    bench.publish("one", "global", vec![json!("a look")]).await;
    let own = "11111111-1111-4111-8111-111111111111";
    let body = |workflow: &str| json!({"workflow": workflow, "executeOnParameters": {}, "parameters": {}, "workflowExecutionId": own});
    let post = |body: Value| bench.server.post("/workflow-execution", body);
    assert_eq!(post(body("wf/one:1")).await.expect(201)["uuid"], own);
    for (sent, status) in [
        (body("wf/one:1"), 409),
        (body("wf/nobody:1"), 404),
        (body("wf/one"), 400),
        (json!({"workflow": "wf/one:1", "parameters": {}}), 400),
        (json!({"workflow": "wf/one:1", "executeOnParameters": {"ids": ["5"]}, "parameters": {}}), 400),
        (json!({"workflow": "wf/one:1", "executeOnParameters": {}, "parameters": {}, "workflowExecutionId": "x"}), 400),
    ] {
        let refused = post(sent.clone()).await.expect(status);
        assert_eq!(refused["statusCode"], status, "{sent}");
    }
    let table = [
        ("/workflow-execution/id/x", 400),
        ("/workflow-execution/id/22222222-2222-4222-8222-222222222222", 404),
        ("/workflow-execution/state/nonsense", 400),
        ("/workflow-execution/page?cursor=x", 400),
        ("/workflow-execution/page?limit=201", 400),
        ("/workflow-execution/page?sort=age", 400),
    ];
    for (path, status) in table {
        assert_eq!(bench.server.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_worker_that_is_lost_fails_the_run_and_planners_at_once_decide_the_same() {
    let mut bench = Bench::new().await;
    bench.publish("lost", "global", vec![json!("a change"), json!("b change")]).await;
    let run = bench.start("lost", &[], json!({})).await;
    let acquires = bench.poll().await;
    for job in &acquires {
        bench.answer(job).await;
    }
    let (one, two) = tokio::join!(planner::tick(&bench.server.app), planner::tick(&bench.server.app));
    one.and(two).unwrap();
    assert_eq!(bench.poll().await.len(), 1, "one job, whoever decided");
    bench.server.pass(Millis::from_secs(361)).await;
    bench.plan().await;
    let worker = bench.server.work("/workers/register", json!({"version": "0.2.0"})).await.expect(201);
    bench.worker = worker["uuid"].as_str().unwrap().to_owned();
    bench.did();
    bench.work().await;
    assert_eq!(bench.did(), ["rollback a"]);
    assert_eq!(bench.state(&run).await, "failed_safe_ack worker_lost -");
}

#[tokio::test]
async fn one_failure_cancels_what_nobody_has_begun_and_only_what_was_begun_is_undone() {
    let mut bench = Bench::new().await;
    bench.publish("many", "device", vec![json!("a set"), json!("b set")]).await;
    let run = bench.start("many", &[1, 2, 3], json!({})).await;
    for job in &bench.poll().await {
        bench.answer(job).await;
    }
    bench.plan().await;
    let first = bench.poll_for(1).await;
    bench.fails.insert("execute a", 1);
    bench.answer(&first[0]).await;
    bench.did();
    bench.work().await;
    assert_eq!(bench.did(), ["rollback a 1"]);
    assert_eq!(bench.state(&run).await, "failed_safe_ack step_failed -");
    let jobs = bench.server.get(&format!("/workflow-execution/{run}/jobs?type=execute")).await.expect(200);
    let canceled = jobs["items"].as_array().unwrap().iter().filter(|job| job["canceled"] == true).count();
    assert_eq!((jobs["total"].as_u64(), canceled), (Some(3), 2), "{jobs}");
}
