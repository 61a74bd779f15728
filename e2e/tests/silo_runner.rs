//! `silorunner` and Silo's protocol: the real programs, with both definitions of Silo's documentation and a stand-in for the
//! CAD program, killed, cancelled and stopped in the middle.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use windlass_e2e::{ADMIN, Server, knob, program};
use windlass_engine::testing::eventually;
use windlass_stores::testing::Cluster;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/silo");

fn answer(bytes: &[u8]) -> (u16, Vec<u8>) {
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
    let status = String::from_utf8_lossy(&bytes[..end]).split(' ').nth(1).unwrap().parse().unwrap();
    (status, bytes[end + 4..].to_vec())
}

async fn raw(server: &Server, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {ADMIN}\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        server.address(),
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    answer(&bytes)
}

async fn call(server: &Server, method: &str, path: &str, body: Value) -> Value {
    let (status, bytes) = raw(server, method, path, "application/json", body.to_string().as_bytes()).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).unwrap_or_default()
}

async fn get(server: &Server, path: &str) -> Value {
    call(server, "GET", path, json!({})).await
}

async fn upload(server: &Server, path: &str, body: &[u8]) {
    let (status, bytes) = raw(server, "PUT", path, "application/json", body).await;
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&bytes));
}

/// Waits until a job is as wanted.
async fn until(server: &Server, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually("the job becomes so", async || Some(get(server, &format!("/api/jobs/{id}")).await).filter(&wanted)).await
}

