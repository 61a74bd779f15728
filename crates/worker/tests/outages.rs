//! What a worker says and does while its server is away, and when it is back.

use crate::support::{Server, content, logging_program, shell};
use std::{
    path::Path,
    time::{Duration, Instant},
};
use windlass_engine::testing::eventually;
use windlass_sdk::api::job::State;

fn lines(log: &Path, with: &str) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|line| line.contains(with)).map(str::to_owned).collect()
}

#[tokio::test]
async fn an_outage_is_two_warnings_and_a_finished_report_is_sent_at_once_when_it_is_over() {
    let mut server = Server::start().await;
    let (log, ready, ended) = (server.folder().join("log"), server.folder().join("ready"), server.folder().join("end"));
    let flags = ["--allow-commands", "--slots", "3", "--lease-ms", "60000"];
    let worker = logging_program(&server, "w", &flags, &log);
    let long = server.submit(shell("while true; do echo tick; sleep 0.2; done")).await;
    let text =
        format!("echo > {0}; while [ -e {0} ]; do sleep 0.05; done; echo over > {1}", ready.display(), ended.display());
    let done = server.submit(shell(&text)).await;
    server.running(long).await;
    content(&ready).await;
    eventually("it runs", async || ready.exists().then_some(())).await;
    server.stop().await;
    std::fs::remove_file(&ready).unwrap();
    content(&ended).await;
    let failed = || lines(&log, "another try failed").len();
    eventually("many calls have failed", async || (failed() >= 40).then_some(())).await;
    server.start_again().await;
    let back = Instant::now();
    assert_eq!(server.end_of(done).await.state, State::Completed);
    assert!(back.elapsed() < Duration::from_secs(3), "it was told {:?} after the server was back", back.elapsed());
    eventually("the end is told", async || (lines(&log, "answers again").len() == 1).then_some(())).await;
    let said = lines(&log, "WARN");
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(said[0].contains("cannot be reached") && said[1].contains("the server answers again after"), "{said:#?}");
    assert_eq!(lines(&log, "ERROR"), [""; 0]);
    server.admin().cancel(long).await.unwrap();
    worker.drains().await;
}

#[tokio::test]
async fn connected_is_said_when_it_is_and_nothing_is_named_that_is_not_there() {
    let mut server = Server::start().await;
    server.stop().await;
    let log = server.folder().join("log");
    let worker = logging_program(&server, "w", &["--allow-commands"], &log);
    eventually("it has tried", async || (lines(&log, "another try failed").len() > 1).then_some(())).await;
    assert_eq!(lines(&log, "connected"), [""; 0]);
    server.start_again().await;
    let id = server.submit(shell("true")).await;
    assert_eq!(server.end_of(id).await.state, State::Completed);
    worker.drains().await;
    assert_eq!(lines(&log, "connected").len(), 1);
    for untold in ["node=", "Summary", "released="] {
        assert_eq!(lines(&log, untold), [""; 0]);
    }
    let done = lines(&log, "done completed=1 failed=0");
    assert_eq!(done.len(), 1, "{:?}", std::fs::read_to_string(&log));
}
