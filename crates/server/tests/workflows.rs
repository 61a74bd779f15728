//! Workflows over HTTP: written, run by a worker over the native API, and seen to end as they should.

use crate::support::{Answer, Server};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;
use windlass_core::{
    Limits, Millis, Namespace,
    commands::records::{Expect, PutRecord},
    principal::Role,
};
use windlass_engine::{Settings, store::RecordQuery, testing::eventually};
use windlass_server::{Options, flows::planner};

/// The service with its planner.
pub struct Flow {
    pub server: Server,
    planner: JoinHandle<()>,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.planner.abort();
    }
}

impl Flow {
    pub async fn start() -> Self {
        Self::on(Server::start().await)
    }

    fn on(server: Server) -> Self {
        let planner = tokio::spawn(planner::run(server.app.clone()));
        Self { server, planner }
    }

    async fn put(&self, name: &str, yaml: &str) -> Answer {
        let request = Server::request(Role::Editor, Method::PUT, &format!("/api/v1/workflows/{name}"));
        self.server.call(request.body(yaml.to_owned().into()).unwrap()).await
    }

    /// Starts an inline run and gives its id.
    pub async fn run(&self, yaml: &str, input: Value) -> String {
        let started = self.server.post("/api/v1/runs", json!({"source": yaml, "input": input})).await.expect(201);
        started["id"].as_str().unwrap().to_owned()
    }

    async fn claim(&self, wait_ms: u64) -> Option<Value> {
        let claim = json!({"worker": "w", "tags": ["any"], "max": 1, "wait_ms": wait_ms});
        let claimed = self.server.work("/api/v1/leases/claim", claim).await.expect(200);
        claimed["leases"].get(0).cloned()
    }

    /// The next job there is, by its step.
    async fn next(&self) -> Value {
        self.claim(5_000).await.expect("a job can be claimed")
    }

    async fn complete(&self, leased: &Value, result: Value) {
        let done = json!({"lease": leased["lease"], "result": result});
        self.server.work("/api/v1/leases/complete", done).await.expect(200);
    }

    async fn fail(&self, leased: &Value) {
        let failed = json!({"lease": leased["lease"], "message": "broken", "permanent": true});
        self.server.work("/api/v1/leases/fail", failed).await.expect(200);
    }

    /// Works until the run has ended: `act` says what each step gives; None fails it.
    pub async fn work(&self, run: &str, mut act: impl FnMut(&str, &Value) -> Option<Value>) -> Value {
        let ended = async || {
            while let Some(leased) = self.claim(0).await {
                match act(leased["node"].as_str().unwrap(), &leased["payload"]) {
                    Some(result) => self.complete(&leased, result).await,
                    None => self.fail(&leased).await,
                }
            }
            // Retries wait for their time.
            self.server.pass(Millis(20)).await;
            Some(self.shown(run).await).filter(|shown| shown["state"] != "running")
        };
        eventually("the run ends", ended).await
    }

    async fn shown(&self, run: &str) -> Value {
        self.server.get(&format!("/api/v1/runs/{run}")).await.expect(200)
    }

    /// Waits until a step is what is wanted.
    async fn until(&self, run: &str, step: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let there = async || {
            self.server.pass(Millis(20)).await;
            Some(find(&self.shown(run).await, step)).filter(|found| !found.is_null() && fits(found))
        };
        eventually(format!("{step} gets there"), there).await
    }

    async fn job(&self, shown: &Value, step: &str) -> Value {
        let job = find(shown, step)["job"].as_str().unwrap().to_owned();
        self.server.get(&format!("/api/v1/jobs/{job}")).await.expect(200)
    }

    async fn result(&self, shown: &Value, step: &str) -> Value {
        self.job(shown, step).await["result"].clone()
    }
}

fn find(shown: &Value, step: &str) -> Value {
    let steps = shown["steps"].as_array().cloned().unwrap_or_default();
    steps.into_iter().find(|found| found["name"] == step).unwrap_or(Value::Null)
}