fn is(status: &'static str) -> impl Fn(&Value) -> bool {
    move |job| job["status"] == status
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The SHA-256 that the system's own program computes.
fn sha256(bytes: &[u8], folder: &Path) -> String {
    let file = folder.join("to-digest");
    std::fs::write(&file, bytes).unwrap();
    let told = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(told.stdout).unwrap()[..64].to_owned()
}

/// A server with the examples' definitions, and a folder for everything.
struct World {
    server: Server,
    folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        Self::on(None).await
    }

    async fn on(database: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_with(&folder.path().join("data"), database, &["--silo-jobs", EXAMPLES]).await;
        Self { server, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A registered runner at work; `more` is added to its configuration.
    async fn runner(&self, more: &str) -> Runner {
        let wanted = json!({"name": "worker-01", "tags": ["create", "linux"]});
        let token = text_of(&call(&self.server, "POST", "/api/runners", wanted).await["token"]);
        let config = format!(
            "server_url: {}\ntoken: {token}\nname: worker-01\ntags: [create]\npoll_interval: 0.1\nheartbeat_interval: 0.3\n\
             create_path: {EXAMPLES}/create.py\nwork_dir: {}\n{more}",
            self.server.url,
            self.path("jobs").display(),
        );
        std::fs::write(self.path("runner.yaml"), config).unwrap();
        Runner::start(&["--config", self.path("runner.yaml").to_str().unwrap()])
    }

    /// A command of a shell in place of the CAD program's validation.
    async fn shell_runner(&self, text: &str) -> Runner {
        self.runner(&format!("commands:\n  create-validate: {}\n", json!(["/bin/sh", "-c", text]))).await
    }

    async fn assembly(&self, seconds: f64) -> String {
        call(&self.server, "POST", "/api/items", json!({"part_number": "ASM-001", "item_type": "assembly"})).await;
        upload(&self.server, "/api/items/ASM-001/revisions/2/files/design.json", &design(seconds)).await;
        let made = call(&self.server, "POST", "/api/items/ASM-001/revisions", json!({})).await;
        assert_eq!(made["triggered_jobs"][0]["definition_name"], "assembly-validate");
        text_of(&made["triggered_jobs"][0]["id"])
    }

    /// A file that a command wrote a process id into.
    async fn pid(&self, name: &str) -> i32 {
        let look = async || std::fs::read_to_string(self.path(name)).ok().filter(|text| text.ends_with('\n'));
        eventually(format!("{name} comes"), look).await.trim().parse().unwrap()
    }
}

fn design(seconds: f64) -> Vec<u8> {
    let mut design: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{EXAMPLES}/design.json")).unwrap()).unwrap();
    design["seconds"] = json!(seconds);
    design.to_string().into_bytes()
}

struct Runner {
    child: Option<Child>,
}

impl Runner {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(program("silorunner"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        Self { child: Some(command.spawn().expect("the runner starts")) }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.as_ref().expect("it runs").id() as i32), signal).expect("it is ours");
    }

    fn ends(mut self) -> Option<i32> {
        self.child.take().expect("it runs").wait().expect("it is ours").code()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

async fn is_gone(pid: i32) -> bool {
    let look = async || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let over = state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        (state.is_empty() || over).then_some(true)
    };
    eventually(format!("process {pid} is gone"), look).await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_definitions_of_the_documentation_run_on_the_embedded_store() {
    both_definitions(&World::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_definitions_of_the_documentation_run_on_postgres() {
    let cluster = Cluster::start();
    both_definitions(&World::on(Some(&cluster.create_database("runner"))).await).await;
}

async fn both_definitions(world: &World) {
    let server = &world.server;
    let runner = world.runner("").await;
    let id = world.assembly(0.05).await;
    let job = until(server, &id, |job| job["completed_at"].is_string()).await;
    assert_eq!((&job["status"], &job["result"]["rebuilt"].as_array().map(Vec::len)), (&json!("completed"), &Some(5)));
    assert_eq!(job["runner_name"], "worker-01");
    let graph = get(server, "/api/items/ASM-001/dag").await;
    assert_eq!((&graph["revision_number"], graph["nodes"].as_array().unwrap().len()), (&json!(2), 5), "{graph}");
    assert!(graph["nodes"].as_array().unwrap().iter().all(|node| node["validation_state"] == "clean"));
    let log = get(server, &format!("/api/jobs/{id}/logs")).await;
    let messages: Vec<&str> = log.as_array().unwrap().iter().filter_map(|entry| entry["message"].as_str()).collect();
    assert_eq!(messages.last(), Some(&"5 of 5 nodes were rebuilt"), "{messages:?}");

    call(server, "POST", "/api/items", json!({"part_number": "F01-0001"})).await;
    upload(server, "/api/items/F01-0001/revisions/1/files/design.json", &design(0.0)).await;
    let wanted = json!({"definition_name": "part-export-step", "part_number": "F01-0001"});
    let id = text_of(&call(server, "POST", "/api/jobs", wanted).await["id"]);
    let job = until(server, &id, |job| job["completed_at"].is_string()).await;
    assert_eq!((&job["status"], &job["result"]["shapes"]), (&json!("completed"), &json!(5)), "{job}");
    let left = &job["result"]["artifacts"][0];
    assert_eq!(left["key"], "exports/F01-0001_rev1.step");
    let path = format!("/api/jobs/{id}/artifacts/exports/F01-0001_rev1.step");
    let (status, step) = raw(server, "GET", &path, "application/json", b"").await;
    assert!(status == 200 && step.starts_with(b"ISO-10303-21;"), "{status}");
    assert_eq!(left["sha256"], json!(sha256(&step, world.folder.path())), "as the runner measured it");
    let listed = get(server, &format!("/api/jobs/{id}/artifacts")).await;
    assert_eq!((&listed[0]["sha256"], &listed[0]["size"]), (&left["sha256"], &json!(step.len())));

    runner.signal(Signal::SIGTERM);
    assert_eq!(runner.ends(), Some(0));
    assert_eq!(std::fs::read_dir(world.path("jobs")).unwrap().count(), 0, "no folder is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_in_the_middle_is_waited_for() {
    let mut world = World::start().await;
    let _runner = world.runner("").await;
    let id = world.assembly(0.4).await;
    until(&world.server, &id, |job| job["progress"].as_i64() >= Some(20)).await;
    world.server.kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await; // How long it is away is what is tested.
    world.server.restart().await;
    let job = until(&world.server, &id, |job| job["completed_at"].is_string()).await;
    assert_eq!((&job["status"], &job["retry_job_id"]), (&json!("completed"), &Value::Null), "{job}");
    let log = get(&world.server, &format!("/api/jobs/{id}/logs")).await;
    let rebuilt =
        log.as_array().unwrap().iter().filter(|entry| text_of(&entry["message"]).starts_with("rebuilt")).count();
    assert!(rebuilt >= 5, "nothing of its log is lost: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_is_lost_to_a_server_that_keeps_being_killed() {
    let mut world = World::start().await;
    let runs = world.path("runs");
    let _runner = world.shell_runner(&format!("echo $SILO_JOB_ID >> {}; sleep 0.02", runs.display())).await;
    call(&world.server, "POST", "/api/items", json!({"part_number": "ASM-001", "item_type": "assembly"})).await;
    let mut jobs = Vec::new();
    for round in 0..knob("WINDLASS_RUNNER_KILLS", 4) {
        for _ in 0..10 {
            let wanted = json!({"definition_name": "assembly-validate", "part_number": "ASM-001"});
            jobs.push(text_of(&call(&world.server, "POST", "/api/jobs", wanted).await["id"]));
        }
        tokio::time::sleep(Duration::from_millis(40 + 13 * (round as u64 % 9))).await; // At another moment each time.
        world.server.kill();
        world.server.restart().await;
    }
    for id in &jobs {
        let job = until(&world.server, id, |job| job["completed_at"].is_string()).await;
        assert_eq!((&job["status"], &job["retry_job_id"]), (&json!("completed"), &Value::Null), "{job}");
    }
    let mut ran: Vec<String> = std::fs::read_to_string(runs).unwrap().lines().map(str::to_owned).collect();
    ran.sort();
    jobs.sort();
    assert_eq!(ran, jobs, "each ran once, and none waited for its timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_ready_while_the_server_is_away_is_delivered() {
    let mut world = World::start().await;
    let (begun, go) = (world.path("begun"), world.path("go"));
    let text = format!("echo $$ > {}; while [ ! -e {} ]; do sleep 0.05; done", begun.display(), go.display());
    let _runner = world.shell_runner(&format!("{text}; echo '{{\"summary\": \"late\"}}' > $SILO_RESULT_FILE")).await;
    let id = world.assembly(0.0).await;
    let pid = world.pid("begun").await;
    world.server.kill();
    std::fs::write(go, "").unwrap();
    assert!(is_gone(pid).await, "the command ends while nobody can be told");
    world.server.restart().await;
    let job = until(&world.server, &id, |job| job["completed_at"].is_string()).await;
    assert_eq!((&job["status"], &job["result"]["summary"]), (&json!("completed"), &json!("late")), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_ends_with_its_grandchildren_and_the_runner_goes_on() {
    let world = World::start().await;
    let text = format!(
        "if [ -e {once} ]; then exit 0; fi; echo x > {once}; (sleep 1000 & echo $! > {pid}; wait) & wait",
        once = world.path("once").display(),
        pid = world.path("pid").display()
    );
    let _runner = world.shell_runner(&text).await;
    let id = world.assembly(0.0).await;
    let pid = world.pid("pid").await;
    call(&world.server, "POST", &format!("/api/jobs/{id}/cancel"), json!({})).await;
    assert!(is_gone(pid).await, "a silent command is noticed by the repeated progress");
    let wanted = json!({"definition_name": "assembly-validate", "part_number": "ASM-001"});
    let next = text_of(&call(&world.server, "POST", "/api/jobs", wanted).await["id"]);
    until(&world.server, &next, is("completed")).await;
    let job = get(&world.server, &format!("/api/jobs/{id}")).await;
    assert_eq!((&job["status"], &job["error_message"]), (&json!("cancelled"), &Value::Null), "nothing was reported");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_asked_to_end_reports_what_it_ran() {
    let world = World::start().await;
    let text = format!("(trap '' TERM; sleep 1000) & sleep 1000 & echo $! > {}; wait", world.path("pid").display());
    let runner = world.shell_runner(&text).await;
    let id = world.assembly(0.0).await;
    let pid = world.pid("pid").await;
    let begun = Instant::now();
    runner.signal(Signal::SIGTERM);
    assert_eq!(runner.ends(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(9), "what ends when asked to is not waited for");
    assert!(is_gone(pid).await);
    let job = get(&world.server, &format!("/api/jobs/{id}")).await;
    assert_eq!((&job["status"], &job["error_message"]), (&json!("failed"), &json!("runner shutting down")), "{job}");
    let retry = until(&world.server, &text_of(&job["retry_job_id"]), is("pending")).await;
    assert_eq!(retry["retry_of"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_runner_that_cannot_report() {
    let mut world = World::start().await;
    let runner = world.shell_runner(&format!("echo $$ > {}; exec sleep 1000", world.path("pid").display())).await;
    world.assembly(0.0).await;
    let pid = world.pid("pid").await;
    world.server.kill();
    runner.signal(Signal::SIGTERM);
    assert!(is_gone(pid).await);
    tokio::time::sleep(Duration::from_millis(500)).await; // Two signals of one moment are one.
    runner.signal(Signal::SIGTERM);
    assert_eq!(runner.ends(), Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_killed_takes_its_command_along() {
    let world = World::start().await;
    let text = format!("sleep 1000 & echo $! > {}; wait", world.path("pid").display());
    let runner = world.shell_runner(&text).await;
    world.assembly(0.0).await;
    let pid = world.pid("pid").await;
    runner.signal(Signal::SIGKILL);
    assert_eq!(runner.ends(), None);
    assert!(is_gone(pid).await, "another runner may be given the job");
}

#[tokio::test(flavor = "multi_thread")]
async fn much_that_is_printed_arrives_whole_and_in_order() {
    let world = World::start().await;
    let _runner = world.shell_runner("seq 1 20000").await;
    let id = world.assembly(0.0).await;
    let begun = Instant::now();
    until(&world.server, &id, is("completed")).await;
    let log = get(&world.server, &format!("/api/jobs/{id}/logs?limit=10000")).await;
    let entries: Vec<String> = log.as_array().unwrap().iter().map(|entry| text_of(&entry["message"])).collect();
    println!("20000 lines, {} entries, {:?}", entries.len(), begun.elapsed());
    let expected: Vec<String> = (1..=20_000).map(|number| number.to_string()).collect();
    assert!(entries.join("\n").lines().eq(expected.iter().map(String::as_str)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assembly_may_have_the_files_of_its_parts() {
    let world = World::start().await;
    let server = &world.server;
    let list = "find . -type f | sort | jq -R . | jq -s '{found: .}' > $SILO_RESULT_FILE";
    call(server, "POST", "/api/items", json!({"part_number": "PRT-1"})).await;
    upload(server, "/api/items/PRT-1/revisions/1/files/sub/part.json", b"{}").await;
    call(server, "POST", "/api/items", json!({"part_number": "ASM-001", "item_type": "assembly"})).await;
    call(server, "POST", "/api/items/ASM-001/bom", json!({"child_part_number": "PRT-1"})).await;
    upload(server, "/api/items/ASM-001/revisions/2/files/design.json", b"{}").await;
    let made = call(server, "POST", "/api/items/ASM-001/revisions", json!({})).await;
    let command = json!(["/bin/sh", "-c", list]);
    let _runner = world.runner(&format!("fetch: scope\ncommands:\n  create-validate: {command}\n")).await;
    let job = until(server, &text_of(&made["triggered_jobs"][0]["id"]), is("completed")).await;
    assert_eq!(job["result"]["found"], json!(["./design.json", "./parts/PRT-1/sub/part.json"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_end_as_the_protocol_says() {
    let world = World::start().await;
    let text = "case $(jq -r .job.args.case $SILO_JOB_FILE) in \
                exit) echo first >&2; echo 'no such part' >&2; exit 7;; silent) exit 9;; signal) kill -9 $$;; \
                junk) echo '{' > $SILO_RESULT_FILE;; graph) echo '{\"nodes\": [{\"node_key\": \"a\"}]}' > $SILO_DAG_FILE;; \
                env) env > env; jq -n --rawfile env env '{env: $env}' > $SILO_RESULT_FILE; echo '::log debug deep'; pwd;; \
                esac";
    let _runner = world.shell_runner(text).await;
    call(&world.server, "POST", "/api/items", json!({"part_number": "ASM-001", "item_type": "assembly"})).await;
    let run = async |case: &str| {
        let wanted = json!({"definition_name": "assembly-validate", "part_number": "ASM-001", "args": {"case": case}});
        let id = text_of(&call(&world.server, "POST", "/api/jobs", wanted).await["id"]);
        until(&world.server, &id, |job| job["completed_at"].is_string()).await
    };
    assert_eq!(run("exit").await["error_message"], "exit status 7: no such part");
    assert_eq!(run("silent").await["error_message"], "exit status 9");
    assert_eq!(run("signal").await["error_message"], "killed by signal 9");
    assert!(text_of(&run("junk").await["error_message"]).contains("the result file is not valid JSON"));
    assert!(text_of(&run("graph").await["error_message"]).starts_with("the graph was refused: "));
    let job = run("none").await;
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!({})), "{job}");
    let job = run("env").await;
    let env = text_of(&job["result"]["env"]);
    for name in ["SILO_JOB_ID", "SILO_JOB_FILE", "SILO_RESULT_FILE", "SILO_DAG_FILE", "SILO_SERVER_URL"] {
        assert!(env.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}: {env}");
    }
    assert!(!env.contains("silo_runner_"), "the token is not passed on");
    let log = get(&world.server, &format!("/api/jobs/{}/logs", text_of(&job["id"]))).await;
    assert_eq!(
        (&log[0]["level"], &log[0]["message"], &log[1]["level"]),
        (&json!("debug"), &json!("deep"), &json!("info"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_time_is_up_is_stopped_and_an_unknown_command_fails() {
    let folder = tempfile::tempdir().unwrap();
    let definitions = folder.path().join("definitions");
    std::fs::create_dir(&definitions).unwrap();
    let definition = |name: &str, command: &str| {
        let text = format!(
            "job:\n  name: {name}\n  trigger: {{type: manual}}\n  compute: {{type: custom, command: {command}}}\n  \
             timeout: 1\n  max_retries: 0\n"
        );
        std::fs::write(definitions.join(format!("{name}.yaml")), text).unwrap();
    };
    definition("slow", "create-validate");
    definition("odd", "mesh");
    let more = ["--silo-jobs", definitions.to_str().unwrap()];
    let server = Server::start_with(&folder.path().join("data"), None, &more).await;
    let world = World { server, folder };
    let text = format!("echo $$ > {}; exec sleep 1000", world.path("pid").display());
    let _runner = world.shell_runner(&text).await;
    call(&world.server, "POST", "/api/items", json!({"part_number": "P"})).await;
    let make = async |name: &str| {
        let wanted = json!({"definition_name": name, "part_number": "P"});
        text_of(&call(&world.server, "POST", "/api/jobs", wanted).await["id"])
    };
    let odd = until(&world.server, &make("odd").await, is("failed")).await;
    assert_eq!(odd["error_message"], "unknown command: mesh");
    let slow = make("slow").await;
    let pid = world.pid("pid").await;
    assert!(is_gone(pid).await);
    let slow = until(&world.server, &slow, is("failed")).await;
    assert_eq!(slow["error_message"], "job timed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_said_with_its_status() {
    let world = World::start().await;
    let file = world.path("broken.yaml");
    let run = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let ended = Command::new(program("silorunner")).arg("--config").arg(&file).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    let (code, told) = run("token: silo_runner_x\n");
    assert!(code == Some(2) && told.contains("server_url: "), "{code:?}: {told}");
    let (code, told) = run(&format!("server_url: {}\ntoken: silo_runner_x\npol_interval: 1\n", world.server.url));
    assert!(code == Some(2) && told.contains("broken.yaml:3:1: pol_interval"), "{code:?}: {told}");
    let (code, told) = run(&format!("server_url: {}\ntoken: silo_runner_wrong\n", world.server.url));
    assert!(code == Some(3) && told.contains("token"), "{code:?}: {told}");
    let ended = Command::new(program("windlass-worker"))
        .args(["--dialect", "silo", "--config", "/nowhere/runner.yaml"])
        .env("SILO_RUNNER_SERVER_URL", &world.server.url)
        .env("SILO_RUNNER_TOKEN", "silo_runner_wrong")
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(3), "the same program under its own name, told by the environment alone");

    // A runner that is deleted while it works ends, and so does its command.
    let runner = world.shell_runner(&format!("echo $$ > {}; exec sleep 1000", world.path("pid").display())).await;
    let id = world.assembly(0.0).await;
    let pid = world.pid("pid").await;
    let known = get(&world.server, "/api/runners").await;
    call(&world.server, "DELETE", &format!("/api/runners/{}", text_of(&known[0]["id"])), json!({})).await;
    assert_eq!(runner.ends(), Some(3));
    assert!(is_gone(pid).await);
    let job = get(&world.server, &format!("/api/jobs/{id}")).await;
    assert_eq!(job["error_message"], "runner deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_story_for_people_stays_true() {
    let programs = program("silorunner").parent().unwrap().to_owned();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let told = Command::new("bash")
        .arg(format!("{EXAMPLES}/story.sh"))
        .env("PROGRAMS", programs)
        .env("PORT", port.to_string())
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success(), "{text}\n{errors}");
    for part in
        ["event: revision.created", "event: job.claimed", "event: dag.updated", "event: job.completed", "== The end"]
    {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}
