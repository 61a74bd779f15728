//! What command jobs see, print and leave behind.

use crate::support::{Program, Server, content, gone, json, program, shell};
use serde_json::json;
use std::time::Duration;
use windlass_engine::testing::eventually;
use windlass_sdk::api::{
    JobSettings,
    job::{Job, Retry, State, SubmitJob},
};

async fn end(server: &Server, job: SubmitJob) -> (Job, String) {
    let id = server.submit(job).await;
    let job = server.end_of(id).await;
    (job, server.log_of(id).await)
}

fn result(job: &Job) -> &str {
    job.result.as_ref().map_or("none", |json| json.get())
}

#[tokio::test]
async fn results_come_from_the_file_or_the_last_line() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands", "--slots", "4"]);
    let table = [
        ("echo '{\"a\": 1}' > $WINDLASS_RESULT; echo '{\"b\": 2}'", "{\"a\": 1}", "{\"b\": 2}\n"),
        ("echo working; echo '{\"b\": [2]}'", "{\"b\": [2]}", "working\n{\"b\": [2]}\n"),
        ("printf '[1]'", "[1]", "[1]"),
        ("echo 42 > $WINDLASS_RESULT", "42", ""),
        ("echo plain", "none", "plain\n"),
        ("cat > copy; cat copy | tr -d '\\n'", "{\"shell\":\"cat > copy; cat copy | tr -d '\\\\n'\"}", ""),
    ];
    for (text, expected, log) in table {
        let (job, printed) = end(&server, shell(text)).await;
        assert_eq!((job.state, result(&job)), (State::Completed, expected), "{text}: {:?}", job.error);
        assert!(log.is_empty() || printed == log, "{text}: {printed}");
    }
    let (job, _) = end(&server, shell("echo oops > $WINDLASS_RESULT")).await;
    assert_eq!(job.state, State::Failed);
    assert!(job.error.unwrap().message.contains("the result file is not valid JSON"));
    worker.drains().await;
}

#[tokio::test]
async fn output_is_one_stream_in_order_with_progress_taken_out() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands"]);
    let text =
        "for i in $(seq 1 200); do echo out $i; echo err $i >&2; done; echo '::progress 100 all of it'; echo end";
    let (job, log) = end(&server, shell(text)).await;
    let expected: String = (1..=200).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(log, expected + "end\n");
    let progress = job.progress.unwrap();
    assert_eq!((progress.percent, progress.message.as_str()), (100.0, "all of it"));
    worker.drains().await;
}

#[tokio::test]
async fn large_output_arrives_whole() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands"]);
    let (job, log) = end(&server, shell("seq 1 600000")).await;
    assert_eq!(job.state, State::Completed);
    let expected: String = (1..=600_000).map(|i| format!("{i}\n")).collect();
    assert!(log == expected, "4 MB, each line once: {} of {} bytes", log.len(), expected.len());
    worker.drains().await;
}

#[tokio::test]
async fn exit_codes_and_signals_say_what_happened() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands"]);
    let table = [
        (
            "echo first; echo the disk is on fire >&2; exit 7",
            2,
            "exit code 7: the disk is on fire\nfirst\nthe disk is on fire",
        ),
        ("exit 75", 2, "exit code 75"),
        ("exit 100", 1, "exit code 100"),
        ("kill -9 $$", 2, "killed by SIGKILL"),
    ];
    for (text, attempts, message) in table {
        let retry = Some(Retry { attempts: Some(2), ..Retry::default() });
        let (job, _) = end(&server, shell(text).with(JobSettings { retry, ..JobSettings::default() })).await;
        assert_eq!((job.state, job.attempt), (State::Failed, attempts), "{text}");
        assert_eq!(job.error.unwrap().message, message, "{text}");
    }
    let command = |value| SubmitJob { payload: json(value), ..shell("") };
    let (job, _) = end(&server, command(json!({"command": ["no-such-program-here"]}))).await;
    assert!(job.error.unwrap().message.starts_with("no-such-program-here cannot be started"));
    let (job, _) = end(&server, command(json!({"comand": ["ls"]}))).await;
    assert!(job.error.unwrap().message.contains("needs either"));
    worker.drains().await;
}

#[tokio::test]
async fn commands_know_their_job_and_not_the_workers_token() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands"]);
    let payload =
        json!({"command": ["/bin/sh", "-c", "env; pwd; cat $WINDLASS_PAYLOAD"], "env": {"MINE": "yes"}, "cwd": "a/b"});
    let (job, log) = end(&server, SubmitJob { payload: json(payload), ..shell("") }).await;
    let has = |text: &str| assert!(log.contains(text), "{text} in {log}");
    has(&format!("WINDLASS_JOB_ID={}\n", job.id));
    has("WINDLASS_ATTEMPT=1\n");
    has("WINDLASS_LEASE=");
    has(&format!("WINDLASS_SERVER={}\n", server.url()));
    has("WINDLASS_NAMESPACE=default\n");
    has("MINE=yes\n");
    has(&format!("{}-1/files/a/b\n", job.id));
    has("\"cwd\":\"a/b\"");
    assert!(!log.contains("WINDLASS_TOKEN") && !log.contains("test-worker"), "{log}");
    worker.drains().await;
    let left = std::fs::read_dir(server.folder().join("work")).unwrap().count();
    assert_eq!(left, 0, "working folders are removed");
}

