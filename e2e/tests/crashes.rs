//! The server is killed again and again while real workers work: nothing acknowledged is lost, nothing completes twice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use windlass_e2e::{History, Server, Worker, knob, submit_until};
use windlass_stores::testing::Cluster;

/// Long enough for work to be under way, short enough to hit it anywhere.
fn moment(kill: usize) -> Duration {
    Duration::from_millis(150 + (kill as u64 * 7_919) % 350)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), None).await;
    let token = server.worker_token().await;
    let workers: Vec<Worker> =
        (0..2).map(|at| Worker::start(&server.url, &token, &format!("w{at}"), 4, &["--lease-ms", "5000"])).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(submit_until(vec![server.admin()], "crash", stop.clone(), Duration::from_millis(10)));
    let kills = knob("WINDLASS_SERVER_KILLS", 8);
    for kill in 0..kills {
        tokio::time::sleep(moment(kill)).await; // It is killed at any moment.
        server.kill();
        server.restart().await;
    }
    stop.store(true, Ordering::Relaxed);
    finish(load.await.unwrap(), kills, &server, workers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_database_stand_in_for_each_other() {
    let cluster = Cluster::start();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut servers = Vec::new();
    let url = cluster.create_database("two");
    let shared = folders[0].path().join("artifacts").display().to_string();
    for folder in &folders {
        servers.push(Server::start_with(folder.path(), Some(&url), &["--artifacts", &shared]).await);
    }
    let token = servers[0].worker_token().await;
    let workers: Vec<Worker> = servers
        .iter()
        .enumerate()
        .map(|(at, server)| Worker::start(&server.url, &token, &format!("w{at}"), 4, &["--lease-ms", "5000"]))
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let clients = servers.iter().map(Server::admin).collect();
    let load = tokio::spawn(submit_until(clients, "turns", stop.clone(), Duration::from_millis(10)));
    let kills = knob("WINDLASS_SERVER_KILLS", 8);
    for kill in 0..kills {
        tokio::time::sleep(moment(kill)).await; // It is killed at any moment.
        let server = &mut servers[kill % 2];
        server.kill();
        server.restart().await;
    }
    stop.store(true, Ordering::Relaxed);
    finish(load.await.unwrap(), kills, &servers[0], workers).await;
}

async fn finish(history: History, kills: usize, server: &Server, workers: Vec<Worker>) {
    // Not more, as disks stall: a slow machine is no fault of the server's.
    assert!(history.acknowledged.len() > 3 * kills, "{} jobs are no load", history.acknowledged.len());
    history.check(&server.admin(), Duration::from_secs(60)).await;
    println!("{} jobs acknowledged, {} submits repeated", history.acknowledged.len(), history.repeated);
    for worker in workers {
        assert!(worker.drain().success(), "a drained worker ends well");
    }
}
