//! What workers and server promise each other, with real processes that are stopped, killed and restarted.

use crate::support::{Server, attempts_of, content, gone, program, shell};
use nix::sys::signal::Signal;
use std::time::Duration;
use windlass_sdk::api::{
    JobSettings,
    job::{Retry, State, SubmitJob},
};

#[tokio::test]
async fn a_lease_shorter_than_the_job_is_kept() {
    let server = Server::start().await;
    let first = program(&server, "first", &["--allow-commands", "--lease-ms", "4000"]);
    let runs = server.folder().join("runs");
    let text = format!("echo run >> {}; sleep 6; echo done", runs.display());
    let id = server.submit(SubmitJob { settings: JobSettings::default(), ..shell(&text) }).await;
    server.running(id).await;
    let second = program(&server, "second", &["--allow-commands"]);
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.attempt, job.worker.as_deref()), (State::Completed, 1, Some("first")));
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "run\n", "it ran once");
    first.drains().await;
    second.drains().await;
}

#[tokio::test]
async fn the_late_report_of_a_frozen_worker_is_refused() {
    let server = Server::start().await;
    let first = program(&server, "first", &["--allow-commands", "--lease-ms", "600"]);
    let go = server.folder().join("go");
    // The first attempt finishes while its worker is frozen, so that the report is the first thing it says afterwards.
    let text = format!(
        "if [ $WINDLASS_ATTEMPT = 1 ]; then while [ ! -e {} ]; do sleep 0.1; done; fi; echo \"{{\\\"attempt\\\": $WINDLASS_ATTEMPT}}\"",
        go.display()
    );
    let id = server.submit(SubmitJob { settings: JobSettings::default(), ..shell(&text) }).await;
    server.running(id).await;
    first.signal(Signal::SIGSTOP);
    std::fs::write(&go, "").unwrap();
    let second = program(&server, "second", &["--allow-commands"]);
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.worker.as_deref()), (State::Completed, Some("second")));
    first.signal(Signal::SIGCONT);
    tokio::time::sleep(Duration::from_millis(800)).await; // Time for it to report what nobody must believe.
    let job = server.admin().job(id).await.unwrap();
    assert_eq!(job.result.as_ref().unwrap().get(), "{\"attempt\": 2}", "the late one changed nothing");
    assert_eq!(attempts_of(&job), [(1, "lease_expired")]);
    // And the worker that was late goes on as if nothing had happened.
    second.drains().await;
    let next = server.submit(shell("true")).await;
    assert_eq!(server.end_of(next).await.worker.as_deref(), Some("first"));
    first.drains().await;
}

#[tokio::test]
async fn a_job_without_attempts_left_ends_when_its_worker_dies_and_takes_its_processes_along() {
    let server = Server::start().await;
    let mut worker = program(&server, "w", &["--allow-commands", "--lease-ms", "600"]);
    let file = server.folder().join("pid");
    let id =
        server.submit(shell(&format!("sh -c 'echo $$ > {}; sleep 1000; sleep 1000'; sleep 1", file.display()))).await;
    let pid = content(&file).await.parse().unwrap();
    worker.signal(Signal::SIGKILL);
    assert_eq!(worker.ends().await, None);
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.error.unwrap().reason.as_str()), (State::Failed, "lease_expired"));
    gone(pid).await;
}

/// As if the worker had been killed after it made the process, and before it could say which one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_was_just_started_goes_with_a_killed_worker() {
    let mut guard = tokio::process::Command::new(env!("CARGO_BIN_EXE_windlass-worker"))
        .arg("--guard")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = guard.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut pipe, b"? this-lease\n? that-lease\n! that-lease\n").await.unwrap();
    let sleeper = |lease: &str| {
        tokio::process::Command::new("sleep")
            .arg("1000")
            .env("WINDLASS_LEASE", lease)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    let (mut ours, mut other) = (sleeper("this-lease"), sleeper("that-lease"));
    drop(pipe);
    assert!(!ours.wait().await.unwrap().success());
    assert!(guard.wait().await.unwrap().success());
    assert!(other.try_wait().unwrap().is_none(), "nobody was about to start that one");
}

