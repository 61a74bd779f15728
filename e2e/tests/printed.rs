//! Every command line that README and docs print is run as it stands, page by page, each page in a fresh folder against a
//! server of its own. What a page takes for granted (a file, a worker) is made first; addresses are replaced, nothing else.

use serde_json::json;
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use windlass_e2e::program;
use windlass_engine::testing::eventually_blocking;
use windlass_stores::testing::Cluster;

/// Blocks or lines that are not run here: page, how the line begins (empty: all of the page's blocks of that language), why.
const ELSEWHERE: [(&str, &str, &str); 11] = [
    (
        "README.md",
        "cargo run --profile try --bin windlass -- up",
        "builds the programs; their `up` is what this page runs against",
    ),
    ("README.md", "scripts/test", "this test is a part of it"),
    (
        "docs/operations.md",
        "windlass backup /backups/before",
        "an upgrade of this machine; backups are made in the tests of stores",
    ),
    ("docs/operations.md", "cargo install", "an upgrade of this machine"),
    ("docs/operations.md", "systemctl restart", "an upgrade of this machine"),
    ("docs/operations.md", "windlass doctor ", "an upgrade of this machine; `doctor` has its own tests"),
    ("docs/quickstart.md", "```sh", "run by `the_quickstart_is_true`"),
    ("docs/workflow-graph.md", "```console", "run, and answers compared, by `the_page_s_commands_work_as_printed`"),
    (
        "docs/workflow-graph.md",
        "SERVER_URL=",
        "the original's worker is run by `the_stock_worker_runs_a_diamond_with_labels_retries_and_logs`",
    ),
    (
        "docs/cli.md",
        "```text",
        "help texts; their examples are read by the program in `every_command_line_in_the_docs_can_be_read`",
    ),
    ("docs/configuration.md", "", "has no blocks: made from the table of settings"),
];

/// Languages of blocks that hold no commands.
const NO_COMMANDS: [&str; 5] = ["yaml", "json", "toml", "python", ""];

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn pages() -> Vec<String> {
    let docs = fs::read_dir(repository().join("docs")).unwrap().map(|file| file.unwrap().file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_str().unwrap())).filter(|name| name.ends_with(".md"));
    let mut pages: Vec<String> = ["README.md", "deploy/README.md"].map(str::to_owned).into_iter().chain(docs).collect();
    pages.sort();
    pages
}

/// The blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let (mut found, mut open) = (Vec::new(), None);
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block is not closed");
    found
}

/// Whole commands: lines that end in a backslash or inside quotes go on, and of a console only what follows a prompt counts.
fn commands(language: &str, text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let begins = if language == "console" { line.strip_prefix("$ ") } else { Some(line) };
        match begins {
            _ if goes_on => {
                let last = found.last_mut().unwrap();
                last.push('\n');
                last.push_str(line);
            }
            Some(command) if !command.trim().is_empty() && !command.starts_with('#') => found.push(command.to_owned()),
            _ => continue,
        }
        let quotes = found.last().map_or(0, |last| last.matches('\'').count());
        goes_on = line.ends_with('\\') || (language == "console" && quotes % 2 == 1);
    }
    found
}

fn is_elsewhere(page: &str, language: &str, command: &str) -> bool {
    let block = format!("```{language}");
    ELSEWHERE
        .iter()
        .any(|(of, begins, _)| *of == page && !begins.is_empty() && (*begins == block || command.starts_with(begins)))
}

/// The commands of a page that are run here, in order.
fn to_run(page: &str) -> Vec<String> {
    let shell = |(language, _): &(String, String)| ["sh", "console"].contains(&language.as_str());
    let all = blocks(page).into_iter().filter(shell);
    let all =
        all.flat_map(|(language, text)| commands(&language, &text).into_iter().map(move |one| (language.clone(), one)));
    all.filter(|(language, one)| !is_elsewhere(page, language, one)).map(|(_, one)| one).collect()
}

