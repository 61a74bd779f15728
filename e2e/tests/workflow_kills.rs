//! A server is killed while it decides the steps of runs: what was decided stands, what was not is decided after the restart.

use std::time::{Duration, Instant};
use windlass_e2e::{Server, Worker, knob};
use windlass_sdk::api::{
    job::State,
    workflow::{InlineRun, RunState},
};

/// A list, one job for each item, and what follows from all of them: every turn needs the planner.
const SOURCE: &str = r#"
steps:
  list:
    run: echo '{"numbers":[0,1,2,3,4,5,6,7,8,9]}'
  each:
    needs: list
    map: {over: steps.list.output.numbers, max_parallel: 2}
    run: sleep 0.1; echo '{"n":${{ item }}}'
  right:
    needs: each
    if: steps.each.output.map(o, o.n) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    run: echo right
  wrong:
    needs: each
    if: size(steps.each.output) != 10
    run: echo wrong
"#;

#[tokio::test(flavor = "multi_thread")]
async fn runs_go_on_whenever_their_server_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let token = server.worker_token().await;
    let _worker = Worker::start(&server.url, &token, "w", 4, &["--lease-ms", "5000"]);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let start = InlineRun { source: Some(SOURCE.into()), ..InlineRun::default() };
        runs.push(server.admin().start_run(&start).await.unwrap().id);
    }
    for kill in 0..knob("WINDLASS_SERVER_KILLS", 6) {
        let alive = Duration::from_millis(100 + (kill as u64 * 7_919) % 300);
        tokio::time::sleep(alive).await; // It is killed at any moment.
        server.kill();
        server.restart().await;
    }
    let begun = Instant::now();
    for id in runs {
        let run = loop {
            let run = server.admin().wait_run(id, Duration::from_secs(10)).await.unwrap();
            if run.finished_at.is_some() {
                break run;
            }
            assert!(begun.elapsed() < Duration::from_secs(90), "{run:?}");
        };
        assert_eq!((run.state, run.total, run.completed, run.skipped), (RunState::Completed, 14, 13, 1), "{run:?}");
        let state = |name: &str| run.steps.iter().find(|step| step.name == name).map(|step| step.state);
        assert_eq!((state("right"), state("wrong")), (Some(State::Completed), Some(State::Skipped)), "{run:?}");
    }
}