#[tokio::test]
async fn a_job_that_kills_its_workers_is_parked_after_three() {
    let server = Server::start().await;
    let retry = Some(Retry { attempts: Some(100), ..Retry::default() });
    let id = server.submit(shell("kill -9 $PPID").with(JobSettings { retry, ..JobSettings::default() })).await;
    let mut died = 0;
    loop {
        let mut worker = program(&server, &format!("w{died}"), &["--allow-commands", "--lease-ms", "400"]);
        tokio::select! {
            code = worker.ends() => assert_eq!(code, None, "it was killed"),
            _ = server.end_of(id) => break,
        }
        died += 1;
        if died == 3 {
            break;
        }
    }
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.error.as_ref().unwrap().reason.as_str(), died), (State::Failed, "too_many_losses", 3));
    assert_eq!(job.attempt, 3, "with its history: {:?}", attempts_of(&job));
}

#[tokio::test]
async fn the_budget_is_charged_once_for_each_start() {
    let server = Server::start().await;
    let worker = program(&server, "w", &["--allow-commands"]);
    let runs = server.folder().join("runs");
    let text = format!("echo $WINDLASS_ATTEMPT >> {}; exit 1", runs.display());
    let retry = Some(Retry { attempts: Some(4), ..Retry::default() });
    let id = server.submit(shell(&text).with(JobSettings { retry, ..JobSettings::default() })).await;
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.attempt), (State::Failed, 4));
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "1\n2\n3\n4\n");
    worker.drains().await;
}

#[tokio::test]
async fn draining_keeps_the_lease_and_reports() {
    let server = Server::start().await;
    let mut worker = program(&server, "w", &["--allow-commands", "--lease-ms", "4000"]);
    let id = server.submit(shell("sleep 6; echo '{\"late\": true}'")).await;
    server.running(id).await;
    worker.signal(Signal::SIGTERM);
    let waiting = server.submit(shell("true")).await;
    assert_eq!(worker.ends().await, Some(0));
    let job = server.admin().job(id).await.unwrap();
    assert_eq!((job.state, job.attempt, job.result.unwrap().get()), (State::Completed, 1, "{\"late\": true}"));
    assert_eq!(server.admin().job(waiting).await.unwrap().state, State::Pending, "it claimed no more");
    assert_eq!(server.admin().worker("w").await.unwrap_err().status(), Some(404), "and left");
}

#[tokio::test]
async fn a_second_signal_kills_and_gives_back() {
    let server = Server::start().await;
    let mut worker = program(&server, "w", &["--allow-commands"]);
    let file = server.folder().join("pid");
    let text = format!("trap '' TERM; echo $$ > {}; sleep 1000; sleep 1000", file.display());
    let id = server.submit(shell(&text)).await;
    let pid = content(&file).await.parse().unwrap();
    worker.signal(Signal::SIGINT);
    tokio::time::sleep(Duration::from_millis(300)).await; // Two signals of one moment are one.
    worker.signal(Signal::SIGINT);
    assert_eq!(worker.ends().await, Some(4));
    gone(pid).await;
    assert_eq!(server.admin().job(id).await.unwrap().state, State::Pending, "for somebody else, uncharged");
}

#[tokio::test]
async fn a_server_restart_in_the_middle_loses_nothing() {
    let mut server = Server::start().await;
    let runs = server.folder().join("runs");
    let worker = program(&server, "w", &["--allow-commands", "--slots", "3"]);
    let mut ids = Vec::new();
    for number in 0..6 {
        let text = format!("echo {number} >> {}; for i in 1 2 3 4 5; do echo line $i; sleep 0.4; done", runs.display());
        ids.push(server.submit(shell(&text)).await);
    }
    server.running(ids[0]).await;
    for pause_ms in [200, 5_000] {
        tokio::time::sleep(Duration::from_millis(500)).await; // Somewhere in the middle of the jobs.
        server.stop().await;
        tokio::time::sleep(Duration::from_millis(pause_ms)).await; // How long it is away is what is tested.
        server.start_again().await;
    }
    for id in ids {
        let job = server.end_of(id).await;
        assert_eq!((job.state, job.attempt), (State::Completed, 1), "{job:?}");
        let log = server.log_of(id).await;
        assert!((1..=5).all(|i| log.contains(&format!("line {i}\n"))), "{log}");
    }
    assert_eq!(std::fs::read_to_string(runs).unwrap().lines().count(), 6, "each ran once");
    worker.drains().await;
}