/// `name state` of all steps, by name.
fn states(shown: &Value) -> Vec<String> {
    let step = |step: &Value| format!("{} {}", step["name"].as_str().unwrap(), step["state"].as_str().unwrap());
    let mut found: Vec<String> = shown["steps"].as_array().unwrap().iter().map(step).collect();
    found.sort();
    found
}

#[tokio::test]
async fn steps_are_called_as_they_say_and_what_undoes_them_is_not() {
    let flow = Flow::start().await;
    let yaml = "defaults: {tags: [any], name: a step}\nsteps:\n  a: {payload: 1, compensate: {run: x}}\n  b: {payload: 1, name: the last, needs: a, retry: {attempts: 1}}\n";
    let run = flow.run(yaml, json!({})).await;
    flow.work(&run, |node, _| (node != "b").then(|| json!(1))).await;
    let page = flow.server.get(&format!("/api/v1/jobs?run={run}")).await.expect(200);
    let mut names: Vec<(String, Value)> =
        page["items"].as_array().unwrap().iter().map(|job| (job["node"].to_string(), job["name"].clone())).collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("\"a\"", json!("a step")), ("\"b\"", json!("the last")), ("\"~undo/a\"", Value::Null)];
    assert_eq!(names, expected.map(|(node, name)| (node.to_owned(), name)));
    let problem = flow.put("bad", &format!("steps:\n  a: {{name: {}}}\n", "x".repeat(201))).await.expect(422);
    let told = problem.to_string();
    assert!(told.contains("steps.a.name") && told.contains("201 characters; at most 200"), "{told}");
}

#[tokio::test]
async fn definitions_are_versioned_and_faults_name_their_place() {
    let flow = Flow::start().await;
    let good = "steps:\n  a: {payload: 1}\n";
    assert_eq!(flow.put("w", good).await.expect(200)["version"], 1);
    assert_eq!(flow.put("w", good).await.expect(200)["version"], 1, "the same again changes nothing");
    let bad = "steps:\n  a: {payload: 1}\n  b:\n    needs: [zz]\n";
    let problem = flow.put("w", bad).await.expect(422);
    assert_eq!(problem["field"], "steps.b.needs");
    assert!(problem["detail"].as_str().unwrap().starts_with("line 4, column "), "{problem}");
    let second = "description: two\nsteps:\n  a: {payload: 2}\n  b: {needs: a}\n";
    assert_eq!(flow.put("w", second).await.expect(200)["version"], 2);
    let dry = Server::request(Role::Editor, Method::PUT, "/api/v1/workflows/w?dry_run=true");
    let dry = flow.server.call(dry.body("steps: {x: {}}".to_owned().into()).unwrap()).await.expect(200);
    assert_eq!((&dry["version"], &dry["steps"]), (&json!(0), &json!(1)));
    let shown = flow.server.get("/api/v1/workflows/w").await.expect(200);
    assert_eq!((&shown["version"], &shown["source"], &shown["steps"]), (&json!(2), &json!(second), &json!(2)));
    assert_eq!(flow.server.get("/api/v1/workflows/w/versions/1").await.expect(200)["source"], good);
    let versions = flow.server.get("/api/v1/workflows/w/versions").await.expect(200);
    assert_eq!(versions["items"].as_array().unwrap().len(), 2);
    assert_eq!(flow.server.get("/api/v1/workflows").await.expect(200)["items"][0]["name"], "w");
    flow.server.delete("/api/v1/workflows/w").await.expect(204);
    flow.server.get("/api/v1/workflows/w").await.expect(404);
    flow.server.post("/api/v1/workflows/w/runs", json!({})).await.expect(404);
    flow.server.get("/api/v1/workflows/w/versions/2").await.expect(200);
    assert_eq!(flow.put("w", good).await.expect(200)["version"], 3, "numbers go on");
    let named = Server::request(Role::Editor, Method::POST, "/api/v1/workflows");
    let named = flow.server.call(named.body("name: own\nsteps: {x: {}}".to_owned().into()).unwrap()).await.expect(200);
    assert_eq!(named["name"], "own");
}

