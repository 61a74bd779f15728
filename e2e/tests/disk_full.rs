//! A full disk: what was accepted stays, reads go on, writes are refused with a reason, and room alone makes it work again.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};
use windlass_e2e::{
    ADMIN, Server, SmallDisk,
    crowd::{answer, request, send},
};
use windlass_engine::testing::eventually;
use windlass_sdk::{
    Client,
    api::{
        JobSettings, Uuid,
        job::SubmitJob,
        lease::{Claim, Complete, LeaseOnly, Leased},
        token::{CreateToken, EndPrincipal, Role},
    },
};
use windlass_stores::testing::Cluster;

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

fn tagged(tag: &str) -> SubmitJob {
    SubmitJob::default().with(JobSettings { tags: Some(vec![tag.into()]), ..JobSettings::default() })
}

/// Submits as a tenant, until there is no room for more. The ids of what was accepted.
async fn fill_as(tenant: &Client) -> Vec<Uuid> {
    let payload = serde_json::value::to_raw_value(&"x".repeat(900_000)).unwrap();
    let job = SubmitJob { payload: Some(payload), ..tagged("a") };
    let (mut accepted, mut refused) = (Vec::new(), 0);
    while refused < 20 {
        match tenant.submit(&job).await {
            Ok(submitted) => accepted.push(submitted.id),
            Err(error) => {
                assert_eq!(error.status(), Some(507), "{error}");
                refused += 1;
            }
        }
        assert!(accepted.len() < 400, "the disk never became full");
    }
    accepted
}

/// A job of another tenant that is at work, and its worker.
async fn at_work(server: &Server) -> (Client, Leased) {
    server.admin_of("b").submit(&tagged("b")).await.unwrap();
    let token = server.worker_token().await;
    let worker = Client::builder(&server.url).token(&token).namespace("b").build().unwrap();
    let worker_name = Uuid::new_v4().to_string();
    let claim =
        Claim { worker: worker_name, tags: Some(vec!["b".into()]), lease_ms: Some(600_000), ..Claim::default() };
    let leased = worker.claim(&claim).await.unwrap().leases.remove(0);
    (worker, leased)
}

/// One tenant fills the disk. What another one holds goes on, and an admin can end the first one's access and work; when that is
/// removed, everything is accepted again. All of it with and without a restart in between.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(may_mount), ignore = "only root may make the small file system this needs")]
async fn on_a_disk_that_one_tenant_filled_others_report_and_an_admin_makes_room() {
    for restarts in [false, true] {
        let disk = SmallDisk::new(128);
        let more = ["--stored-bytes-per-namespace-max", "0", "--retention", "2s"];
        let mut server = Server::start_with(&disk.path().join("data"), None, &more).await;
        let (principal, namespaces) = ("tenant-a".into(), vec!["a".into()]);
        let rights = CreateToken { principal, role: Role::Editor, namespaces, expires_ms: None };
        let token = server.admin().create_token(&rights).await.unwrap();
        let tenant = Client::builder(&server.url).token(&token.token).namespace("a").build().unwrap();
        let held = [at_work(&server).await, at_work(&server).await];
        let other_tenant = server.admin_of("b");
        let accepted = fill_as(&tenant).await;
        println!("{} jobs filled the disk", accepted.len());
        if restarts {
            server.kill();
            server.restart().await;
            fill_as(&tenant).await;
        }
        for (worker, leased) in &held {
            worker.renew(&LeaseOnly { lease: leased.lease.clone() }).await.unwrap();
            let result = Some(serde_json::value::to_raw_value(&"y".repeat(10_000)).unwrap());
            worker.complete(&Complete { lease: leased.lease.clone(), result, ..Complete::default() }).await.unwrap();
        }
        let refused = other_tenant.submit(&SubmitJob::default()).await.unwrap_err();
        assert!(refused.to_string().contains("reserved for reports"), "{refused}");
        server.admin().revoke_token(&token.about.id, false).await.unwrap();
        assert_eq!(tenant.me().await.unwrap_err().status(), Some(401));
        server.admin().end_principal("tenant-a", &EndPrincipal::default()).await.unwrap();
        for job in accepted {
            server.admin_of("a").cancel(job).await.unwrap();
        }
        let accepted_again = async || other_tenant.submit(&SubmitJob::default()).await.ok();
        eventually("the space of what was removed is used again", accepted_again).await;
    }
}

/// A quota keeps one tenant from filling the disk in the first place.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(may_mount), ignore = "only root may make the small file system this needs")]
async fn by_default_a_tenant_leaves_half_of_the_disk_to_others() {
    let disk = SmallDisk::new(128);
    let server = Server::start(&disk.path().join("data"), None).await;
    let accepted = fill_as(&server.admin_of("a")).await.len();
    assert!((50..80).contains(&accepted), "{accepted} jobs of 0.9 MB were accepted");
    let (worker, leased) = at_work(&server).await;
    worker.complete(&Complete { lease: leased.lease, ..Complete::default() }).await.unwrap();
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
    // And that made room for the rest, which the server notices within a moment.
    let accepted =
        async || ask(&server, "POST", "/api/v1/jobs", &job(1)).await.starts_with("HTTP/1.1 201").then_some(());
    eventually("there is room for another job", accepted).await;
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
