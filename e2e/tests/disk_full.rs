//! A full disk: what was accepted stays, reads go on, writes are refused with a reason, and room alone makes it work again.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};
use windlass_e2e::{
    ADMIN, Server,
    crowd::{answer, request, send},
};
use windlass_engine::testing::eventually;
use windlass_stores::testing::Cluster;

/// A file system of its own, and small. Only root may make one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(megabytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "windlass-test"]).arg(folder.path());
        assert!(mount.status().is_ok_and(|status| status.success()), "only root may make a file system");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Something else that takes all the room there is.
    fn fill(&self) {
        let mut ballast = fs::File::create(self.path().join("ballast")).unwrap();
        let zeros = vec![0; 64 << 10];
        while std::io::Write::write_all(&mut ballast, &zeros).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).status());
    }
}

async fn ask(server: &Server, method: &str, path: &str, body: &str) -> String {
    let mut stream = send(server, &request(server, method, path, ADMIN, body)).await;
    answer(&mut stream, Duration::from_secs(20)).await.expect("an answer")
}

fn job(at: usize) -> String {
    format!(r#"{{"tags": ["nobody"], "payload": "{}{at}"}}"#, "x".repeat(40_000))
}

fn is_full(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 507")
        && answer.contains("application/problem+json")
        && answer.contains("retry-after: ")
        && answer.contains("/docs/errors#store-full")
}

/// Fills the disk and goes on submitting until that is refused. Adds to what was accepted.
async fn fill_up(disk: &SmallDisk, server: &Server, accepted: &mut Vec<String>) {
    for at in 0..20 {
        accepted.push(id(&ask(server, "POST", "/api/v1/jobs", &job(at)).await));
    }
    disk.fill();
    let mut refused = 0;
    for at in 0..200 {
        let answer = ask(server, "POST", "/api/v1/jobs", &job(at)).await;
        if answer.starts_with("HTTP/1.1 201") {
            accepted.push(id(&answer));
            continue;
        }
        assert!(is_full(&answer), "{answer}");
        refused += 1;
        if refused == 5 {
            break;
        }
    }
    assert_eq!(refused, 5, "the disk never became full");
    assert!(ask(server, "GET", "/api/v1/jobs?limit=10", "").await.starts_with("HTTP/1.1 200"), "reads go on");
    // What it says stands for a moment.
    let told = async || {
        let ready = ask(server, "GET", "/readyz", "").await;
        assert!(ready.starts_with("HTTP/1.1 200"), "it serves what it can: {ready}");
        ready.contains("the store is full").then_some(())
    };
    eventually("it says that it is full", told).await;
}

async fn goes_on_with_room(disk: &SmallDisk, server: &Server) {
    disk.make_room();
    let room = Instant::now();
    while !ask(server, "POST", "/api/v1/jobs", &job(0)).await.starts_with("HTTP/1.1 201") {
        assert!(room.elapsed() < Duration::from_secs(5), "there is room again, and it does not notice");
    }
    println!("accepted again {:?} after there was room", room.elapsed());
}

/// Nothing that was accepted is gone, now or after a crash.
async fn has_all(server: &mut Server, accepted: &[String]) {
    for life in 0..2 {
        for id in accepted {
            let answer = ask(server, "GET", &format!("/api/v1/jobs/{id}"), "").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "life {life}: {answer}");
        }
        server.kill();
        server.restart().await;
    }
    println!("{} accepted jobs are all there", accepted.len());
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(may_mount), ignore = "only root may make the small file system this needs")]
async fn a_full_disk_loses_nothing_says_so_and_needs_no_restart() {
    let disk = SmallDisk::new(48);
    let mut server = Server::start(&disk.path().join("data"), None).await;
    let mut accepted = Vec::new();
    fill_up(&disk, &server, &mut accepted).await;
    let upload = ask(&server, "POST", "/api/v1/artifacts?name=a", &"x".repeat(4 << 20)).await;
    assert!(is_full(&upload), "{upload}");
    goes_on_with_room(&disk, &server).await;
    let upload = ask(&server, "POST", "/api/v1/artifacts?name=a", &"x".repeat(4 << 20)).await;
    assert!(upload.starts_with("HTTP/1.1 201"), "{upload}");
    has_all(&mut server, &accepted).await;
}

async fn upload(server: &Server, megabytes: usize) -> String {
    ask(server, "POST", "/api/v1/artifacts?name=a", &"x".repeat(megabytes << 20)).await
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(may_mount), ignore = "only root may make the small file system this needs")]
async fn artifacts_leave_room_for_the_store_and_can_always_be_deleted() {
    let disk = SmallDisk::new(96);
    let server = Server::start(&disk.path().join("data"), None).await;
    let mut kept = Vec::new();
    let refused = loop {
        match upload(&server, 4).await {
            made if made.starts_with("HTTP/1.1 201") => kept.push(id(&made)),
            refused => break refused,
        }
        assert!(kept.len() < 24, "they took all of the disk");
    };
    assert!(is_full(&refused) && refused.contains("artifacts_reserve"), "{refused}");
    // A reserve is left, on which everything else goes on.
    for at in 0..20 {
        id(&ask(&server, "POST", "/api/v1/jobs", &job(at)).await);
    }
    // Something else takes what is left, too.
    disk.fill();
    let mut answers = 0;
    while !is_full(&ask(&server, "POST", "/api/v1/jobs", &job(0)).await) {
        answers += 1;
        assert!(answers < 200, "the disk never became full");
    }
    let deleted = ask(&server, "DELETE", &format!("/api/v1/artifacts/{}", kept[0]), "").await;
    assert!(deleted.starts_with("HTTP/1.1 204"), "{deleted}");
    let gone = ask(&server, "GET", &format!("/api/v1/artifacts/{}", kept[0]), "").await;
    assert!(gone.starts_with("HTTP/1.1 404"), "{gone}");
    // And that made room for the rest.
    id(&ask(&server, "POST", "/api/v1/jobs", &job(1)).await);
}

/// The database's tables lie on the small disk, its log does not: without room for that PostgreSQL itself stops.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(may_mount), ignore = "only root may make the small file system this needs")]
async fn a_full_disk_of_the_database_loses_nothing_says_so_and_needs_no_restart() {
    let disk = SmallDisk::new(48);
    let cluster = Cluster::start();
    let tables = disk.path().join("tables");
    fs::create_dir(&tables).unwrap();
    let owned = Command::new("chown").arg("postgres").arg(&tables).status();
    assert!(owned.unwrap().success(), "root runs PostgreSQL as its own user");
    cluster.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", tables.display()));
    cluster.sql("postgres", "CREATE DATABASE small TABLESPACE small");
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(data.path(), Some(&cluster.url("small"))).await;
    let mut accepted = Vec::new();
    fill_up(&disk, &server, &mut accepted).await;
    goes_on_with_room(&disk, &server).await;
    has_all(&mut server, &accepted).await;
}

fn id(answer: &str) -> String {
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let rest = answer.split("\"id\":\"").nth(1).expect("an id");
    rest.split('"').next().unwrap_or_default().to_owned()
}