#[tokio::test]
async fn a_static_run_needs_no_planner() {
    // No planner runs here at all.
    let server = Server::start().await;
    let flow = Flow { planner: tokio::spawn(async {}), server };
    let yaml = "
steps:
  a: {payload: {n: 1}}
  b: {needs: a, tags: [any], priority: 5, retry: {attempts: 1}, timeout: 1m}
  c: {needs: a, retry: {attempts: 1}}
  d: {needs: [b, c]}
  clean: {needs: d, when: always}
  alarm: {needs: d, when: on_failure}
  calm: {needs: b, when: on_failure}
";
    let run = flow.run(yaml, json!(null)).await;
    let shown = flow.work(&run, |step, _| (step != "c").then(|| json!(step))).await;
    let expected =
        ["a completed", "alarm completed", "b completed", "c failed", "calm skipped", "clean completed", "d skipped"];
    assert_eq!((states(&shown), &shown["state"]), (expected.map(str::to_owned).to_vec(), &json!("failed")));
    assert_eq!(find(&shown, "d")["error"]["message"], "step c is failed");
    assert_eq!(find(&shown, "calm")["error"]["reason"], "not_needed");
    assert_eq!(find(&shown, "a")["has_result"], true);
}

#[tokio::test]
async fn conditions_and_templates_see_inputs_and_outputs() {
    let flow = Flow::start().await;
    let yaml = "
steps:
  build: {payload: {target: '${{ input.target }}'}}
  test:
    needs: build
    if: steps.build.output.tests > 0
    payload: {url: 'http://${{ steps.build.output.host }}/x', n: '${{ steps.build.output.tests }}'}
  slow:
    needs: build
    if: input.slow
  report: {needs: [slow], when: always, payload: {slow: '${{ steps.slow.state }}'}}
  broken: {needs: build, payload: '${{ steps.build.output.gone }}'}
";
    let run = flow.run(yaml, json!({"target": "arm", "slow": false})).await;
    let mut seen = Vec::new();
    let shown = flow
        .work(&run, |step, payload| {
            seen.push((step.to_owned(), payload.clone()));
            Some(if step == "build" { json!({"tests": 3, "host": "h"}) } else { json!(null) })
        })
        .await;
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("build", json!({"target": "arm"})),
        ("report", json!({"slow": "skipped"})),
        ("test", json!({"url": "http://h/x", "n": 3})),
    ];
    assert_eq!(seen, expected.map(|(step, payload)| (step.to_owned(), payload)));
    assert_eq!(find(&shown, "slow")["error"]["reason"], "not_needed");
    let broken = find(&shown, "broken");
    assert_eq!((&broken["state"], &broken["error"]["reason"]), (&json!("failed"), &json!("plan_failed")));
    assert!(broken["error"]["message"].as_str().unwrap().contains("gone"), "{broken}");
}

