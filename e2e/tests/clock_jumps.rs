//! Somebody sets the clock on the wall while the server runs, or while it does not. A preloaded library shows the program a clock
//! that the test sets; the monotonic clock is left alone, as it is when a real clock is set.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use windlass_e2e::Server;
use windlass_engine::testing::eventually;
use windlass_sdk::{
    Client,
    api::{
        JobSettings, Uuid,
        job::{Retry, SubmitJob},
        lease::{Claim, Complete, LeaseOnly, Leased},
    },
};

const HOUR: i64 = 3_600;

/// The library, wherever the distribution puts it.
fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut found = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    found
        .find(|file| file.exists())
        .expect("libfaketime is not installed: scripts/test does so (apt-get install faketime)")
}

struct Wall {
    file: PathBuf,
    ahead: i64,
}

impl Wall {
    fn new(folder: &Path) -> Self {
        let mut wall = Self { file: folder.join("wall"), ahead: 0 };
        wall.jump(0);
        wall
    }

    fn jump(&mut self, seconds: i64) {
        self.ahead += seconds;
        // Whole or not at all: the program may look at any moment.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{:+}\n", self.ahead)).unwrap();
        std::fs::rename(&new, &self.file).unwrap();
    }

    async fn server(&self, data: &Path) -> Server {
        let env = vec![
            ("LD_PRELOAD", library()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("DONT_FAKE_MONOTONIC", "1".into()),
        ];
        Server::start_in(data, None, &[], env).await
    }
}

/// One that submits, one that works.
async fn clients(server: &Server) -> (Client, Client) {
    (server.admin(), server.client(&server.worker_token().await))
}

async fn submit(client: &Client) -> Uuid {
    let retry = Some(Retry { attempts: Some(5), losses_max: Some(5), backoff_ms: Some(0), ..Retry::default() });
    client.submit(&SubmitJob::default().with(JobSettings { retry, ..JobSettings::default() })).await.unwrap().id
}

async fn claim(client: &Client, worker: &str, lease_ms: u64, wait_ms: u64) -> Option<Leased> {
    let (lease_ms, wait_ms) = (Some(lease_ms), Some(wait_ms));
    let claim = Claim { worker: worker.into(), lease_ms, wait_ms, ..Claim::default() };
    client.claim(&claim).await.unwrap().leases.pop()
}

#[tokio::test(flavor = "multi_thread")]
async fn set_forward_by_an_hour_no_lease_runs_out_early_and_no_schedule_fires_in_a_burst() {
    let folder = tempfile::tempdir().unwrap();
    let mut wall = Wall::new(folder.path());
    let server = wall.server(&folder.path().join("data")).await;
    let (client, worker) = clients(&server).await;
    submit(&client).await;
    let held = claim(&worker, "a", 60_000, 0).await.unwrap();
    let fired = schedule(&client).await;
    wall.jump(HOUR);
    let jumped = Instant::now();
    worker.renew(&LeaseOnly { lease: held.lease.clone() }).await.expect("renewed a moment ago, it still holds");
    // Longer than the sweep and the scheduler sleep at most.
    while jumped.elapsed() < Duration::from_secs(8) {
        assert!(claim(&worker, "b", 60_000, 500).await.is_none_or(|other| other.job != held.job), "given to another");
    }
    worker.complete(&Complete { lease: held.lease, ..Complete::default() }).await.expect("it is still held");
    let more = until_fired(&client, fired).await - fired;
    assert!(more <= jumped.elapsed().as_secs() + 4, "fired {more} times in {:?}", jumped.elapsed());
}

/// A schedule for every second; how often it had fired when it had fired at all.
async fn schedule(client: &Client) -> u64 {
    let body = serde_json::json!({"cron": "* * * * * *", "job": {"tags": ["nobody"]}});
    client.put_schedule("every-second", &serde_json::from_value(body).unwrap()).await.unwrap();
    until_fired(client, 0).await
}

async fn until_fired(client: &Client, before: u64) -> u64 {
    let fired = async || Some(times_fired(client).await).filter(|fired| *fired > before);
    eventually("the schedule fires", fired).await
}

async fn times_fired(client: &Client) -> u64 {
    client.schedule("every-second").await.unwrap().fired
}

#[tokio::test(flavor = "multi_thread")]
async fn set_back_by_an_hour_no_lease_lives_longer_than_its_length_and_nothing_fires_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut wall = Wall::new(folder.path());
    let server = wall.server(&folder.path().join("data")).await;
    let (client, worker) = clients(&server).await;
    let job = submit(&client).await;
    let held = claim(&worker, "a", 1_000, 0).await.unwrap();
    wall.jump(-HOUR);
    tokio::time::sleep(Duration::from_millis(1_500)).await; // Longer than the lease, in real time.
    let late = worker.complete(&Complete { lease: held.lease, ..Complete::default() }).await.unwrap_err();
    assert!(late.is_lease_lost(), "{late}");
    let next = claim(&worker, "b", 60_000, 30_000).await.expect("nobody renewed, so another gets it");
    assert_eq!(next.job, job);
    let fired = schedule(&client).await;
    wall.jump(-60);
    tokio::time::sleep(Duration::from_secs(7)).await; // Several of the moments it must not fire for again.
    let more = times_fired(&client).await - fired;
    assert!(more <= 1, "fired {more} times for moments that had passed already");
}

#[tokio::test(flavor = "multi_thread")]
async fn set_back_while_the_server_is_away_leases_end_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut wall = Wall::new(folder.path());
    let mut server = wall.server(&folder.path().join("data")).await;
    let (client, worker) = clients(&server).await;
    let job = submit(&client).await;
    let held = claim(&worker, "a", 2_000, 0).await.unwrap();
    assert_eq!(held.job, job);
    server.kill();
    wall.jump(-HOUR);
    server.restart().await;
    // Its full length again, because nobody could renew it; then it is over.
    let next = claim(&worker, "b", 60_000, 30_000).await.expect("nobody renews, so another gets it");
    assert_eq!(next.job, job);
}
