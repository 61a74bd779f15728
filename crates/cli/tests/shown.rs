//! What people see: on a terminal and in a pipe, of text that others wrote, in tables of any width, in their own time zone.

use crate::support::{ADMIN, Ran, Server, program, run, windlass};
use serde_json::json;
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};
use windlass_api::lease::{AppendLog, Claim, Complete, Fail, Leased};

/// Retitles the window, clears the screen, rings, turns the direction of writing, and all in eight bits as well.
const NASTY: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m no \u{202e}luck\r";

/// Everything that no output may hold.
#[track_caller]
fn harmless(text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(bad), "{text:?}");
}

fn claim(server: &Server) -> Leased {
    server.work(async |client| {
        let claim = Claim { worker: "w".into(), wait_ms: Some(20_000), ..Claim::default() };
        client.claim(&claim).await.unwrap().leases.remove(0)
    })
}

fn fail(server: &Server, message: &str) {
    let lease = claim(server).lease;
    let fail = Fail { lease, message: message.into(), permanent: true, ..Fail::default() };
    server.work(async |client| client.fail(&fail).await.unwrap());
}

fn complete(server: &Server, lease: String) {
    let complete = Complete { lease, ..Complete::default() };
    server.work(async |client| client.complete(&complete).await.unwrap());
}

fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = windlass(server.home.path());
    command.args(args).env("WINDLASS_SERVER", &server.url).env("WINDLASS_TOKEN", ADMIN);
    command
}

/// The same on a terminal of so many columns. `script` gives one; it is part of every Linux.
fn on_terminal(server: &Server, columns: u32, args: &[&str]) -> String {
    let quoted: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("stty rows 24 cols {columns} -opost; exec '{}' {}", program().display(), quoted.join(" "));
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &line, "/dev/null"]);
    script.env_clear().env("HOME", server.home.path()).env("PATH", std::env::var_os("PATH").unwrap());
    script
        .env("WINDLASS_SERVER", &server.url)
        .env("WINDLASS_TOKEN", ADMIN)
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Held open: the end of its input would be echoed on the terminal.
    let _input = child.stdin.take();
    let ended = child.wait_with_output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{args:?}: {out}{}", String::from_utf8_lossy(&ended.stderr));
    out
}