/// Which test here runs a page.
const RUN: [&str; 9] = [
    "README.md",
    "docs/joblib.md",
    "docs/neops.md",
    "docs/operations.md",
    "docs/scaling.md",
    "docs/silo.md",
    "docs/worker.md",
    "docs/workflow-graph.md",
    "docs/workflows.md",
];

#[test]
fn no_page_prints_a_command_that_no_test_runs() {
    let mut with_commands = BTreeSet::new();
    for page in pages() {
        for (language, text) in blocks(&page) {
            let known = NO_COMMANDS.contains(&language.as_str());
            let shell = ["sh", "console"].contains(&language.as_str());
            assert!(
                known || shell || is_elsewhere(&page, &language, ""),
                "{page}: a block of {language:?} is not known"
            );
            let looks_so = |line: &&str| {
                let first = line.trim_start_matches("$ ").split(' ').next().unwrap_or_default();
                ["windlass", "windlass-worker", "silorunner", "curl", "cargo", "docker", "kubectl", "sudo"]
                    .contains(&first)
            };
            let hidden = text.lines().find(looks_so).filter(|_| known);
            assert_eq!(hidden, None, "{page}: a command in a block that is not marked sh");
        }
        if !to_run(&page).is_empty() {
            with_commands.insert(page);
        }
    }
    assert_eq!(with_commands.iter().map(String::as_str).collect::<Vec<_>>(), RUN, "every page has its test below");
    for (page, begins, why) in ELSEWHERE {
        let there = blocks(page).iter().any(|(language, text)| {
            format!("```{language}") == begins || commands(language, text).iter().any(|one| one.starts_with(begins))
        });
        assert!(there || begins.is_empty(), "{page} has no {begins:?} any more; not run because: {why}");
    }
}

/// A process of ours, ended with the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // `up` ends its server and its worker when it is asked to end.
        drop(Command::new("kill").args(["-INT", &self.0.id().to_string()]).status());
        let begun = Instant::now();
        while self.0.try_wait().is_ok_and(|ended| ended.is_none()) && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20)); // The pause between two looks; while it is dropped nothing may panic.
        }
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A folder in which a page's commands are run.
struct Folder {
    path: tempfile::TempDir,
    /// Where the page's server listens; pages say 3000.
    listen: String,
}

impl Folder {
    fn new() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { path: tempfile::tempdir().unwrap(), listen: format!("127.0.0.1:{port}") }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn bash(&self, script: &str) -> Command {
        let path = format!("{}:{}", program("windlass").parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).current_dir(self.path.path()).env_clear().env("PATH", path);
        bash.env("HOME", self.path.path()).env("WINDLASS_SERVER", format!("http://{}", self.listen));
        bash
    }

    /// With the address of this page's server.
    fn here(&self, command: &str) -> String {
        let port = self.listen.rsplit(':').next().unwrap();
        let here = command.replace("127.0.0.1:3000", &self.listen).replace("127.0.0.1:3030", &self.listen);
        here.replace("localhost:3000", &format!("localhost:{port}"))
    }

    /// Starts a server by its printed line, at this page's address, and waits until it serves.
    fn serve(&self, command: &str) -> Started {
        assert!(command.starts_with("windlass serve "), "{command}");
        let line = command.replacen("windlass serve ", &format!("exec windlass serve --listen {} ", self.listen), 1);
        let mut server = Started(self.bash(&line).stdout(Stdio::null()).spawn().unwrap());
        let serves = || {
            assert!(server.0.try_wait().unwrap().is_none(), "{command} ended");
            TcpStream::connect(&self.listen).ok()
        };
        eventually_blocking(format!("{command} serves"), serves);
        server
    }