#[tokio::test]
async fn a_map_runs_once_for_each_item_and_gathers() {
    let flow = Flow::start().await;
    let yaml = "
steps:
  list: {}
  each:
    needs: list
    map: {over: steps.list.output, max_parallel: 2}
    payload: {item: '${{ item }}', at: '${{ index }}', of: '${{ size(steps.list.output) }}'}
    retry: {attempts: 1}
  sum: {needs: each, payload: '${{ steps.each.output }}'}
";
    let run = flow.run(yaml, json!(null)).await;
    let list = flow.next().await;
    flow.complete(&list, json!(["x", "y", "z"])).await;
    let (first, second) = (flow.next().await, flow.next().await);
    assert!(flow.claim(50).await.is_none(), "two at a time");
    assert_eq!(first["payload"], json!({"item": "x", "at": 0, "of": 3}));
    assert_eq!(find(&flow.shown(&run).await, "each")["waits_for"], "members");
    flow.complete(&second, json!(2)).await;
    flow.complete(&first, json!(1)).await;
    let shown = flow.work(&run, |step, payload| Some(if step == "sum" { payload.clone() } else { json!(3) })).await;
    assert_eq!((&shown["state"], &shown["total"]), (&json!("completed"), &json!(6)));
    assert_eq!(flow.result(&shown, "sum").await, json!([1, 2, 3]));

    let run = flow.run(yaml, json!(null)).await;
    let act = |step: &str, _: &Value| match step {
        "list" => Some(json!([1, 2])),
        "each[1]" => None,
        _ => Some(json!(7)),
    };
    let shown = flow.work(&run, act).await;
    assert_eq!(shown["state"], "failed");
    assert_eq!(find(&shown, "each")["error"]["message"], "1 of 2 did not complete: each[1]");
    assert_eq!(find(&shown, "sum")["state"], "skipped");
    let none = flow.run(yaml, json!(null)).await;
    let shown = flow.work(&none, |step, _| Some(if step == "list" { json!([]) } else { json!(null) })).await;
    assert_eq!((&shown["state"], flow.result(&shown, "each").await), (&json!("completed"), json!([])));
}

#[tokio::test]
async fn a_sub_workflow_has_its_own_input_and_gives_its_outputs() {
    let flow = Flow::start().await;
    let sub = "
steps:
  get: {payload: {who: '${{ input.who }}'}}
  shout: {needs: get, payload: '${{ steps.get.output }}-${{ input.who }}'}
outputs: {said: '${{ steps.shout.output }}'}
";
    flow.put("hello", sub).await.expect(200);
    let yaml = "
steps:
  one: {workflow: hello, input: {who: '${{ input.name }}'}}
  many:
    needs: one
    map: {over: '${{ input.names }}'}
    workflow: hello
    input: {who: '${{ item }}'}
  end: {needs: [one, many], payload: {one: '${{ steps.one.output.said }}', many: '${{ steps.many.output }}'}}
";
    let run = flow.run(yaml, json!({"name": "ann", "names": ["bob", "eve"]})).await;
    let shown =
        flow.work(&run, |step, payload| Some(if step.ends_with("get") { json!("hi") } else { payload.clone() })).await;
    assert_eq!(shown["state"], "completed", "{shown}");
    let expected = json!({"one": "hi-ann", "many": [{"said": "hi-bob"}, {"said": "hi-eve"}]});
    assert_eq!(flow.result(&shown, "end").await, expected);
    assert!(states(&shown).contains(&"many[1]/shout completed".to_owned()), "{shown}");
    // It is fixed when the run starts, and cannot contain itself.
    let loops = flow.put("hello", "steps: {a: {workflow: hello}}").await;
    assert_eq!(loops.status, 200, "the version in force is what it contains");
    let started = flow.server.post("/api/v1/workflows/hello/runs", json!({})).await;
    assert!(started.expect(422)["detail"].as_str().unwrap().contains("contain each other"));
    let missing = flow.server.post("/api/v1/runs", json!({"source": "steps: {a: {workflow: ghost}}"})).await;
    missing.expect(404);
}