#[test]
fn no_escape_sequence_of_an_error_reaches_the_terminal() {
    let server = Server::start();
    let waiting =
        command(&server, &["submit", "--wait", "-p", "null"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let waiting = waiting.unwrap();
    fail(&server, NASTY);
    let ended = waiting.wait_with_output().unwrap();
    let waited = String::from_utf8(ended.stdout).unwrap();
    harmless(&waited);
    assert!(waited.contains("\\u001b]0;owned\\u0007"), "{waited}");
    for args in [&["job", "wait", "last"][..], &["job", "show", "last"], &["why", "last"], &["jobs"]] {
        let Ran { out, err, .. } = server.windlass(args);
        harmless(&out);
        harmless(&err);
        assert!(out.contains("\\u001b") && out.contains("\\u202e"), "{args:?}: {out}");
    }
    harmless(&server.windlass(&["events"]).ok());
    let refused = server.windlass(&["definitions", "show", NASTY]);
    assert_eq!(refused.code, 1);
    harmless(&refused.err);
}

#[test]
fn a_log_keeps_its_colours_on_a_terminal_and_nothing_else_and_all_of_it_in_a_pipe() {
    let server = Server::start();
    server.windlass(&["submit", "-p", "null"]).ok();
    let lease = claim(&server).lease;
    let data = format!("\u{1b}[1;31mred\u{1b}[0m plain\n10 %\r20 %\r\n{NASTY}\n\u{1b}[4");
    let log = AppendLog { lease: lease.clone(), data: data.clone(), ..AppendLog::default() };
    server.work(async |client| client.append_log(&log).await.unwrap());
    complete(&server, lease);
    assert_eq!(server.windlass(&["logs", "last"]).ok(), data, "a pipe gets it as it was written");
    for args in [&["logs", "last"][..], &["logs", "last", "--follow"]] {
        let shown = on_terminal(&server, 80, args);
        assert!(shown.contains("\u{1b}[1;31mred\u{1b}[0m plain\n10 %\n20 %\n"), "{shown:?}");
        harmless(&shown.replace("\u{1b}[1;31m", "").replace("\u{1b}[0m", ""));
        assert!(shown.contains("\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m no \\u202eluck"), "{shown:?}");
    }
}

#[test]
fn ids_are_whole_in_tables_of_any_width_and_commands_say_what_they_run() {
    let server = Server::start();
    let ids: Vec<String> = (0..3)
        .map(|number| {
            let text =
                format!("render --frame {number} --scene 'a very long name of a scene' --output /somewhere/else");
            server.windlass(&["submit", "--shell", &text]).ok().split_whitespace().next().unwrap().to_owned()
        })
        .collect();
    fail(&server, &"é\u{301}👩\u{200d}🔬".repeat(60));
    for columns in [80, 100, 200] {
        let shown = on_terminal(&server, columns, &["jobs"]);
        let plain: String = strip(&shown);
        for id in &ids {
            assert_eq!(plain.matches(id).count(), 1, "{columns}: {plain}");
        }
        assert!(plain.contains("render --frame"), "{columns}: {plain}");
        for line in plain.lines() {
            assert!(line.chars().count() <= columns as usize + 30, "{columns}: {line}");
        }
        assert!(!plain.contains("👩…") && !plain.contains("\u{200d}…"), "{plain}");
    }
    let piped = server.windlass(&["jobs"]).ok();
    assert_eq!(piped.lines().count(), 1 + ids.len(), "{piped}");
    assert!(piped.lines().skip(1).all(|line| line.contains("render --frame")), "{piped}");
    assert_eq!(server.json(&["jobs"])[0]["command"], json!(null), "programs are not told twice what they can ask for");
}

/// Without the colours.
fn strip(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn a_time_without_a_zone_is_local_to_people_and_utc_to_programs() {
    let server = Server::start();
    let in_zone = |args: &[&str]| {
        let mut command = command(&server, args);
        command.env("TZ", "Asia/Kolkata");
        run(command, "").ok()
    };
    in_zone(&["submit", "-p", "null", "--at", "2090-01-31T12:00"]);
    let json: serde_json::Value = serde_json::from_str(&in_zone(&["job", "show", "last", "-o", "json"])).unwrap();
    assert!(json["run_at"].as_str().unwrap().starts_with("2090-01-31T06:30:00"), "{json}");
    assert!(json["run_at"].as_str().unwrap().ends_with('Z'), "{json}");
    let shown = in_zone(&["job", "show", "last"]);
    assert!(shown.contains("2090-01-31 12:00:00 +05:30"), "{shown}");
    let why = in_zone(&["why", "last"]);
    assert!(why.contains("scheduled for 2090-01-31 12:00:00 +05:30."), "{why}");
    let why: serde_json::Value = serde_json::from_str(&in_zone(&["why", "last", "-o", "json"])).unwrap();
    assert!(why["summary"].as_str().unwrap().contains("2090-01-31T06:30:00"), "{why}");
    assert!(in_zone(&["events", "--limit", "1"]).contains("+05:30"));
}

#[test]
fn whoever_waits_is_told_why_nothing_happens() {
    let server = Server::start();
    for args in
        [&["submit", "--wait", "--tag", "py"][..], &["submit", "--follow", "--tag", "py"], &["job", "wait", "last"]]
    {
        let mut waiting = command(&server, args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map_while(Result::ok);
        let told: Vec<String> = lines.take_while(|line| !line.contains("--allow-commands")).collect();
        // It went on to the line with the command that helps; else it would still read.
        assert!(told.iter().any(|line| line.contains("No worker is registered")), "{args:?}: {told:?}");
        waiting.kill().unwrap();
        waiting.wait().unwrap();
    }
}

#[test]
fn submitting_nothing_says_what_is_missing() {
    let server = Server::start();
    let ran = server.windlass(&["submit"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    ran.says(&["nothing to submit", "--shell", "--payload", "--definition", "windlass submit --shell 'echo hello'"]);
    assert_eq!(server.json(&["jobs"]), json!([]), "and nothing was queued");
    assert_eq!(server.windlass(&["submit", "--wait", "--retries", "2"]).code, 2);
    server.windlass(&["submit", "--payload", "null"]).ok();
}

#[test]
fn definitions_are_told_all_their_faults_at_once() {
    let server = Server::start();
    let folder = server.home.path().join("defs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.yaml"), "tags: gpu\npriority: high\nretry: {tires: 3}\n").unwrap();
    std::fs::write(folder.join("b.yaml"), "payload_schema: {type: 5}\ntimeout_ms: soon\n").unwrap();
    std::fs::write(folder.join("c.yaml"), "tags: [gpu]\n").unwrap();
    for verb in ["check", "apply"] {
        let ran = server.windlass(&["definitions", verb, "defs"]);
        assert_eq!(ran.code, 1, "{}", ran.out);
        ran.says(&[
            "a.yaml:1:1: tags",
            "a.yaml:2:1: priority",
            "a.yaml:3:",
            "tires",
            "b.yaml:1:1: ",
            "b.yaml:2:1: timeout_ms",
        ]);
    }
    assert_eq!(server.json(&["definitions"]), json!([]), "all or none");
}
