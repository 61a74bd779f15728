//! The worker loop against a real server: everything it promises, through the public API.

mod support;

use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use support::{Server, json};
use tokio::{sync::mpsc, task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use windlass_engine::testing::eventually;
use windlass_sdk::{
    Error,
    api::{
        JobSettings,
        job::{CancelMode, Concurrency, Retry, State, SubmitJob},
        lease::{Claim, Complete},
        worker::WorkerName,
    },
    worker::{Failure, JobContext, Outcome, StopReason, Summary, Worker},
};

type Running = JoinHandle<Result<Summary, Error>>;

/// A worker with leases that are short, so that tests see renewals, and yet outlast a machine that stands still for two seconds.
fn builder(server: &Server, name: &str) -> Worker {
    Worker::builder(server.worker()).name(name).lease_ms(4_000).backoff_max(Duration::from_millis(300))
}

fn spawn<F, Fut>(worker: Worker, handler: F) -> (Running, CancellationToken)
where
    F: Fn(JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Into<Outcome> + Send,
{
    let shutdown = CancellationToken::new();
    (tokio::spawn(worker.run(handler, shutdown.clone())), shutdown)
}

async fn ends(running: Running) -> Summary {
    tokio::time::timeout(support::PATIENCE, running).await.expect("the worker ends").unwrap().unwrap()
}

fn once() -> SubmitJob {
    let retry = Some(Retry { attempts: Some(1), ..Retry::default() });
    SubmitJob::default().with(JobSettings { retry, ..JobSettings::default() })
}

async fn echo(job: JobContext) -> Result<Value, Failure> {
    Ok(job.payload_as::<Value>()?)
}

#[tokio::test]
async fn jobs_run_to_their_results_and_the_worker_leaves_politely() {
    let server = Server::start().await;
    let (running, shutdown) = spawn(builder(&server, "w").slots(4).tags(["x"]), echo);
    let mut ids = Vec::new();
    for number in 0..20 {
        let job = SubmitJob { payload: json(json!({"n": number})), ..once() };
        let job = job.with(JobSettings { tags: Some(vec!["x".into()]), ..JobSettings::default() });
        ids.push(server.submit(job).await);
    }
    for (number, id) in ids.into_iter().enumerate() {
        let job = server.end_of(id).await;
        assert_eq!(job.state, State::Completed);
        assert_eq!(job.result.unwrap().get(), format!("{{\"n\":{number}}}"));
    }
    let shown = server.admin().worker("w").await.unwrap();
    assert_eq!((shown.slots, shown.tags), (4, vec!["x".to_owned()]));
    shutdown.cancel();
    assert_eq!(ends(running).await, Summary { completed: 20, ..Summary::default() });
    assert_eq!(server.admin().worker("w").await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn a_lease_is_kept_however_long_the_job_takes() {
    let server = Server::start().await;
    let id = server.submit(once()).await;
    let (running, shutdown) = spawn(builder(&server, "w"), |job: JobContext| async move {
        job.log("begun\n").await;
        job.progress(40.0, "on the way");
        sleep(Duration::from_secs(6)).await; // Longer than its lease, which is real time.
        job.log("done\n").await;
        Ok::<_, Failure>(())
    });
    let seen = server.until(id, |job| job.progress.as_ref().is_some_and(|progress| progress.percent == 40.0)).await;
    assert_eq!((seen.state, seen.progress.unwrap().message.as_str()), (State::Running, "on the way"));
    assert_eq!(server.log_of(id).await, "begun\n", "said while it runs");
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.attempt), (State::Completed, 1));
    assert_eq!(server.log_of(id).await, "begun\ndone\n");
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test]
async fn failures_panics_and_refused_results_are_told_apart() {
    let server = Server::start().await;
    let (running, shutdown) = spawn(builder(&server, "w"), |job: JobContext| async move {
        match job.payload_as::<String>()?.as_str() {
            "fail" => Err(Failure::new("not today")),
            "permanent" => Err(Failure::permanent("never")),
            "panic" => panic!("oh no"),
            _ => Ok("x".repeat(2 << 20)),
        }
    });
    let table = [
        ("fail", 2, "not today"),
        ("permanent", 1, "never"),
        ("panic", 2, "the handler panicked: oh no"),
        ("huge", 1, "the result was refused"),
    ];
    for (what, attempts, message) in table {
        let retry = Some(Retry { attempts: Some(2), ..Retry::default() });
        let job = SubmitJob { payload: json(json!(what)), ..SubmitJob::default() };
        let id = server.submit(job.with(JobSettings { retry, ..JobSettings::default() })).await;
        let job = server.end_of(id).await;
        let error = job.error.unwrap();
        assert_eq!((job.state, job.attempt), (State::Failed, attempts), "{what}");
        assert!(error.message.starts_with(message), "{what}: {error:?}");
    }
    shutdown.cancel();
    assert_eq!(ends(running).await.failed, 6);
}

#[tokio::test]
async fn a_cancelled_job_is_told_so_and_its_report_ends_it() {
    let server = Server::start().await;
    for (mode, summary) in [
        (CancelMode::Drain, Summary { failed: 1, ..Summary::default() }),
        (CancelMode::Revoke, Summary { lost: 1, ..Summary::default() }),
    ] {
        let id = server.submit(SubmitJob { cancel: Some(mode), ..once() }).await;
        let (running, shutdown) = spawn(builder(&server, "w"), |job: JobContext| async move {
            assert_eq!(job.cancelled().await, StopReason::Cancelled);
            Err::<(), _>(Failure::new("stopped"))
        });
        server.running(id).await;
        server.admin().cancel(id).await.unwrap();
        assert_eq!(server.end_of(id).await.state, State::Cancelled, "{mode:?}");
        shutdown.cancel();
        assert_eq!(ends(running).await, summary, "{mode:?}");
    }
}

#[tokio::test]
async fn a_job_past_its_deadline_is_stopped_and_the_server_says_why() {
    let server = Server::start().await;
    let id = server.submit(once().with(JobSettings { timeout_ms: Some(700), ..JobSettings::default() })).await;
    let (told, mut reasons) = mpsc::unbounded_channel();
    let (running, shutdown) = spawn(builder(&server, "w"), move |job: JobContext| {
        let told = told.clone();
        async move {
            told.send(job.cancelled().await).unwrap();
            Err::<(), _>(Failure::new("stopped"))
        }
    });
    let job = server.end_of(id).await;
    assert_eq!((job.state, job.error.unwrap().reason.as_str()), (State::Failed, "deadline_passed"));
    assert!(matches!(reasons.recv().await, Some(StopReason::DeadlinePassed | StopReason::LeaseLost)));
    shutdown.cancel();
    assert_eq!(ends(running).await.lost, 1);
}

#[tokio::test]
async fn a_lost_lease_stops_the_handler_and_nothing_is_reported() {
    let server = Server::start().await;
    let id = server.submit(SubmitJob::default()).await;
    let (told, mut reasons) = mpsc::unbounded_channel();
    let (running, _shutdown) = spawn(builder(&server, "w").jobs_max(Some(1)), move |job: JobContext| {
        let told = told.clone();
        async move {
            told.send(job.cancelled().await).unwrap();
            Ok::<_, Failure>("stale")
        }
    });
    server.running(id).await;
    // Taken off the list, its jobs are anybody's.
    server.worker().unregister(&WorkerName { worker: "w".into() }).await.unwrap();
    assert_eq!(reasons.recv().await, Some(StopReason::LeaseLost));
    assert_eq!(ends(running).await, Summary { lost: 1, ..Summary::default() });
    let claimed = server.worker().claim(&Claim { worker: "other".into(), ..Claim::default() }).await.unwrap();
    let leased = claimed.leases.into_iter().next().expect("it is back in the queue");
    assert_eq!(leased.job, id);
    let result = json(json!("fresh"));
    server.worker().complete(&Complete { lease: leased.lease, result, next: None }).await.unwrap();
    assert_eq!(server.end_of(id).await.result.unwrap().get(), "\"fresh\"");
}

#[tokio::test]
async fn draining_finishes_what_is_held_and_claims_no_more() {
    let server = Server::start().await;
    let ids = [server.submit(once()).await, server.submit(once()).await];
    let (running, shutdown) = spawn(builder(&server, "w"), |_: JobContext| async {
        sleep(Duration::from_secs(6)).await; // Longer than its lease, which is real time.
        Ok::<_, Failure>("done")
    });
    server.running(ids[0]).await;
    shutdown.cancel();
    assert_eq!(ends(running).await, Summary { completed: 1, ..Summary::default() });
    let job = server.admin().job(ids[0]).await.unwrap();
    assert_eq!((job.state, job.attempt), (State::Completed, 1), "renewed to the end");
    assert_eq!(server.admin().job(ids[1]).await.unwrap().state, State::Pending);
}

async fn registered(server: &Server, names: &[&str]) {
    let admin = server.admin();
    for name in names {
        eventually("it is known", async || admin.worker(name).await.ok()).await;
    }
}

#[tokio::test]
async fn a_claim_that_waits_when_the_worker_drains_leaves_nothing_behind() {
    let server = Server::start().await;
    let shutdowns: Vec<_> = (0..4).map(|number| spawn(builder(&server, &format!("w{number}")), echo)).collect();
    registered(&server, &["w0", "w1", "w2", "w3"]).await;
    let submits = async {
        let mut ids = Vec::new();
        for _ in 0..40 {
            ids.push(server.submit(once()).await);
        }
        ids
    };
    let stops = async {
        for (running, shutdown) in shutdowns {
            sleep(Duration::from_millis(20)).await; // At another moment of the submits each.
            shutdown.cancel();
            ends(running).await;
        }
    };
    let (ids, ()) = tokio::join!(submits, stops);
    for id in ids {
        let job = server.admin().job(id).await.unwrap();
        assert!(matches!(job.state, State::Pending | State::Completed), "nobody holds it: {job:?}");
    }
}

#[tokio::test]
async fn a_hard_stop_gives_everything_back_uncharged() {
    let server = Server::start().await;
    let id = server.submit(once()).await;
    let hard = CancellationToken::new();
    let (running, _shutdown) = spawn(builder(&server, "w").hard_stop(hard.clone()), |job: JobContext| async move {
        assert_eq!(job.cancelled().await, StopReason::Stopped);
        Err::<(), _>(Failure::new("interrupted"))
    });
    server.running(id).await;
    hard.cancel();
    assert_eq!(ends(running).await, Summary { released: 1, ..Summary::default() });
    let job = server.admin().job(id).await.unwrap();
    assert_eq!(job.state, State::Pending);
    let (running, shutdown) = spawn(builder(&server, "w"), echo);
    assert_eq!(server.end_of(id).await.state, State::Completed, "its only attempt was not spent");
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test]
async fn a_server_that_restarts_in_the_middle_loses_nothing() {
    let mut server = Server::start().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(server.submit(once()).await);
    }
    let (running, shutdown) = spawn(builder(&server, "w").slots(3), move |job: JobContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            for line in 0..10 {
                job.log(&format!("line {line}\n")).await;
                sleep(Duration::from_millis(100)).await; // The job takes its time: the server goes away meanwhile.
            }
            Ok::<_, Failure>("done")
        }
    });
    server.running(ids[0]).await;
    for pause_ms in [100, 2_500] {
        sleep(Duration::from_millis(300)).await; // Somewhere in the middle of the jobs.
        server.stop().await;
        sleep(Duration::from_millis(pause_ms)).await; // How long it is away is what is tested.
        server.start_again().await;
    }
    for id in &ids {
        let job = server.end_of(*id).await;
        assert_eq!((job.state, job.attempt), (State::Completed, 1), "{job:?}");
        let log = server.log_of(*id).await;
        for line in 0..10 {
            assert!(log.contains(&format!("line {line}\n")), "{log}");
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), 8, "nothing ran twice");
    shutdown.cancel();
    assert_eq!(ends(running).await, Summary { completed: 8, ..Summary::default() });
}