#[tokio::test]
async fn steps_wait_for_events_people_and_time() {
    let flow = Flow::start().await;
    let yaml = "
steps:
  paid: {wait: {event: paid}}
  ok: {needs: paid, wait: {approval: true}}
  nap: {needs: paid, wait: {for: 20ms}}
  ship: {needs: [ok, nap, paid], payload: {by: '${{ steps.ok.output.by }}', sum: '${{ steps.paid.output.sum }}'}}
  late: {wait: {event: never, timeout: 20ms, on_timeout: continue}}
";
    let run = flow.run(yaml, json!(null)).await;
    let at = |rest: &str| format!("/api/v1/runs/{run}/{rest}");
    assert_eq!(flow.until(&run, "paid", |_| true).await["waits_for"], "event");
    flow.server.post(&at("steps/ok/approve"), json!({})).await.expect(404);
    let told = flow.server.post(&at("events"), json!({"name": "paid", "payload": {"sum": 7}})).await.expect(200);
    assert_eq!(told, json!({"steps": 1, "kept": false}));
    flow.until(&run, "ok", |step| step["waits_for"] == "approval").await;
    let step = flow.server.post(&at("steps/ok/approve"), json!({"comment": "fine"})).await.expect(200);
    assert_eq!(step["state"], "completed");
    let shown = flow.work(&run, |_, payload| Some(payload.clone())).await;
    assert_eq!(flow.result(&shown, "ship").await, json!({"by": "test-admin", "sum": 7}));
    assert_eq!(flow.result(&shown, "late").await, json!({"timed_out": true}));
    flow.server.post(&at("events"), json!({"name": "paid"})).await.expect(422);

    let run = flow.run("steps:\n  ok: {wait: {approval: true}}\n  go: {needs: ok}\n", json!(null)).await;
    let rejected = flow.server.post(&format!("/api/v1/runs/{run}/steps/ok/reject"), json!({"comment": "no"})).await;
    assert_eq!(rejected.expect(200)["error"]["message"], "rejected by test-admin: no");
    let shown = flow.shown(&run).await;
    assert_eq!((&shown["state"], find(&shown, "go")["state"].clone()), (&json!("failed"), json!("skipped")));
    let early = flow.run("steps:\n  a: {}\n  b: {needs: a, wait: {event: e}}\n", json!(null)).await;
    let kept = flow.server.post(&format!("/api/v1/runs/{early}/events"), json!({"name": "e", "payload": 1})).await;
    assert_eq!(kept.expect(200)["kept"], true);
    assert_eq!(flow.work(&early, |_, _| Some(json!(0))).await["state"], "completed");
    let over = flow.run("steps:\n  a: {wait: {approval: true, timeout: 10ms}}\n", json!(null)).await;
    let shown = flow.work(&over, |_, _| None).await;
    assert_eq!(find(&shown, "a")["error"]["message"], "nobody approved it in time");
}

#[tokio::test]
async fn what_was_done_is_undone_in_reverse_after_a_failure() {
    let flow = Flow::start().await;
    let yaml = "
steps:
  hotel: {payload: {night: 1}, compensate: {payload: {cancel: '${{ output.id }}', night: '${{ payload.night }}'}}}
  flight: {needs: hotel, compensate: {run: 'cancel flight'}}
  car: {needs: flight, retry: {attempts: 1}, compensate: {run: never}}
";
    let run = flow.run(yaml, json!(null)).await;
    let mut order = Vec::new();
    let shown = flow
        .work(&run, |step, payload| {
            order.push((step.to_owned(), payload.clone()));
            (step != "car").then(|| json!({"id": step}))
        })
        .await;
    let undone: Vec<_> = order[3..].to_vec();
    let expected =
        [("~undo/flight", json!({"shell": "cancel flight"})), ("~undo/hotel", json!({"cancel": "hotel", "night": 1}))];
    assert_eq!(undone, expected.map(|(step, payload)| (step.to_owned(), payload)));
    assert_eq!(shown["state"], "failed");
    let good = flow.run(yaml, json!(null)).await;
    let shown = flow.work(&good, |step, _| Some(json!({"id": step}))).await;
    assert_eq!((&shown["state"], &shown["total"]), (&json!("completed"), &json!(3)), "nothing is undone");
    // What was undone is done again.
    let again = flow.server.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.expect(201);
    let again = again["id"].as_str().unwrap().to_owned();
    let mut order = Vec::new();
    let act = |step: &str, _: &Value| {
        order.push(step.to_owned());
        Some(json!({"id": 1}))
    };
    assert_eq!(flow.work(&again, act).await["state"], "completed");
    assert_eq!(order, ["hotel", "flight", "car"]);
}

