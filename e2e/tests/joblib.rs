//! ZnDraw's own `JobManager`, unmodified, against the real server: nothing is changed but the address and the token.

use nix::sys::signal::Signal;
use serde_json::json;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use windlass_e2e::{Cable, JoblibUser, JoblibWorker, Plain, Server};
use windlass_engine::testing::eventually_blocking;

const JOB: &str = "@global:modifiers:Rotate";
/// How often the client asks by itself. What comes sooner came by Socket.IO.
const POLLING: &str = "30";

struct World {
    server: Server,
    user: JoblibUser,
    _folder: tempfile::TempDir,
}

async fn world() -> World {
    world_with(&[]).await
}

async fn world_with(env: &[(&'static str, &str)]) -> World {
    let folder = tempfile::tempdir().unwrap();
    let env = env.iter().map(|(name, value)| (*name, PathBuf::from(value))).collect();
    let server = Server::start_in(folder.path(), None, &[], env).await;
    let user = JoblibUser::register(&server, "ada");
    World { server, user, _folder: folder }
}

impl World {
    fn worker(&self, more: &[&str]) -> (JoblibWorker, String) {
        JoblibWorker::ready(&self.server.url, &self.user.token, more)
    }
}

/// All ways of Socket.IO, and none.
#[tokio::test(flavor = "multi_thread")]
async fn a_manager_serves_by_itself_over_every_transport() {
    let mut world = world().await;
    for transports in ["polling,websocket", "websocket", "polling"] {
        let (mut worker, id) = world.worker(&["--transports", transports, "--polling", POLLING]);
        let begun = Instant::now();
        let task = world.user.submit("room1", JOB, json!({"angle": 1.5}));
        let done = world.user.becomes(&task, "completed");
        assert!(begun.elapsed() < Duration::from_secs(10), "{transports}: woken by {:?}", begun.elapsed());
        assert_eq!(
            (&done["worker_id"], &done["room_id"], &done["job_name"]),
            (&json!(id), &json!("room1"), &json!(JOB))
        );
        assert!(done["started_at"].is_string() && done["completed_at"].is_string() && done["error"].is_null());
        assert_eq!(worker.hears("began")["angle"], 1.5);
        worker.disconnect();
        worker.hears("ended");
        assert!(worker.wait(), "{transports}");
    }
    let (_worker, _) = world.worker(&["--transports", "", "--polling", "0.2"]);
    let task = world.user.submit("room1", JOB, json!({}));
    world.user.becomes(&task, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_is_asked_call_by_call_serves_too() {
    let mut world = world().await;
    let (_worker, _) = world.worker(&["--mode", "manual", "--polling", "0.2"]);
    let task = world.user.submit("room1", JOB, json!({"angle": 2}));
    world.user.becomes(&task, "completed");
    let task = world.user.submit("room1", JOB, json!({"fails": "negative angle"}));
    assert_eq!(world.user.becomes(&task, "failed")["error"], "negative angle");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exception_fails_its_task_alone() {
    let mut world = world().await;
    let (worker, _) = world.worker(&["--polling", POLLING]);
    let bad = world.user.submit("room1", JOB, json!({"fails": "ValueError: ü"}));
    let good = world.user.submit("room1", JOB, json!({}));
    assert_eq!(world.user.becomes(&bad, "failed")["error"], "ValueError: ü");
    world.user.becomes(&good, "completed");
    assert!(worker.heard("ended").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_disconnects_or_is_asked_to_end_is_gone_at_once() {
    let mut world = world().await;
    for by_signal in [false, true] {
        let (mut worker, id) = world.worker(&[]);
        let ids = |world: &mut World| {
            world.user.call("GET", &format!("/rooms/@global/jobs/{JOB}"), &json!(null)).1["workers"].clone()
        };
        assert_eq!(ids(&mut world), json!([id]));
        if by_signal {
            worker.signal(Signal::SIGTERM);
        } else {
            worker.disconnect();
        }
        worker.hears("ended");
        let (status, _) = world.user.call("GET", &format!("/rooms/@global/jobs/{JOB}"), &json!(null));
        assert_eq!(status, 404, "a job without workers and tasks is gone");
        assert!(worker.wait());
    }
}

/// The process is gone without a word: its socket says so, long before its heartbeats would.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_is_noticed_by_its_socket() {
    let mut world = world_with(&[("WINDLASS_JOBLIB_DOUBT", "2s")]).await;
    let (worker, _) = world.worker(&[]);
    let task = world.user.submit("room1", JOB, json!({"seconds": 600}));
    world.user.becomes(&task, "running");
    let begun = Instant::now();
    worker.signal(Signal::SIGKILL);
    let failed = world.user.becomes(&task, "failed");
    println!("failed {:?} after the kill; the original promises 60 s to 90 s", begun.elapsed());
    assert_eq!((&failed["error"], &failed["worker_id"]), (&json!("Worker disconnected"), &json!(null)));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Without Socket.IO it is the heartbeats that count.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_without_a_socket_goes_at_its_timeout() {
    let mut world = world_with(&[("ZNDRAW_JOBLIB_WORKER_TIMEOUT_SECONDS", "3")]).await;
    let (worker, _) = world.worker(&["--transports", "", "--heartbeat", "0.5", "--polling", "0.2"]);
    let task = world.user.submit("room1", JOB, json!({"seconds": 600}));
    world.user.becomes(&task, "running");
    let begun = Instant::now();
    worker.signal(Signal::SIGKILL);
    world.user.becomes(&task, "failed");
    println!("failed {:?} after the kill, with a timeout of 3 s", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

/// Its connections stay open, but nothing comes through them any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_behind_a_silent_network_goes_at_its_timeout() {
    let mut world = world_with(&[("ZNDRAW_JOBLIB_WORKER_TIMEOUT_SECONDS", "3")]).await;
    let cable = Cable::to(world.server.address()).await;
    let quick = ["--heartbeat", "0.5", "--transports", "websocket"];
    let (_worker, _) = JoblibWorker::ready(&cable.url, &world.user.token, &quick);
    let task = world.user.submit("room1", JOB, json!({"seconds": 600}));
    world.user.becomes(&task, "running");
    let begun = Instant::now();
    cable.silence();
    let failed = world.user.becomes(&task, "failed");
    println!("failed {:?} after the network went silent, with a timeout of 3 s", begun.elapsed());
    assert_eq!((&failed["error"], &failed["worker_id"]), (&json!("Worker disconnected"), &json!(null)));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

/// It comes back by itself and finds its worker and its rooms as they were.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_costs_a_worker_nothing() {
    let mut world = world().await;
    let cable = Cable::to(world.server.address()).await;
    let (worker, id) = JoblibWorker::ready(&cable.url, &world.user.token, &["--polling", POLLING]);
    for _ in 0..2 {
        let before = world.user.submit("room1", JOB, json!({}));
        world.user.becomes(&before, "completed");
        cable.pull();
        worker.hears("socket_lost");
        cable.plug();
        worker.hears("socket_back");
        let begun = Instant::now();
        let after = world.user.submit("room1", JOB, json!({}));
        assert_eq!(world.user.becomes(&after, "completed")["worker_id"], json!(id));
        assert!(begun.elapsed() < Duration::from_secs(10), "woken by {:?}", begun.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_share_a_job_and_no_task_runs_twice() {
    const TASKS: usize = 60;
    let mut world = world().await;
    let workers: Vec<JoblibWorker> = (0..3).map(|_| world.worker(&["--polling", "1"]).0).collect();
    let tasks: Vec<String> = (0..TASKS).map(|at| world.user.submit("room1", JOB, json!({"angle": at}))).collect();
    for task in &tasks {
        world.user.becomes(task, "completed");
    }
    let began: Vec<String> = workers
        .iter()
        .flat_map(|worker| worker.heard("began"))
        .map(|said| said["task"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(began.len(), TASKS, "each once");
    assert_eq!(began.into_iter().collect::<HashSet<_>>(), tasks.into_iter().collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_answer_in_json_and_in_bytes() {
    let mut world = world().await;
    let (mut worker, _) = world.worker(&["--mode", "provider"]);
    let mut reader = Plain::connect(world.server.address(), &world.user.token);
    let read = "/v1/joblib/rooms/room1/providers/@global:filesystem:local?path=/";
    let (status, body) = reader.get_bytes(read);
    assert_eq!((status, String::from_utf8_lossy(&body).as_ref()), (200, r#"["/", "a", "b"]"#));
    let (status, body) = reader.get_bytes("/v1/joblib/rooms/room1/providers/@global:frames:box?size=70000");
    assert_eq!((status, body.len(), body[255], body[256]), (200, 70_000, 255, 0));
    worker.disconnect();
    worker.hears("ended");
    let (status, _) = world.user.call("GET", "/rooms/room1/providers/@global:filesystem:local/info", &json!(null));
    assert_eq!(status, 404, "providers go with their worker");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_outlives_the_server_s_restart() {
    let mut world = world().await;
    let (worker, id) = world.worker(&["--polling", "1", "--heartbeat", "1"]);
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        world.server.signal(end);
        world.server.wait();
        worker.hears("socket_lost");
        world.server.restart().await;
        world.user = world.user.at(&world.server);
        worker.hears("socket_back");
        let task = world.user.submit("room1", JOB, json!({}));
        assert_eq!(world.user.becomes(&task, "completed")["worker_id"], json!(id));
    }
    assert!(worker.heard("ended").is_empty());
}

/// The server was away for longer than workers may be silent: they could not be heard, and are not blamed for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_outlives_a_stop_that_is_longer_than_its_timeout() {
    let mut world = world_with(&[("ZNDRAW_JOBLIB_WORKER_TIMEOUT_SECONDS", "5")]).await;
    let (worker, id) = world.worker(&["--polling", "0.5", "--heartbeat", "1"]);
    world.server.signal(Signal::SIGTERM);
    world.server.wait();
    // Three a second, two claims and a heartbeat: twice its timeout.
    for _ in 0..30 {
        worker.hears("trouble");
    }
    world.server.restart().await;
    world.user = world.user.at(&world.server);
    let task = world.user.submit("room1", JOB, json!({}));
    assert_eq!(world.user.becomes(&task, "completed")["worker_id"], json!(id));
    assert!(worker.heard("ended").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_submitted_at_one_server_wakes_the_worker_of_another() {
    let cluster = windlass_stores::testing::Cluster::start();
    let database = cluster.create_database("joblib");
    let [one, two, shared] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let artifacts = ["--artifacts", shared.path().to_str().unwrap()];
    let start = async |at: &Path| Server::start_with(at, Some(&database), &artifacts).await;
    let (first, second) = (start(one.path()).await, start(two.path()).await);
    let mut user = JoblibUser::register(&first, "ada");
    let (_worker, id) = JoblibWorker::ready(&second.url, &user.token, &["--polling", POLLING]);
    for _ in 0..3 {
        let begun = Instant::now();
        let task = user.submit("room1", JOB, json!({}));
        assert_eq!(user.becomes(&task, "completed")["worker_id"], json!(id));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    let mut reader = user.at(&first);
    let seen = eventually_blocking("the worker is listed", || {
        let (_, page) = reader.call("GET", "/workers", &json!(null));
        page["items"].as_array().filter(|items| items.len() == 1).cloned()
    });
    assert_eq!(seen[0]["id"], json!(id));
}