#[tokio::test]
async fn a_worker_the_server_forgot_introduces_itself_again() {
    let server = Server::start().await;
    let worker = builder(&server, "w").tags(["x"]).slots(2).offline_after(Duration::from_secs(1));
    let (running, shutdown) = spawn(worker, echo);
    registered(&server, &["w"]).await;
    server.worker().unregister(&WorkerName { worker: "w".into() }).await.unwrap();
    let again = async || server.admin().worker("w").await.ok().filter(|shown| shown.slots == 2 && shown.tags == ["x"]);
    eventually("it introduces itself again", again).await;
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test]
async fn a_drain_asked_for_at_the_server_is_kept_until_it_is_lifted() {
    let server = Server::start().await;
    let worker = builder(&server, "w").offline_after(Duration::from_secs(1)).wait(Duration::from_millis(300));
    let (running, shutdown) = spawn(worker, echo);
    registered(&server, &["w"]).await;
    server.admin().drain("w", true).await.unwrap();
    sleep(Duration::from_millis(600)).await; // Its claims wait for half of that: those from before are over.
    let id = server.submit(once()).await;
    sleep(Duration::from_secs(1)).await; // Several claims long nobody takes it.
    assert_eq!(server.admin().job(id).await.unwrap().state, State::Pending);
    server.admin().drain("w", false).await.unwrap();
    assert_eq!(server.end_of(id).await.state, State::Completed);
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test]
async fn large_logs_arrive_whole_and_in_order() {
    let server = Server::start().await;
    let id = server.submit(once()).await;
    let line = |number: usize| format!("{number:06} {}\n", "ä".repeat(100));
    let (running, shutdown) = spawn(builder(&server, "w"), move |job: JobContext| async move {
        for number in 0..20_000 {
            job.log(&line(number)).await;
        }
        Ok::<_, Failure>(())
    });
    assert_eq!(server.end_of(id).await.state, State::Completed);
    let expected: String = (0..20_000).map(line).collect();
    assert!(server.log_of(id).await == expected, "4 MB, each line once");
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test]
async fn an_idle_worker_may_end_and_a_bad_token_ends_it_at_once() {
    let server = Server::start().await;
    for _ in 0..5 {
        server.submit(once()).await;
    }
    let (running, _shutdown) = spawn(builder(&server, "w").slots(2).exit_when_idle(true), echo);
    assert_eq!(ends(running).await.completed, 5);
    for _ in 0..3 {
        server.submit(once()).await;
    }
    let (running, _shutdown) = spawn(builder(&server, "w").slots(8).jobs_max(Some(2)), echo);
    assert_eq!(ends(running).await.completed, 2);
    let stranger = windlass_sdk::Client::builder(server.url()).token("wrong").build().unwrap();
    let (running, _shutdown) = spawn(Worker::builder(stranger).name("w"), echo);
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some("unauthorized"));
}