#[tokio::test]
async fn a_retry_keeps_what_was_finished() {
    let flow = Flow::start().await;
    let yaml = "
steps:
  a: {}
  m: {needs: a, map: {over: '${{ [1, 2, 3] }}'}, payload: '${{ item }}', retry: {attempts: 1}}
  b: {needs: m, name: the sum, payload: '${{ steps.m.output }}'}
  clean: {needs: b, when: always}
";
    let run = flow.run(yaml, json!(null)).await;
    flow.server.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.expect(422);
    let shown = flow.work(&run, |step, _| (step != "m[1]").then(|| json!(step))).await;
    assert_eq!(shown["state"], "failed");
    let again = flow.server.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.expect(201);
    let again = again["id"].as_str().unwrap().to_owned();
    let mut ran = Vec::new();
    let act = |step: &str, _: &Value| {
        ran.push(step.to_owned());
        Some(json!(format!("{step} again")))
    };
    let shown = flow.work(&again, act).await;
    assert_eq!(
        (ran, &shown["state"], &shown["retry_of"]),
        (vec!["m[1]".into(), "b".into(), "clean".into()], &json!("completed"), &json!(run))
    );
    assert_eq!(flow.result(&shown, "m").await, json!(["m[0]", "m[1] again", "m[2]"]));
    assert!(find(&shown, "a")["kept_from"].is_string());
    assert_eq!(flow.job(&shown, "b").await["name"], "the sum");
    flow.server.post(&format!("/api/v1/runs/{again}/retry"), json!({})).await.expect(422);
}