    /// `windlass up`, once it says that it is there.
    fn up(&self) -> Started {
        let mut up = self.bash(&format!("exec windlass up --listen {}", self.listen));
        let mut up = Started(up.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
        let mut lines = BufReader::new(up.0.stdout.take().unwrap()).lines();
        let said = lines.by_ref().map_while(Result::ok).find(|line| line.contains("Ctrl-C stops it"));
        assert!(said.is_some(), "up ended");
        // Somebody has to read on, or it stops when the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        up
    }

    /// Runs the commands one after the other in one shell. Before each comes what `before` says, and each must succeed, or
    /// end as `ends` says.
    fn run(&self, commands: &[String], before: &[(&str, &str)], ends: &[(&str, i32)]) -> String {
        let mut script = String::new();
        for command in commands {
            let fits = |begins: &str| command.starts_with(begins);
            for (_, needed) in before.iter().filter(|(begins, _)| fits(begins)) {
                script += &format!("{needed}\n");
            }
            let code = ends.iter().find(|(begins, _)| fits(begins)).map_or(0, |(_, code)| *code);
            let name = command.replace('\'', "").replace('\n', " ");
            script += &format!(
                "{}\ncode=$?; [ $code = {code} ] || {{ echo \"ended with $code: \"'{name}' >&2; exit 1; }}\n",
                self.here(command)
            );
        }
        let done = self.bash(&script).output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (said(&done.stdout), said(&done.stderr));
        assert!(done.status.success(), "{err}\n{out}\n{script}");
        out
    }
}

/// Until a command says so; a shell function for what comes before a command.
const UNTIL: &str = "until_it() { for i in $(seq 600); do \"$@\" >/dev/null 2>&1 && return; sleep 0.1; done; echo \"never: $*\" >&2; exit 1; }";

#[test]
fn the_commands_of_the_readme_work() {
    let folder = Folder::new();
    let _up = folder.up();
    let commands = to_run("README.md");
    let out = folder.run(&commands, &[], &[]);
    assert!(out.contains("hello") && out.contains("completed") && out.contains("\"state\":\"pending\""), "{out}");
}

#[test]
fn the_commands_of_the_operations_page_work() {
    let cluster = Cluster::start();
    let folder = Folder::new();
    let commands = to_run("docs/operations.md");
    let (serves, others): (Vec<String>, Vec<String>) =
        commands.into_iter().partition(|one| one.starts_with("windlass serve"));
    let mut database = false;
    for line in serves {
        database |= line.contains("postgres://windlass:secret@db.example.com/windlass");
        let line = line.replace("postgres://windlass:secret@db.example.com/windlass", &cluster.fresh_database());
        drop(folder.serve(&line));
    }
    assert!(database, "the line for PostgreSQL was run");
    folder.run(&others, &[], &[]);
    // The certificate made there is one that clients take.
    let _server = folder.serve("windlass serve --data tls --tls-cert cert.pem --tls-key key.pem");
    let port = folder.listen.rsplit(':').next().unwrap();
    let called = format!("windlass --ca-cert cert.pem --server https://localhost:{port} stats");
    let done = folder.bash(&called).env("WINDLASS_DATA", folder.path.path().join("tls")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_commands_of_the_scaling_page_work() {
    let out = Folder::new().run(&to_run("docs/scaling.md"), &[], &[]);
    assert!(
        out.contains("https://billing.jobs.example.org") && out.contains("https://media.jobs.example.org"),
        "{out}"
    );
}

#[test]
fn the_commands_of_the_silo_page_work() {
    let folder = Folder::new();
    for name in ["assembly-validate.yaml", "part-export-step.yaml"] {
        let text = fs::read_to_string(repository().join("examples/silo").join(name)).unwrap();
        folder.write(&format!("jobdefs/{name}"), &text);
    }
    folder.write("items.csv", "part_number,item_type\nCAR,assembly\nAXLE,part\n");
    folder.write("bom.csv", "parent_part_number,child_part_number,quantity\nCAR,AXLE,2\n");
    let node = |key: &str| json!({"node_key": key, "node_type": "sketch", "properties_hash": "1"});
    let graph = json!({"nodes": [node("Sketch001"), node("Pad001")],
                       "edges": [{"source_key": "Sketch001", "target_key": "Pad001", "edge_type": "depends_on"}]});
    folder.write("graph.json", &graph.to_string());
    let mut commands = to_run("docs/silo.md");
    let _server = folder.serve(&commands.remove(0));
    let put = "curl -sS --fail-with-body -o /dev/null -X PUT -H \"$T\" -H 'Content-Type: application/json' -d @graph.json $H/items/ASM-001/dag || exit 1";
    // The stream has no end: it is there, and goes on, until the time is up.
    for command in &mut commands {
        if command.starts_with("curl -N ") {
            *command = format!("timeout 2 {command}");
        }
    }
    folder.run(&commands, &[("windlass graph cone", put)], &[("timeout 2 curl", 124)]);
}

#[test]
fn the_commands_of_the_workflows_page_work() {
    let folder = Folder::new();
    let _up = folder.up();
    folder.write(
        "build.yml",
        "name: build\non: push\njobs:\n  one:\n    run: echo one\n  two:\n    needs: [one]\n    run: echo two\n",
    );
    // Fails at its end, so that there is something to go on from.
    let release = "windlass: workflow\nname: release\nsteps:\n  approve:\n    wait: {approval: true}\n  paid:\n    needs: approve\n    wait: {event: paid}\n  ship:\n    needs: paid\n    retry: {attempts: 1}\n    run: 'exit 1'\n";
    folder.write("release.yml", release);
    let until = |asks: &str| {
        format!("{UNTIL}; export ASKS='{asks}'; until_it sh -c 'windlass workflow show last -o json | jq -e \"$ASKS\"'")
    };
    let waits = |step: &str| until(&format!(".steps[] | select(.name == \"{step}\" and .waits_for != null)"));
    let (approve, paid, ship) = (waits("approve"), waits("paid"), until("select(.state == \"failed\")"));
    let before = [
        ("windlass workflow approve", approve.as_str()),
        ("windlass workflow signal", paid.as_str()),
        ("windlass workflow retry", ship.as_str()),
    ];
    let out = folder.run(&to_run("docs/workflows.md"), &before, &[]);
    assert!(out.contains("release"), "{out}");
    let drawn = fs::read_to_string(folder.path.path().join("run.svg")).unwrap();
    assert!(drawn.contains("<svg"), "{drawn}");
}

#[test]
fn the_commands_of_the_workflow_graph_page_work() {
    let folder = Folder::new();
    let commands = to_run("docs/workflow-graph.md");
    assert_eq!(commands.len(), 1, "{commands:?}");
    let _server = folder.serve(&commands[0]);
    assert!(folder.path.path().join("data").is_dir());
}

/// With ZnDraw's own client, installed by `scripts/clients`.
#[test]
fn the_commands_of_the_joblib_page_work() {
    let folder = Folder::new();
    let (_, worker) = blocks("docs/joblib.md").into_iter().find(|(language, _)| language == "python").unwrap();
    folder.write("worker.py", &worker);
    let mut commands = to_run("docs/joblib.md");
    let _server = folder.serve(&commands.remove(0));
    let clients = program("windlass").parent().and_then(|folder| folder.parent()).unwrap().join("clients/joblib/bin");
    commands.insert(0, format!("export PATH={}:$PATH", clients.display()));
    commands.push("kill %1; wait %1 || true".to_owned());
    let until = |path: &str, asks: &str| {
        let url = format!("http://{}/v1/joblib/rooms/room1/{path}", folder.listen);
        format!("{UNTIL}; export ASKS='{asks}'; until_it sh -c 'curl -s {url} | jq -e \"$ASKS\"'")
    };
    let tasks = "curl -s http://localhost:3000/v1/joblib/rooms/room1/tasks";
    let (linked, done) = (until("jobs", ".total == 1"), until("tasks", ".items[0].status == \"completed\""));
    let submit = format!("{tasks}/");
    let list = format!("{tasks} ");
    let out = folder.run(&commands, &[(submit.as_str(), linked.as_str()), (list.as_str(), done.as_str())], &[]);
    for printed in [
        r#"{"email":"ada@example.org","is_active":true,"is_superuser":true,"is_verified":false}"#,
        "serving",
        r#"["@global:modifiers:Rotate","pending",null]"#,
        "rotating by 1.5 in room1",
        r#"["@global:modifiers:Rotate","completed",null]"#,
    ] {
        assert!(out.contains(printed), "{printed} is not in {out}");
    }
}

#[test]
fn the_commands_of_the_neops_page_work() {
    let folder = Folder::new();
    let all = blocks("docs/neops.md");
    let (_, block) = all.iter().find(|(language, _)| language == "python").unwrap();
    folder.write("blocks/echo.py", block);
    let (_, shown) = all.iter().find_map(|(_, text)| text.split_once("$ cat devices.json\n")).unwrap();
    folder.write("devices.json", shown.split("$ ").next().unwrap());
    // The packages lie beside the Python that reads them, not in an environment of its own with programs.
    let clients = program("windlass").parent().and_then(|folder| folder.parent()).unwrap().join("clients");
    let python = fs::read_to_string(clients.join("neops_python")).expect("scripts/clients was run");
    let (packages, start) =
        (clients.join("neops_worker"), "from neops_worker_sdk.cli.neops_worker import main; main()");
    let worker = format!("PYTHONPATH={} exec {} -c '{start}'", packages.display(), python.trim());
    folder.write("bin/neops_worker", &format!("#!/bin/sh\n{worker}\n"));

    let mut commands = to_run("docs/neops.md");
    let _server = folder.serve(&commands.remove(0).replace(" --listen 127.0.0.1:3030", ""));
    commands.insert(0, "chmod +x bin/neops_worker; export PATH=$PWD/bin:$PATH".to_owned());
    commands.push("kill %1; wait %1 || true".to_owned());
    let until = |path: &str, asks: &str| {
        let url = format!("http://{}/{path}", folder.listen);
        format!("{UNTIL}; export ASKS='{asks}'; until_it sh -c \"curl -s {url} | jq -e \\\"\\$ASKS\\\"\"")
    };
    let registered = until("function-blocks/registrations/list", "length == 1");
    let over = until("workflow-execution/id/$run", ".status | endswith(\"_ack\")");
    let before = [
        ("curl -s http://127.0.0.1:3030/workers/online", registered.as_str()),
        ("curl -s http://127.0.0.1:3030/workflow-execution/id/", over.as_str()),
    ];
    let out = folder.run(&commands, &before, &[]);
    for printed in [
        "online\n",
        r#"["wf.example/hello:1.0.0","published"]"#,
        "completed_ack\nacquire\tsuccess-ack\nexecute\tsuccess-ack\n{\"echoed\":\"Ada\"}\n",
        "3 created, 0 updated, 0 unchanged\n",
        r#"[{"hostname":"sw1","id":1,"ip":"10.0.0.1","username":"ops"}]"#,
    ] {
        assert!(out.contains(printed), "{printed} is not in {out}");
    }
}

#[test]
fn the_commands_of_the_worker_page_work() {
    let folder = Folder::new();
    let _server = folder.serve("windlass serve --data .windlass");
    folder.write("train.py", "import sys\nprint('trained on', sys.stdin.read())\n");
    let commands = to_run("docs/worker.md");
    let token = "windlass token create trainer --role worker --file worker.token || exit 1";
    let mut script = vec![token.to_owned()];
    for command in &commands {
        assert!(command.starts_with("windlass-worker "), "{command}");
        let here = command.replace("https://jobs.example.org", &format!("http://{}", folder.listen));
        script.push(format!("{here} &\nworker=$!\ntrap 'kill $worker' EXIT"));
        script.push(
            "windlass submit --tag gpu -p '{\"epochs\": 3}' --wait --wait-timeout 60s && windlass logs last".into(),
        );
        script.push("trap - EXIT; kill $worker; wait $worker".into());
    }
    let out = folder.run(&script, &[], &[]);
    assert!(out.contains("trained on {\"epochs\": 3}"), "{out}");
}
