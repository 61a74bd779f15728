//! Commands that talk to a server: what they print, and how they end.

use crate::support::{ADMIN, Server, alone, home, run, windlass};
use serde_json::{Value, json};
use windlass_api::{
    job::Job,
    lease::{Claim, Complete, Fail, Release},
};

/// Takes the next job and ends it.
fn finish(server: &Server, well: bool) {
    server.work(async |client| {
        let claim = Claim { worker: "w".into(), wait_ms: Some(5_000), ..Claim::default() };
        let leased = client.claim(&claim).await.unwrap().leases.remove(0);
        if well {
            let result = Some(serde_json::value::to_raw_value(&json!({"n": 7})).unwrap());
            client.complete(&Complete { lease: leased.lease, result, ..Complete::default() }).await.unwrap();
        } else {
            let fail = Fail { lease: leased.lease, message: "no luck".into(), permanent: true, ..Fail::default() };
            client.fail(&fail).await.unwrap();
        }
    });
}

/// What a shell is offered for the last of these words, but for options.
fn offered(server: &Server, words: &[&str]) -> Vec<String> {
    let mut command = windlass(server.home.path());
    command.env("WINDLASS_SERVER", &server.url).env("WINDLASS_TOKEN", ADMIN);
    command.args(["--", "windlass"]).args(words);
    command.env("WINDLASS_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let ran = run(command, "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}");
    ran.out
        .split(['\n', '\u{b}'])
        .filter(|word| !word.is_empty() && !word.starts_with('-'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn shells_are_offered_what_the_server_knows() {
    let server = Server::start();
    assert_eq!(offered(&server, &["jobs", "--state", "c"]), ["claimed", "completed", "cancelled"]);
    let job = server.json(&["submit", "--name", "one", "--tag", "t"])["id"].as_str().unwrap().to_owned();
    assert_eq!(offered(&server, &["logs", ""]), std::slice::from_ref(&job));
    let shown = offered(&server, &["-o", "json", "job", "show", &job[..6]]);
    assert_eq!(shown, std::slice::from_ref(&job));
    assert_eq!(offered(&server, &["-n", "other", "logs", ""]), [""; 0], "another namespace");
    server.json(&["schedules", "set", "nightly", "--every", "1h"]);
    assert_eq!(offered(&server, &["schedules", "run", "ni"]), ["nightly"]);
    assert_eq!(offered(&server, &["--server", "http://127.0.0.1:1", "logs", ""]), [""; 0], "no server answers");
}

#[test]
fn a_job_goes_from_submit_to_result() {
    let server = Server::start();
    let out = server.windlass(&["submit", "-p", "{\"a\": 1}", "--facet", "shot=s010", "--priority", "-5"]).ok();
    assert!(out.contains("pending"), "{out}");
    let jobs = server.json(&["jobs", "--state", "pending", "--facet", "shot=s010"]);
    let job: Job = serde_json::from_value(jobs[0].clone()).unwrap();
    assert_eq!((job.priority, job.facets["shot"].as_str()), (-5, "s010"));
    finish(&server, true);
    assert_eq!(server.windlass(&["job", "wait", "last"]).code, 0);
    assert_eq!(server.windlass(&["job", "result", "last"]).ok().trim(), "{\"n\":7}");
    assert_eq!(server.windlass(&["job", "payload", &job.id.to_string()]).ok().trim(), "{\"a\": 1}");
    let shown = server.windlass(&["job", "show", "last"]).ok();
    for word in ["completed", "shot=s010", "Attempt", "1 of 3"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    server.windlass(&["jobs"]).says(&["ID", "STATE", "completed"]);
}

#[test]
fn waiting_tells_by_its_exit_code_how_the_job_ended() {
    let server = Server::start();
    server.windlass(&["submit", "-p", "null"]).ok();
    finish(&server, false);
    let failed = server.windlass(&["job", "wait", "last"]);
    assert_eq!(failed.code, 3);
    failed.says(&["failed", "no luck"]);
    server.windlass(&["submit", "--tag", "nobody"]).ok();
    let waited = server.windlass(&["job", "wait", "last", "--timeout", "100ms"]);
    assert_eq!(waited.code, 5);
    server.windlass(&["cancel", "last"]).ok();
    assert_eq!(server.windlass(&["job", "wait", "last"]).code, 4);
    assert_eq!(server.windlass(&["submit", "--wait", "--tag", "nobody", "--wait-timeout", "50ms"]).code, 5);
    let again = server.windlass(&["cancel", "last", "last"]);
    assert_eq!(again.code, 1);
    again.says(&["cancelled"]);
}

#[test]
fn a_finished_job_is_retried_as_a_new_one() {
    let server = Server::start();
    server.windlass(&["submit", "-p", "1"]).ok();
    finish(&server, false);
    let made = server.json(&["retry", "last"]);
    assert_eq!(made["state"], "pending");
    let shown = server.json(&["job", "show", "last"]);
    assert_eq!((&shown["id"], shown["payload"].as_i64()), (&made["id"], Some(1)));
    let (old, new) = (shown["retry_of"].as_str().unwrap(), made["id"].as_str().unwrap());
    assert_eq!(server.json(&["job", "show", old])["retried_by"], new);
    server.windlass(&["job", "show", old]).says(&["Retried by", new]);
    server.windlass(&["why", old]).says(&["It was retried as job", new]);
    let again = server.windlass(&["retry", old]);
    assert_eq!(again.code, 1);
    again.says(&[old, new, "already", "--again"]);
    assert_eq!(server.json(&["jobs"]).as_array().unwrap().len(), 2);
    let third = server.json(&["retry", old, "--again"]);
    assert_eq!(server.json(&["job", "show", old])["retried_by"], third["id"]);
}

#[test]
fn a_runs_input_is_read_by_the_schema_of_a_file_or_of_a_stored_workflow() {
    let server = Server::start();
    let schema = "{type: object, required: [version], properties: {version: {type: string}, count: {type: integer}}}";
    let text = format!("name: release\ninput_schema: {schema}\nsteps:\n  one: {{payload: 1}}\n");
    std::fs::write(server.home.path().join("release.yml"), text).unwrap();
    server.windlass(&["workflow", "apply", "release.yml"]).ok();
    for what in ["release", "release.yml"] {
        // The server checks both against the schema.
        let input = ["--input", "version=1.2", "--input", "count=3"];
        server.windlass(&[&["workflow", "run", what][..], &input].concat()).ok();
        let wrong = server.windlass(&["workflow", "run", what, "--input", "version=1", "--input", "count=x"]);
        assert_eq!(wrong.code, 1);
        wrong.says(&["count is an integer", "--input count=3"]);
    }
}

#[test]
fn payloads_come_from_files_from_input_and_from_commands() {
    let server = Server::start();
    std::fs::write(server.home.path().join("p.json"), "[1, 2]\n").unwrap();
    let payload = |args: &[&str], input: &str| -> Value {
        let mut all = vec!["submit"];
        all.extend(args);
        server.with_input(&all, input).ok();
        server.json(&["job", "payload", "last"])
    };
    assert_eq!(payload(&["-p", "@p.json"], ""), json!([1, 2]));
    assert_eq!(payload(&["-p", "-"], "{\"x\": null}"), json!({"x": null}));
    assert_eq!(payload(&["--shell", "echo hi", "--env", "A=b"], ""), json!({"shell": "echo hi", "env": {"A": "b"}}));
    assert_eq!(payload(&["--command", "--", "ls", "-l"], ""), json!({"command": ["ls", "-l"]}));
}

#[test]
fn many_jobs_come_from_a_file() {
    let server = Server::start();
    let lines: String = (0..1_200).map(|n| format!("{{\"payload\": {n}, \"tags\": [\"bulk\"]}}\n")).collect();
    std::fs::write(server.home.path().join("jobs.jsonl"), lines).unwrap();
    let done = server.json(&["submit", "--from", "jobs.jsonl", "--facet", "set=a"]);
    assert_eq!(done, json!({"submitted": 1_200, "refused": 0}));
    let jobs = server.json(&["jobs", "--facet", "set=a", "--limit", "5000"]);
    assert_eq!(jobs.as_array().unwrap().len(), 1_200);
    let lines = server.with_input(&["submit", "--from", "-", "--payloads", "-o", "jsonl"], "1\n\n[2]\n").ok();
    assert_eq!(lines.lines().count(), 2);
    let refused = server.with_input(&["submit", "--from", "-"], "{}\n{\"retry\": {\"attempts\": 0}}\n");
    assert_eq!(refused.code, 1);
    refused.says(&["line 2", "1 job submitted, 1 refused"]);
    let nonsense = server.with_input(&["submit", "--from", "-"], "{}\n{\"color\": 1}\n");
    assert_eq!(nonsense.code, 1);
    nonsense.says(&["line 2", "color"]);
}

#[test]
fn a_job_is_shown_and_found_by_its_name() {
    let server = Server::start();
    server.windlass(&["submit", "-p", "1", "--name", "nightly report"]).ok();
    server.windlass(&["job", "show", "last"]).says(&["Name", "nightly report"]);
    server.with_input(&["submit", "--from", "-", "--name", "nightly rest"], "{}\n{\"name\": \"weekly\"}\n").ok();
    let names = |args: &[&str]| -> Vec<String> {
        let jobs = server.json(args);
        jobs.as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(names(&["jobs", "--name", "nightly"]), ["nightly rest", "nightly report"]);
    assert_eq!(names(&["jobs", "--name", "weekly"]), ["weekly"]);
    server.windlass(&["jobs"]).says(&["nightly report", "nightly rest", "weekly"]);
    let long = server.windlass(&["submit", "-p", "1", "--name", &"x".repeat(201)]);
    assert_eq!(long.code, 1);
    long.says(&["name", "201 characters", "200"]);
    server.windlass(&["schedules", "set", "daily", "--every", "1h", "-p", "1", "--name", "each hour"]).ok();
    assert_eq!(server.json(&["schedules", "show", "daily"])["schedule"]["job"]["name"], "each hour");
}

#[test]
fn ids_may_be_abbreviated() {
    let server = Server::start();
    let (id, twin) = ("aaaabbbb-0000-7000-8000-000000000001", "aaaabbbb-0000-7000-8000-000000000002");
    let lines = format!("{{\"id\": \"{id}\"}}\n{{\"id\": \"{twin}\"}}\n{{\"id\": \"aaaac{}\"}}\n", &id[5..]);
    server.with_input(&["submit", "--from", "-"], &lines).ok();
    assert_eq!(server.json(&["job", "show", &id.to_uppercase()])["id"], id);
    assert_eq!(server.json(&["job", "show", "aaaac"])["id"].as_str().unwrap()[..5], *"aaaac");
    let several = server.windlass(&["job", "show", "aaaabbbb"]);
    assert_eq!(several.code, 1);
    several.says(&["could be any of these", id, twin]);
}

#[test]
fn a_name_given_for_an_id_is_told_as_one() {
    let server = Server::start();
    let id = "11112222-0000-7000-8000-000000000001";
    server.with_input(&["submit", "--from", "-"], &format!("{{\"id\": \"{id}\", \"name\": \"cafe\"}}\n")).ok();
    let named = server.windlass(&["job", "show", "cafe"]);
    assert_eq!(named.code, 1);
    named.says(&["no job id begins with cafe", "names of these jobs", id]);
    server.windlass(&["job", "show", "feed"]).says(&["no job in the namespace", "feed"]);
}

#[test]
fn workers_are_listed_drained_and_deleted() {
    let server = Server::start();
    server.work(async |client| {
        let worker = windlass_api::worker::RegisterWorker {
            worker: "render-1".into(),
            tags: vec!["gpu".into()],
            ..Default::default()
        };
        client.register(&worker).await.unwrap();
    });
    server.windlass(&["workers"]).says(&["render-1", "online", "gpu"]);
    server.windlass(&["workers", "drain", "render-1"]).ok();
    assert_eq!(server.json(&["workers", "show", "render-1"])["draining"], true);
    server.windlass(&["workers", "undrain", "render-1"]).ok();
    server.windlass(&["workers", "delete", "render-1"]).ok();
    assert_eq!(server.json(&["workers", "list"]), json!([]));
}

#[test]
fn a_lease_that_is_given_back_shows_as_pending() {
    let server = Server::start();
    server.windlass(&["submit", "-p", "null"]).ok();
    let lease = server.work(async |client| {
        let claim = Claim { worker: "w".into(), ..Claim::default() };
        client.claim(&claim).await.unwrap().leases.remove(0).lease
    });
    server.windlass(&["jobs", "--worker", "w"]).says(&["claimed"]);
    server.work(async |client| client.release(&Release { lease, ..Release::default() }).await.unwrap());
    server.windlass(&["jobs", "--state", "pending"]).says(&["pending"]);
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let server = Server::start();
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["submit"], 2, &["nothing to submit"]),
        (&["submit", "-p", "hello"], 1, &["not valid JSON", "--shell 'hello'"]),
        (&["submit", "-p", "@missing.json"], 1, &["missing.json", "cannot be read"]),
        (&["submit", "--delay", "5 parsecs"], 2, &["not a unit of time", "5m"]),
        (&["submit", "--facet", "shot"], 2, &["name=value"]),
        (&["submit", "--at", "tomorrow"], 2, &["2026-01-31T12:00:00Z"]),
        (&["jobs", "--state", "done"], 1, &["not a state", "completed"]),
        (&["job", "show", "zz"], 1, &["no job id"]),
        (&["job", "show", "ab"], 1, &["too short"]),
        (&["why"], 2, &["ID", "--help"]),
        (&["job", "show", "last"], 1, &["no job", "windlass submit"]),
        (&["jbos"], 2, &["jobs"]),
        (&["--profile", "nowhere", "jobs"], 1, &["no profile"]),
    ];
    for (args, code, words) in cases {
        let ran = server.windlass(args);
        assert_eq!(ran.code, *code, "{args:?}: {}{}", ran.out, ran.err);
        ran.says(words);
    }
}

#[test]
fn no_server_and_no_token_are_explained() {
    let (home, server) = (home(), Server::start());
    let away = alone(home.path(), &["jobs", "--server", "http://127.0.0.1:1"]);
    assert_eq!(away.code, 1);
    away.says(&["cannot be reached", "windlass up", "--server"]);
    let stranger = alone(home.path(), &["jobs", "--server", &server.url]);
    assert_eq!(stranger.code, 1);
    stranger.says(&["No token was found", "admin.token", "WINDLASS_DATA"]);
    let wrong = alone(home.path(), &["jobs", "--server", &server.url, "--token", "nonsense-nonsense"]);
    assert_eq!(wrong.code, 1);
    wrong.says(&["--token", "revoked"]);
    assert!(!wrong.err.contains("nonsense-nonsense"), "{}", wrong.err);
}

#[test]
fn the_admin_token_of_a_server_here_is_found() {
    let (home, server) = (home(), Server::start());
    let data = home.path().join(".windlass");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("admin.token"), format!("{ADMIN}\n")).unwrap();
    assert_eq!(alone(home.path(), &["jobs", "--server", &server.url]).code, 0);
    std::fs::rename(&data, home.path().join("elsewhere")).unwrap();
    assert_eq!(alone(home.path(), &["jobs", "--server", &server.url]).code, 1);
    let mut command = windlass(home.path());
    command.args(["jobs", "--server", &server.url]).env("WINDLASS_DATA", home.path().join("elsewhere"));
    assert_eq!(run(command, "").code, 0);
}

#[test]
fn profiles_remember_connections() {
    let (home, server) = (home(), Server::start());
    let set = ["profile", "set", "work", "--server", &server.url, "--token", ADMIN, "-n", "film"];
    assert_eq!(alone(home.path(), &set).code, 0);
    alone(home.path(), &["submit", "-p", "null"]).ok();
    let job: Value = serde_json::from_str(&alone(home.path(), &["job", "show", "last", "-o", "json"]).ok()).unwrap();
    assert_eq!(job["namespace"], "film");
    let list = alone(home.path(), &["profile", "list"]).ok();
    assert!(list.contains("work") && !list.contains(ADMIN), "{list}");
    // A profile's token is for its own server only.
    let other = Server::start();
    assert_eq!(alone(home.path(), &["jobs", "--server", &other.url]).code, 1);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let server = Server::start();
    let lines: String = (0..2_000).map(|n| format!("{n}\n")).collect();
    server.with_input(&["submit", "--from", "-", "--payloads"], &lines).ok();
    let mut command = windlass(server.home.path());
    command
        .args(["jobs", "--limit", "2000", "-o", "jsonl"])
        .env("WINDLASS_SERVER", &server.url)
        .env("WINDLASS_TOKEN", ADMIN);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn a_role_is_changed_a_name_freed_and_the_last_admin_kept() {
    let server = Server::start();
    let token = server.windlass(&["token", "create", "ann", "--role", "editor"]).ok();
    server.windlass(&["principal", "change", "ann", "--role", "viewer"]).says(&["ann is viewer in all namespaces now"]);
    server.windlass(&["token", "me", "--token", token.trim()]).says(&["viewer"]);
    server.windlass(&["principal", "change", "ann", "--only", "film"]).says(&["ann is viewer in film now"]);
    assert_eq!(server.windlass(&["principal", "change", "ann"]).code, 2, "to what?");
    let listed = server.json(&["principal", "list"]);
    let ann = listed.as_array().unwrap().iter().find(|item| item["name"] == "ann").unwrap().clone();
    assert_eq!((&ann["role"], &ann["namespaces"]), (&"viewer".into(), &serde_json::json!(["film"])));
    server.windlass(&["principal", "disable", "ann"]).ok();
    assert_eq!(server.windlass(&["token", "me", "--token", token.trim()]).code, 1);
    server.windlass(&["principal", "enable", "ann"]).ok();
    server.windlass(&["principal", "delete", "ann"]).ok();
    server.windlass(&["token", "create", "ann", "--role", "worker"]).ok();
    let tokens = server.json(&["token", "list"]);
    let own = tokens.as_array().unwrap().iter().find(|item| item["principal"] == "admin").unwrap()["id"].clone();
    let own = own.as_str().unwrap();
    let refused = server.windlass(&["token", "revoke", own]);
    assert_eq!(refused.code, 1);
    refused.says(&["no admin of all namespaces would be left", "force"]);
    server.windlass(&["principal", "change", "admin", "--role", "viewer"]).says(&["force"]);
    server.windlass(&["token", "revoke", own, "--force"]).ok();
    assert_eq!(server.windlass(&["token", "me"]).code, 1);
}

/// Completes or fails what it gets until nothing comes any more.
fn work_off(server: &Server, count: usize) {
    server.work(async |client| {
        let mut done = 0;
        while done < count {
            let claim = Claim { worker: "w".into(), max: Some(100), wait_ms: Some(20_000), ..Claim::default() };
            for leased in client.claim(&claim).await.unwrap().leases {
                done += 1;
                let number: u64 = serde_json::from_str(leased.payload.as_ref().unwrap().get()).unwrap();
                let message = match number % 10 {
                    0 => format!("no disk\non host {number}"),
                    1 if number < 20 => "no licence".to_owned(),
                    _ => {
                        client.complete(&Complete { lease: leased.lease, ..Complete::default() }).await.unwrap();
                        continue;
                    }
                };
                let fail = Fail { lease: leased.lease, message, permanent: true, ..Fail::default() };
                client.fail(&fail).await.unwrap();
            }
        }
    });
}

#[test]
fn many_jobs_are_waited_for_together_and_their_errors_grouped() {
    let server = Server::start();
    let lines: String = (0..2_500).map(|n| format!("{n}\n")).collect();
    let ran = std::thread::scope(|scope| {
        let submit =
            scope.spawn(|| server.with_input(&["submit", "--from", "-", "--payloads", "--wait", "-o", "json"], &lines));
        work_off(&server, 2_500);
        submit.join().unwrap()
    });
    assert_eq!(ran.code, 3, "{}", ran.err);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    for (name, count) in [("submitted", 2_500), ("refused", 0), ("completed", 2_248), ("failed", 252), ("open", 0)] {
        assert_eq!(told[name], count, "{name}: {told}");
    }
    let errors = told["errors"].as_array().unwrap();
    assert_eq!((&errors[0]["error"], &errors[0]["count"]), (&json!("reported: no disk"), &json!(250)));
    assert_eq!((&errors[1]["error"], &errors[1]["count"]), (&json!("reported: no licence"), &json!(2)));
    assert_eq!(server.json(&["job", "show", errors[1]["job"].as_str().unwrap()])["error"]["message"], "no licence");
    assert!(!ran.err.contains('\u{1b}'), "no bar without a terminal: {}", ran.err);
}

#[test]
fn a_wait_for_many_ends_in_time_and_says_what_is_open() {
    let server = Server::start();
    let wait = |line: &str, time: &str| {
        let args = ["submit", "--from", "-", "--wait", "--wait-timeout", time];
        server.with_input(&args, line)
    };
    let open = wait("{}\n{}\n", "50ms");
    assert_eq!(open.code, 5, "{}", open.err);
    open.says(&["2 jobs submitted, 0 refused", "0 completed, 2 not done in time"]);
    let none = wait("", "10s");
    assert_eq!(none.code, 0);
    // A line that is refused, and one whose job was there before and has ended.
    server.windlass(&["cancel", "last"]).ok();
    let before = "{\"idempotency_key\": \"k\", \"payload\": 7}\n";
    server.with_input(&["submit", "--from", "-"], before).ok();
    server.windlass(&["cancel", "last"]).ok();
    let again = wait(before, "20s");
    assert_eq!(again.code, 4, "{}", again.err);
    again.says(&["0 completed, 1 cancelled"]);
    let refused = wait("{\"priority\": 1, \"retry\": {\"attempts\": 0}}\n", "10s");
    assert_eq!(refused.code, 1);
    refused.says(&["0 jobs submitted, 1 refused", "line 1", "attempts"]);
}