/// One whose renewals and signs of life are minutes apart, so that what it hears soon, it hears otherwise.
fn quiet(server: &Server, name: &str) -> Worker {
    let far = Duration::from_secs(600);
    Worker::builder(server.worker()).name(name).lease(far).offline_after(far)
}

fn cancellable(mode: CancelMode) -> SubmitJob {
    let concurrency = Some(Concurrency { key: "one".into(), limit: 1 });
    SubmitJob { cancel: Some(mode), ..once() }.with(JobSettings { concurrency, ..JobSettings::default() })
}

#[tokio::test]
async fn a_quiet_handler_hears_at_once_that_its_job_was_cancelled() {
    let server = Server::start().await;
    let (begun, mut begins) = mpsc::unbounded_channel();
    let (running, shutdown) = spawn(quiet(&server, "w"), move |job: JobContext| {
        let begun = begun.clone();
        async move {
            begun.send(()).unwrap();
            assert_eq!(job.cancelled().await, StopReason::Cancelled);
            Err::<(), _>(Failure::new("stopped"))
        }
    });
    for mode in [CancelMode::Drain, CancelMode::Revoke] {
        for chosen in [None, Some(CancelMode::Drain), Some(CancelMode::Revoke)] {
            let id = server.submit(cancellable(mode)).await;
            begins.recv().await.unwrap();
            server.admin().cancel_as(id, chosen).await.unwrap();
            assert_eq!(server.end_of(id).await.state, State::Cancelled, "{mode:?} {chosen:?}");
        }
    }
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test]
async fn a_job_that_was_taken_away_keeps_the_key_until_its_work_has_stopped() {
    let server = Server::start().await;
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let told = order.clone();
    let (running, shutdown) = spawn(quiet(&server, "w").slots(2), move |job: JobContext| {
        let (begun, order) = (begun.clone(), told.clone());
        async move {
            let number = job.payload_as::<u32>()?;
            order.lock().unwrap().push(format!("{number} begins"));
            begun.send(number).unwrap();
            if number == 1 {
                job.cancelled().await;
                // It takes its time to stop, as processes do.
                sleep(Duration::from_millis(700)).await; // A command that is slow to stop.
            }
            order.lock().unwrap().push(format!("{number} ends"));
            Ok::<_, Failure>(())
        }
    });
    let first = server.submit(SubmitJob { payload: json(json!(1)), ..cancellable(CancelMode::Revoke) }).await;
    assert_eq!(begins.recv().await, Some(1));
    let second = server.submit(SubmitJob { payload: json(json!(2)), ..cancellable(CancelMode::Revoke) }).await;
    let cancelled = server.admin().cancel(first).await.unwrap();
    assert_eq!(cancelled.state, State::Cancelled, "the job itself ends at once");
    assert_eq!(server.end_of(second).await.state, State::Completed, "long before the lease would have ended");
    assert_eq!(*order.lock().unwrap(), ["1 begins", "1 ends", "2 begins", "2 ends"]);
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test]
async fn a_worker_hears_at_once_that_it_is_drained_and_undrained() {
    let server = Server::start().await;
    let (running, shutdown) = spawn(quiet(&server, "w"), echo);
    let first = server.submit(once()).await;
    assert_eq!(server.end_of(first).await.state, State::Completed);
    for _ in 0..3 {
        server.admin().drain("w", true).await.unwrap();
        let id = server.submit(once()).await;
        sleep(Duration::from_millis(300)).await; // Long enough for a claim that still waits to take it.
        assert_eq!(server.admin().job(id).await.unwrap().state, State::Pending, "a claim that waited ended");
        server.admin().drain("w", false).await.unwrap();
        assert_eq!(server.end_of(id).await.state, State::Completed);
    }
    shutdown.cancel();
    ends(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cancels_are_heard_soon() {
    const JOBS: usize = 200;
    let server = Server::start().await;
    let (begun, mut begins) = mpsc::unbounded_channel();
    let (heard, mut hears) = mpsc::unbounded_channel();
    let (running, shutdown) = spawn(quiet(&server, "w").slots(JOBS as u32), move |job: JobContext| {
        let (begun, heard) = (begun.clone(), heard.clone());
        async move {
            begun.send(()).unwrap();
            job.cancelled().await;
            heard.send((job.id(), std::time::Instant::now())).unwrap();
            Err::<(), _>(Failure::new("stopped"))
        }
    });
    let (mut ids, admin) = (Vec::new(), server.admin());
    for _ in 0..JOBS {
        ids.push(admin.submit(&once()).await.unwrap().id);
    }
    for _ in 0..JOBS {
        begins.recv().await.unwrap();
    }
    let mut asked = std::collections::HashMap::new();
    for id in ids {
        asked.insert(id, std::time::Instant::now());
        admin.cancel(id).await.unwrap();
    }
    let mut took = Vec::new();
    for _ in 0..JOBS {
        let (id, at) = tokio::time::timeout(support::PATIENCE, hears.recv()).await.expect("it is heard").unwrap();
        took.push(at.saturating_duration_since(asked[&id]));
    }
    took.sort();
    println!("heard within {:?} (p50), {:?} (p99)", took[JOBS / 2], took[JOBS * 99 / 100]);
    shutdown.cancel();
    ends(running).await;
}
