//! Behind a pooler that gives every transaction another session, and over encrypted lines.

use crate::support::{claim, complete, leases_of, quiet, run, submit};
use std::{collections::HashSet, sync::Arc};
use windlass_core::JobId;
use windlass_engine::store::Store;
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

async fn drain(store: Arc<Postgres>, seed: u128) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for round in 0.. {
        let outcome = run(&*store, vec![claim(&format!("w{seed}"), (seed << 40) + round, 3).into()]).await.unwrap();
        let leases = leases_of(&outcome.replies);
        if leases.is_empty() {
            return jobs;
        }
        jobs.extend(leases.iter().map(|lease| lease.job));
        let reports = leases.iter().map(|&lease| complete(lease, "done").into()).collect();
        let outcome = run(&*store, reports).await.unwrap();
        assert!(outcome.replies.iter().all(Result::is_ok), "{:?}", outcome.replies);
    }
    unreachable!("the rounds do not end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_the_sessions_of_a_pooler() {
    let cluster = Cluster::shared();
    let direct = cluster.fresh_database();
    let pooler = cluster.pooler(3);
    let url = format!("{}?pooled=true", pooler.through(&direct));
    // Notifications are asked for, and quietly left out.
    let open = async || Arc::new(Postgres::connect(Options::new(&url)).await.unwrap());
    let stores = [open().await, open().await];
    run(&*stores[0], (1..=300).map(|n| submit(n).into()).collect()).await.unwrap();
    let drains: Vec<_> = (0..6).map(|at| tokio::spawn(drain(stores[at % 2].clone(), at as u128 + 1))).collect();
    let mut jobs = Vec::new();
    for drain in drains {
        jobs.extend(drain.await.unwrap());
    }
    assert_eq!((jobs.len(), jobs.iter().collect::<HashSet<_>>().len()), (300, 300));
    assert_eq!(stores[1].check().await.unwrap(), Vec::<String>::new());
    let page = stores[1].events_after(0, 10_000).await.unwrap();
    assert_eq!(page.events.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=page.last).collect::<Vec<_>>());
    // Sessions were left as they were found: nothing prepared, nothing set, nobody listening.
    let name = direct.rsplit('/').next().unwrap();
    let left = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE '%listen%' \
                AND pid <> pg_backend_pid()";
    assert_eq!(cluster.sql(name, left), "0");
    assert_eq!(state_of_sessions(&pooler.through(&direct)).await, ["0on"; 6]);
}

/// How many statements are prepared in each session, and one of the settings of our own.
async fn state_of_sessions(url: &str) -> Vec<String> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("the pooler answers");
    tokio::spawn(connection);
    let text = "SELECT (SELECT count(*) FROM pg_prepared_statements)::text || current_setting('enable_seqscan')";
    let mut found = Vec::new();
    for _ in 0..6 {
        found.push(client.query_typed(text, &[]).await.unwrap()[0].get(0));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_nobody_mentioned_is_noticed_before_anything_is_set_or_prepared() {
    let cluster = Cluster::shared();
    let direct = cluster.fresh_database();
    for sessions in [1, 2, 3] {
        let pooler = cluster.pooler(sessions);
        // Several at once, so that the pooler has to use more than one session.
        let clients: Vec<_> = (1..=4u128)
            .map(|client| {
                let url = pooler.through(&direct);
                tokio::spawn(async move {
                    let store = Postgres::connect(Options::new(url)).await.unwrap();
                    assert!(store.bells().is_none(), "it was taken for a database");
                    for n in 1..=30 {
                        let id = ((sessions as u128) << 64) + client * 1_000 + n;
                        run(&store, vec![submit(id).into()]).await.unwrap();
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        assert_eq!(state_of_sessions(&pooler.through(&direct)).await, ["0on"; 6]);
    }
    assert!(Postgres::connect(Options::new(direct)).await.unwrap().bells().is_some(), "there is no pooler");
}

/// A program that takes the pooler for a database prepares its statements in sessions that are given to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_were_left_behind_in_a_poolers_sessions_are_in_nobodys_way() {
    let cluster = Cluster::shared();
    let direct = cluster.fresh_database();
    let pooler = cluster.pooler(2);
    let (client, connection) =
        tokio_postgres::connect(&pooler.through(&direct), tokio_postgres::NoTls).await.expect("the pooler answers");
    tokio::spawn(connection);
    let left: String = (0..2_000).map(|number| format!("PREPARE s{number} AS SELECT {number};")).collect();
    let all = "SELECT 1 WHERE (SELECT count(*) FROM pg_prepared_statements) < 2000";
    while client.query_typed(all, &[]).await.unwrap().len() + client.query_typed(all, &[]).await.unwrap().len() > 0 {
        // In the session whose turn it is, unless they are there already.
        drop(client.batch_execute(&format!("BEGIN; {left} COMMIT")).await);
        drop(client.batch_execute("ROLLBACK").await);
    }
    for (id, params) in [(1, ""), (2, "?pooled=true")] {
        let url = format!("{}{params}", pooler.through(&direct));
        let store = Postgres::connect(quiet(url)).await.unwrap();
        run(&store, vec![submit(id).into()]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_encrypted_and_checked_as_the_address_says() {
    let cluster = Cluster::start();
    let ours = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    cluster.encrypt(&ours.cert.pem(), &ours.signing_key.serialize_pem());
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (right, wrong) = (write("right.pem", ours.cert.pem()), write("wrong.pem", other.cert.pem()));
    let url = cluster.fresh_database();
    for (params, opens) in [
        ("", true),
        ("?sslmode=require", true),
        (&*format!("?sslmode=verify-full&sslrootcert={right}"), true),
        (&*format!("?sslmode=verify-full&sslrootcert={wrong}"), false),
        ("?sslmode=verify-full", false),
    ] {
        let opened = Postgres::connect(quiet(format!("{url}{params}"))).await;
        assert_eq!(opened.is_ok(), opens, "{params}: {:?}", opened.err());
        let Ok(store) = opened else { continue };
        let count = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                     WHERE a.application_name = 'windlass' AND s.ssl";
        assert_eq!(cluster.sql("postgres", count) != "0", !params.is_empty(), "{params}");
        drop(store);
        windlass_stores::testing::wait_until("the sessions' end", || cluster.sql("postgres", count) == "0");
    }
}
