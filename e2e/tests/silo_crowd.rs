//! Runners of Silo's protocol as processes of their own, on jobs that revisions set off, with mixed tags and priorities: no job
//! is given twice, each tag set is served by priority and then by age, and a subscriber that keeps losing its connection
//! hears of everything once.

use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    process::{Child, Command, Stdio},
    time::Instant,
};
use windlass_e2e::{ADMIN, Plain, Server, knob};

/// Tags and priority of each definition. Each tag set has several priorities.
const DEFINITIONS: [(&str, &str, i32); 10] = [
    ("a", "", 100),
    ("b", "", 10),
    ("c", "create", 50),
    ("d", "create", 5),
    ("e", "create", 100),
    ("f", "create, linux", 50),
    ("g", "create, linux", 1),
    ("h", "gpu", 100),
    ("i", "gpu", -7),
    ("j", "create, gpu", 30),
];
const RUNNERS: [&[&str]; 5] = [&["create", "linux", "gpu"], &["create"], &["gpu", "create"], &["linux", "create"], &[]];
const RECONNECTS: usize = 5;

fn write_definitions(folder: &std::path::Path) {
    for (name, tags, priority) in DEFINITIONS {
        let text = format!(
            "job:\n  name: {name}\n  trigger: {{type: revision_created}}\n  compute: {{type: custom, command: c}}\n  \
             runner: {{tags: [{tags}]}}\n  priority: {priority}\n"
        );
        std::fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    }
}

struct Heard {
    kind: String,
    data: Value,
}

/// Everything there is to hear up to the n-th completion, over several connections, each dropped in the middle of things.
fn listen(address: &str, from: u64, completions: usize) -> Vec<Heard> {
    let (mut last, mut heard, mut done) = (from, Vec::new(), 0);
    for round in 1..=RECONNECTS + 1 {
        let until = completions * round / (RECONNECTS + 1);
        Plain::connect(address, ADMIN).follow("/api/events", Some(last), |id, kind, data| {
            assert!(id > last, "{id} after {last}: again, or out of order");
            last = id;
            done += usize::from(kind == "job.completed");
            heard.push(Heard { kind: kind.to_owned(), data });
            done >= until
        });
    }
    heard
}

fn runner(address: &str, admin: &mut Plain, at: usize) -> Child {
    let body = json!({"name": format!("runner-{at}"), "tags": RUNNERS[at % RUNNERS.len()]});
    let (status, made) = admin.call("POST", "/api/runners", &body);
    assert_eq!(status, 201, "{made}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_silo-loop"));
    command.arg(address).env("SILO_RUNNER_TOKEN", made["token"].as_str().unwrap());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Jobs in the order they were made, each with its definition.
fn set_off(admin: &mut Plain, jobs: usize) -> Vec<(String, String)> {
    assert_eq!(admin.call("POST", "/api/items", &json!({"part_number": "A"})).0, 201);
    let mut made = Vec::new();
    while made.len() < jobs {
        let (status, answer) = admin.call("POST", "/api/items/A/revisions", &Value::Null);
        assert_eq!(status, 201, "{answer}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let fired = answer["triggered_jobs"].as_array().unwrap();
        made.extend(fired.iter().map(|job| (text(&job["id"]), text(&job["definition_name"]))));
    }
    made
}

/// In each tag set, claims go by priority and then by age.
fn check_order(made: &[(String, String)], heard: &[Heard]) {
    let definitions: BTreeMap<&str, (&str, i32)> =
        DEFINITIONS.iter().map(|(name, tags, priority)| (*name, (*tags, *priority))).collect();
    let place: HashMap<&str, (&str, i32, usize)> = made
        .iter()
        .enumerate()
        .map(|(at, (id, name))| (id.as_str(), (definitions[&**name].0, definitions[&**name].1, at)))
        .collect();
    let mut last: BTreeMap<&str, (i32, usize)> = BTreeMap::new();
    for claimed in heard.iter().filter(|one| one.kind == "job.claimed") {
        let (tags, priority, age) = place[claimed.data["id"].as_str().unwrap()];
        let before = last.insert(tags, (priority, age));
        assert!(before.is_none_or(|before| before < (priority, age)), "{tags}: {before:?} before {priority} {age}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runner_processes_share_the_jobs_and_every_event_is_heard_once() {
    let (jobs, runners) = (knob("WINDLASS_SILO_JOBS", 300), knob("WINDLASS_SILO_RUNNERS", 3));
    let (folder, definitions) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_definitions(definitions.path());
    let settings = ["--silo-jobs", definitions.path().to_str().unwrap()];
    let server = Server::start_with(folder.path(), None, &settings).await;
    let address = server.address().to_owned();
    let mut admin = Plain::connect(&address, ADMIN);
    let listener = {
        let address = address.clone();
        std::thread::spawn(move || listen(&address, 0, jobs))
    };
    let made = set_off(&mut admin, jobs);
    assert_eq!(made.len(), jobs, "one for each definition and revision");

    let begun = Instant::now();
    let children: Vec<Child> = (0..runners).map(|at| runner(&address, &mut admin, at)).collect();
    let mut claimed: HashMap<String, usize> = HashMap::new();
    for (at, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "runner {at}");
        for id in String::from_utf8(output.stdout).unwrap().lines() {
            assert_eq!(claimed.insert(id.to_owned(), at), None, "{id} was given twice");
        }
    }
    let took = begun.elapsed();
    assert_eq!(claimed.len(), jobs, "every job was done");
    println!("{jobs} jobs by {runners} processes in {took:?}: {:.0}/s", jobs as f64 / took.as_secs_f64());

    let heard = listener.join().unwrap();
    let mut told: HashMap<&str, Vec<&str>> = HashMap::new();
    for one in heard.iter().filter(|one| one.kind.starts_with("job.")) {
        told.entry(one.data["id"].as_str().unwrap()).or_default().push(&one.kind);
    }
    for (id, _) in &made {
        assert_eq!(told[id.as_str()], ["job.created", "job.claimed", "job.progress", "job.completed"], "{id}");
    }
    assert_eq!(told.len(), jobs);
    check_order(&made, &heard);
}
