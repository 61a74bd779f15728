//! Everything else that speaks workflow-graph's protocol: workers in other languages, its TypeScript client's calls, and the
//! commands of its page for people who write workers of their own.

use serde_json::json;
use std::{
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};
use windlass_e2e::{GraphCalls, GraphWorker, Server, job};
use windlass_sdk::api::token::{CreateToken, Role};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn need(tools: &[&str]) {
    for tool in tools {
        let found = Command::new("which").arg(tool).output().is_ok_and(|found| found.status.success());
        assert!(found, "this test needs {tool}; install it (Debian: apt-get install {tool})");
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_worker_runs_hands_on_retries_and_notices_cancellation() {
    need(&["python3"]);
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let graph = GraphCalls(server.admin());
    let mut command = Command::new("python3");
    command.arg(repository().join("examples/workers/workflow_graph.py"));
    let _worker = GraphWorker::start(command, &server.url, "python");
    let mut first = job("first", "echo one; echo two >&2; echo version=1.2=3 >> $OUTPUTS_FILE", &[]);
    first["required_labels"] = json!(["python"]);
    let second = job("second", "echo \"$UPSTREAM_OUTPUTS\"", &["first"]);
    let flag = folder.path().join("flag");
    let mut flaky = job("flaky", &format!("test -e {0} || {{ touch {0}; exit 3; }}", flag.display()), &[]);
    flaky["max_retries"] = json!(1);
    let id =
        graph.start(&[first, second, flaky, job("bad", "echo why; exit 7", &[]), job("no", "true", &["bad"])]).await;
    graph.become_so(&id, &["success", "success", "success", "failure", "skipped"]).await;
    assert_eq!(graph.log(&id, "first").await, "one\ntwo\n");
    assert_eq!(graph.log(&id, "second").await, "{\"first\": {\"version\": \"1.2=3\"}}\n");
    assert_eq!(graph.jobs(&id).await[3]["output"], "exit code 7: why\n");
    let id = graph.start(&[job("long", "sleep 1000", &[])]).await;
    graph.become_so(&id, &["running"]).await;
    tokio::time::sleep(Duration::from_secs(3)).await; // Longer than two polls; what follows takes no longer than one.
    graph.cancel(&id).await;
    let next = graph.start(&[job("next", "true", &[])]).await;
    graph.become_so(&next, &["success"]).await;
    assert_eq!(graph.statuses(&id).await, ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_the_typescript_client_works_with_a_token_in_the_path() {
    need(&["node"]);
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let wanted = CreateToken { principal: "page".into(), role: Role::Editor, namespaces: vec![], expires_ms: None };
    let token = server.admin().create_token(&wanted).await.unwrap().token;
    let _worker = GraphWorker::stock(&server.url, "");
    for base in [format!("{}/~{token}", server.url), server.url.clone()] {
        let mut node = Command::new("node");
        node.arg(repository().join("e2e/clients/workflow_graph.mjs")).arg(base);
        let output = tokio::task::spawn_blocking(move || node.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
}

/// One command of the page and what it prints.
struct Example {
    command: String,
    answer: String,
}

/// The `console` blocks of the page: lines that begin with `$ `, or go on after a backslash, are typed; others are answers.
fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && (goes_on || line.starts_with("$ ")) {
            let typed = line.strip_prefix("$ ").filter(|_| !goes_on);
            if let Some(typed) = typed {
                found.push(Example { command: typed.to_owned(), answer: String::new() });
            } else if let Some(last) = found.last_mut() {
                last.command = format!("{}\n{line}", last.command);
            }
            goes_on = line.ends_with('\\');
        } else if let Some(last) = found.last_mut().filter(|_| inside) {
            last.answer += &format!("{}\n", line.trim());
        }
    }
    found
}

/// Ids and times differ every time: only their form is compared.
fn form(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive(|char: char| !(char.is_ascii_alphanumeric() || char == '-')) {
        let end = word.find(|char: char| !(char.is_ascii_alphanumeric() || char == '-')).unwrap_or(word.len());
        let (name, rest) = word.split_at(end);
        let is_id = name.len() == 36 && name.matches('-').count() == 4;
        let is_time = name.len() == 13 && name.bytes().all(|byte| byte.is_ascii_digit());
        out += if is_id {
            "ID"
        } else if is_time {
            "TIME"
        } else {
            name
        };
        out += rest;
    }
    out.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_s_commands_work_as_printed() {
    need(&["bash", "curl", "jq"]);
    let page = std::fs::read_to_string(repository().join("docs/workflow-graph.md")).unwrap();
    let examples = examples(&page);
    assert!(examples.len() >= 15, "{} commands are not all of them", examples.len());
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), None).await;
    let address = server.url.replace("127.0.0.1", "localhost");
    // One shell for all of them, because they set variables that later ones use.
    let mut script = String::new();
    for example in &examples {
        script += &format!("{}\nprintf '\\n@@\\n'\n", example.command.replace("http://localhost:3000", &address));
    }
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder.path());
    let output = tokio::task::spawn_blocking(move || bash.output().unwrap()).await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut answers = printed.split("\n@@\n");
    for example in &examples {
        let answer = answers.next().unwrap_or("nothing");
        let answer: String = answer.lines().map(|line| format!("{}\n", line.trim())).collect();
        assert_eq!(form(&answer), form(&example.answer), "{}\nprinted {answer}{}", example.command, said(&output));
    }
}