/// Only what was done in the run before comes from there: not what ran again, was worked out again or was approved anew.
#[tokio::test]
async fn after_a_retry_only_the_steps_that_were_kept_say_where_they_come_from() {
    let flow = Flow::start().await;
    let yaml = "
steps:
  a: {}
  alarm: {needs: a, when: on_failure}
  early: {wait: {approval: true}}
  b: {needs: a, retry: {attempts: 1}}
  ok: {needs: b, wait: {approval: true}}
  none: {needs: b, map: {over: '${{ [] }}'}}
  pause: {needs: b, wait: {for: 1ms}}
  c: {needs: [ok, none, pause]}
";
    let run = flow.run(yaml, json!(null)).await;
    flow.until(&run, "early", |step| step["waits_for"] == "approval").await;
    flow.server.post(&format!("/api/v1/runs/{run}/steps/early/approve"), json!({})).await.expect(200);
    let shown = flow.work(&run, |step, _| (step != "b").then(|| json!(step))).await;
    assert_eq!(shown["state"], "failed");
    let kept = |shown: &Value| -> Vec<String> {
        let steps = shown["steps"].as_array().unwrap().iter().filter(|step| step["kept_from"].is_string());
        let mut names: Vec<String> = steps.map(|step| step["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(kept(&shown), Vec::<String>::new());
    let again = flow.server.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.expect(201);
    let again = again["id"].as_str().unwrap().to_owned();
    assert_eq!(kept(&flow.shown(&again).await), ["a", "early"]);
    let b = flow.next().await;
    assert_eq!(b["node"], "b", "nothing failed, so there is nothing to raise the alarm for");
    flow.complete(&b, json!(1)).await;
    flow.until(&again, "ok", |step| step["waits_for"] == "approval").await;
    flow.server.post(&format!("/api/v1/runs/{again}/steps/ok/approve"), json!({})).await.expect(200);
    let shown = flow.work(&again, |step, _| (step == "c").then(|| json!(1))).await;
    assert_eq!((&shown["state"], kept(&shown)), (&json!("completed"), vec!["a".to_owned(), "early".into()]));
    assert_eq!(find(&shown, "a")["kept_from"], find(&flow.shown(&run).await, "a")["job"]);
    assert_eq!(find(&shown, "alarm")["state"], "skipped");
}

#[tokio::test]
async fn cancelling_ends_what_waits_and_tells_what_runs() {
    let flow = Flow::start().await;
    let yaml = "steps:\n  a: {}\n  b: {needs: a, if: 'true'}\n  c: {wait: {event: e}}\n";
    let run = flow.run(yaml, json!(null)).await;
    let leased = flow.next().await;
    let shown = flow.server.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    assert_eq!((&shown["state"], &shown["cancelled"]), (&json!("running"), &json!(2)));
    let renewed = flow.server.work("/api/v1/leases/renew", json!({"lease": leased["lease"]})).await.expect(200);
    assert_eq!(renewed["cancelled"], true);
    flow.complete(&leased, json!(1)).await;
    let shown = flow.shown(&run).await;
    assert_eq!((&shown["state"], &shown["cancelled_by"]), (&json!("cancelled"), &json!("test-admin")));
}

#[tokio::test]
async fn a_run_goes_on_after_a_server_stopped_before_its_turn() {
    let server = Server::start().await;
    let flow = Flow { planner: tokio::spawn(async {}), server };
    let yaml = "steps:\n  a: {}\n  b: {needs: a, payload: '${{ steps.a.output }}'}\n  c: {needs: b}\n";
    let run = flow.run(yaml, json!(null)).await;
    let a = flow.next().await;
    flow.complete(&a, json!(5)).await;
    // Whoever should have decided is gone. Its turn is in the store.
    assert!(flow.claim(50).await.is_none());
    assert_eq!(find(&flow.shown(&run).await, "b")["waits_for"], "plan");
    let (one, two) = tokio::join!(planner::tick(&flow.server.app), planner::tick(&flow.server.app));
    assert_eq!((one.unwrap(), two.unwrap()), (0, 0), "two at once do no harm");
    let b = flow.next().await;
    assert_eq!((&b["node"], &b["payload"]), (&json!("b"), &json!(5)));
    assert!(flow.claim(50).await.is_none());
    flow.complete(&b, json!(1)).await;
    assert_eq!(flow.work(&run, |_, _| Some(json!(0))).await["state"], "completed");
}

#[tokio::test]
async fn runs_are_listed_filtered_repeated_and_waited_for() {
    let flow = Flow::start().await;
    flow.put("w", "input_schema: {type: object, required: [n]}\nsteps: {a: {payload: '${{ input.n }}'}}")
        .await
        .expect(200);
    let bad = flow.server.post("/api/v1/workflows/w/runs", json!({"input": {}})).await.expect(422);
    assert_eq!(bad["field"], "input");
    let body = json!({"input": {"n": 1}, "idempotency_key": "k"});
    let first = flow.server.post("/api/v1/workflows/w/runs", body.clone()).await.expect(201);
    let same = flow.server.post("/api/v1/workflows/w/runs", body).await.expect(200);
    assert_eq!((&first["id"], &same["existing"]), (&same["id"], &json!(true)));
    let other = json!({"input": {"n": 2}, "idempotency_key": "k"});
    assert!(
        flow.server.post("/api/v1/workflows/w/runs", other).await.expect(422)["type"]
            .as_str()
            .unwrap()
            .ends_with("key-reused")
    );
    let run = first["id"].as_str().unwrap().to_owned();
    let waited = flow.server.get(&format!("/api/v1/runs/{run}/wait?wait_ms=10")).await.expect(200);
    assert_eq!(waited["state"], "running");
    let path = format!("/api/v1/runs/{run}/wait?wait_ms=10000");
    let waits = flow.server.get(&path);
    let works = flow.work(&run, |_, _| Some(json!(1)));
    // Whoever waits for a run follows no events: those of others would wake it.
    let follows = async { flow.server.engine.counts().readers };
    let (waited, _, readers) = tokio::join!(waits, works, follows);
    assert_eq!(readers, 0);
    assert_eq!(waited.expect(200)["state"], "completed");
    let inline = flow.run("steps: {x: {}}", json!(null)).await;
    let page = flow.server.get("/api/v1/runs?limit=1").await.expect(200);
    assert_eq!(page["items"][0]["id"], inline, "newest first");
    let next = page["next"].as_str().unwrap();
    let page = flow.server.get(&format!("/api/v1/runs?limit=1&cursor={next}")).await.expect(200);
    assert_eq!((&page["items"][0]["id"], &page["items"][0]["workflow"]), (&json!(run), &json!("w@1")));
    for (query, expected) in [("workflow=w", 1), ("state=running", 1), ("state=failed", 0), ("namespace=other", 0)] {
        let page = flow.server.get(&format!("/api/v1/runs?{query}")).await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), expected, "{query}");
    }
    flow.server.get("/api/v1/runs/0199a000-0000-7000-8000-000000000000").await.expect(404);
}

#[tokio::test]
async fn the_events_of_a_run_are_those_of_its_jobs() {
    use http_body_util::BodyExt;
    let flow = Flow::start().await;
    let yaml = "steps:\n  m: {map: {over: '${{ [1, 2] }}'}}\n";
    let (run, other) = (flow.run(yaml, json!(null)).await, flow.run("steps: {x: {}}", json!(null)).await);
    let path = format!("/api/v1/events?run={run}&after=0");
    let request = Server::request(Role::Viewer, Method::GET, &path).body(Default::default()).unwrap();
    let mut stream = flow.server.open(request).await.into_body();
    flow.work(&run, |_, _| Some(json!(1))).await;
    flow.work(&other, |_, _| Some(json!(1))).await;
    let mut kinds: Vec<String> = Vec::new();
    while !kinds.iter().any(|kind| kind == "run_finished") {
        let frame = tokio::time::timeout(Duration::from_secs(5), stream.frame()).await.expect("it goes on");
        let text = String::from_utf8(frame.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
        kinds.extend(text.lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned));
    }
    let count = |kind: &str| kinds.iter().filter(|found| *found == kind).count();
    assert_eq!((count("run_started"), count("run_grew"), count("run_finished")), (1, 1, 1), "{kinds:?}");
    assert_eq!((count("submitted"), count("completed")), (3, 3), "the step, and its two items: {kinds:?}");
}

#[tokio::test]
async fn a_repeated_key_tells_what_became_of_its_run_also_past_the_retention() {
    let limits = Limits { retention: Millis(1), ..Limits::default() };
    let flow = Flow::on(Server::set(Settings { limits, ..Settings::default() }, Options::default()).await);
    let body = json!({"source": "steps: {a: {retry: {attempts: 1}}}", "idempotency_key": "k"});
    let first = flow.server.post("/api/v1/runs", body.clone()).await.expect(201);
    let leased = flow.next().await;
    flow.fail(&leased).await;
    let job = format!("/api/v1/jobs/{}", leased["job"].as_str().unwrap());
    let gone = async || {
        flow.server.pass(Millis(5)).await;
        (flow.server.get(&job).await.status == 404).then_some(())
    };
    eventually("its job is removed", gone).await;
    let same = flow.server.post("/api/v1/runs", body.clone()).await.expect(200);
    assert_eq!((&same["id"], &same["state"], &same["existing"]), (&first["id"], &json!("failed"), &json!(true)));
    // Of a run that is gone all the same (as older versions left them) nobody says how it ended.
    let keys = RecordQuery {
        namespace: Namespace::default(),
        kind: "run_key".into(),
        parent: None,
        facet: None,
        after: None,
        limit: 10,
    };
    let record = flow.server.engine.store().records(&keys).await.unwrap().remove(0);
    let gone = record.value.replace(first["id"].as_str().unwrap(), "01890000-0000-7000-8000-000000000000");
    let put = PutRecord {
        key: record.key,
        expect: Expect::Version(record.version),
        parent: None,
        value: gone.into(),
        facets: vec![],
        expires_at: record.due,
    };
    flow.server.engine.run(put).await.unwrap();
    let new = flow.server.post("/api/v1/runs", body.clone()).await.expect(201);
    assert_ne!(new["id"], first["id"]);
    assert_eq!(flow.server.post("/api/v1/runs", body).await.expect(200)["id"], new["id"]);
}