#[tokio::test]
async fn failed_folders_are_kept_on_demand() {
    let server = Server::start().await;
    let mut worker = program(&server, "w", &["--allow-commands", "--keep-failed", "--once"]);
    let (job, log) = end(&server, shell("echo evidence > here; exit 1")).await;
    assert_eq!(worker.ends().await, Some(0));
    let folder = server.folder().join("work").join(format!("{}-1", job.id));
    assert_eq!(std::fs::read_to_string(folder.join("files/here")).unwrap(), "evidence\n");
    assert!(log.contains("the working folder is kept"), "{log}");
}

#[tokio::test]
async fn one_command_for_every_job_or_one_for_each_definition() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--exec", "tr", "a-z", "A-Z"]);
    let job = SubmitJob { payload: json(json!(["x", {"y": 1}])), ..shell("") };
    let (job, _) = end(&server, job).await;
    assert_eq!(result(&job), "[\"X\",{\"Y\":1}]");
    worker.drains().await;
    let config = server.folder().join("worker.toml");
    std::fs::write(&config, "[definitions.other]\nshell = \"true\"\n").unwrap();
    let worker = program(&server, "w", &["--config", config.to_str().unwrap()]);
    let (job, _) = end(&server, shell("echo should not run")).await;
    assert!(job.error.unwrap().message.contains("no program for this job"));
    worker.drains().await;
}

#[tokio::test]
async fn cancellation_ends_the_whole_family() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands", "--grace", "0.5"]);
    let file = |name: &str| server.folder().join(name);
    // One that ignores the polite signal, one in the background, and one that left the group.
    let text = format!(
        "trap '' TERM; sleep 1000 & echo $! > {a}; setsid sh -c 'echo $$ > {b}; exec sleep 1000' & echo $$ > {c}; sleep 1000; sleep 1000",
        a = file("a").display(),
        b = file("b").display(),
        c = file("c").display(),
    );
    let id = server.submit(shell(&text)).await;
    let mut pids = Vec::new();
    for name in ["a", "b", "c"] {
        pids.push(content(&file(name)).await.parse::<i32>().unwrap());
    }
    server.admin().cancel(id).await.unwrap();
    assert_eq!(server.end_of(id).await.state, State::Cancelled);
    for pid in pids {
        gone(pid).await;
    }
    worker.drains().await;
}

#[tokio::test]
async fn a_polite_command_gets_its_grace_and_the_job_its_last_words() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands"]);
    let id = server.submit(shell("trap 'echo cleaning up; exit 0' TERM; echo ready; sleep 1000 & wait")).await;
    server.running(id).await;
    eventually("it is ready", async || server.log_of(id).await.contains("ready").then_some(())).await;
    server.admin().cancel(id).await.unwrap();
    assert_eq!(server.end_of(id).await.state, State::Cancelled);
    assert_eq!(server.log_of(id).await, "ready\ncleaning up\n");
    worker.drains().await;
}

#[tokio::test]
async fn a_job_past_its_time_is_killed_and_its_leftovers_go_with_every_end() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands", "--grace", "0.2"]);
    let file = server.folder().join("pid");
    let text = format!("echo $$ > {}; sleep 1000; sleep 1000", file.display());
    let id = server.submit(shell(&text).with(JobSettings { timeout_ms: Some(800), ..JobSettings::default() })).await;
    let pid = content(&file).await.parse().unwrap();
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.error.unwrap().reason.as_str()), (State::Failed, "deadline_passed"));
    gone(pid).await;
    std::fs::remove_file(&file).unwrap();
    let text = format!("sleep 1000 & echo $! > {}; echo '[1]'", file.display());
    let started = std::time::Instant::now();
    let (job, _) = end(&server, shell(&text)).await;
    assert_eq!((job.state, result(&job)), (State::Completed, "[1]"), "what stays behind does not hold it up");
    assert!(started.elapsed() < Duration::from_secs(10));
    gone(content(&file).await.parse().unwrap()).await;
    worker.drains().await;
}

#[tokio::test]
async fn a_worker_without_rights_or_work_says_so() {
    let server = Server::start().await;
    let run = |flags: &[&str], token: &str| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_windlass-worker"));
        command.args(flags).args(["--server", &server.url(), "--token", token]);
        Program::start(command, &server)
    };
    assert_eq!(run(&["--allow-commands"], "wrong").ends().await, Some(3));
    assert_eq!(run(&["--no-such-flag"], "wrong").ends().await, Some(2));
    assert_eq!(run(&[], "test-worker").ends().await, Some(1), "nothing to run jobs with");
    assert_eq!(run(&["--allow-commands", "--exit-when-idle"], "test-worker").ends().await, Some(0));
}

/// A program that is stopped at its deadline says why on its way out: with another attempt to come, and without.
#[tokio::test]
async fn what_a_program_prints_after_it_was_told_to_end_is_kept() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands"]);
    let text = "trap 'sleep 0.3; echo leaving; exit 1' TERM; echo here; sleep 600 & wait";
    let retry = Retry { attempts: Some(2), backoff_ms: Some(2_000), jitter_percent: Some(0), ..Retry::default() };
    for settings in [
        JobSettings { timeout_ms: Some(500), ..JobSettings::default() },
        JobSettings { deadline_ms: Some(500), ..JobSettings::default() },
        JobSettings { timeout_ms: Some(500), retry: Some(retry), ..JobSettings::default() },
    ] {
        let retried = settings.retry.is_some();
        let id = server.submit(shell(text).with(settings.clone())).await;
        let job = server.end_of(id).await;
        assert_eq!(job.state, State::Failed);
        let wanted = if retried { "here\nleaving\nhere\nleaving\n" } else { "here\nleaving\n" };
        let look = async || (server.log_of(id).await == wanted).then_some(());
        eventually(format!("the last words of {settings:?} come"), look).await;
    }
    worker.drains().await;
}
