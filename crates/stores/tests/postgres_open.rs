//! Opening: migrations, and clear refusals.

use crate::support::{quiet, run, submit};
use std::time::Duration;
use windlass_stores::{
    postgres::{OpenError, Options, Postgres},
    testing::Cluster,
};

async fn refusal(options: Options) -> OpenError {
    match Postgres::connect(options).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn an_empty_database_is_prepared_once_however_many_servers_start() {
    let url = Cluster::shared().fresh_database();
    let opened = [0; 5].map(|_| tokio::spawn(Postgres::connect(quiet(url.clone()))));
    for store in opened {
        let store = store.await.unwrap().unwrap();
        drop(store);
    }
    let database = url.rsplit('/').next().unwrap();
    let version = "SELECT value FROM windlass.meta WHERE name = 'schema_version'";
    assert_eq!(Cluster::shared().sql(database, version), "7");
}

/// They would take a revoked admin token for valid: the row is there, and what says so is new.
#[tokio::test]
async fn a_database_that_this_program_used_is_refused_by_programs_that_would_misread_its_rows() {
    let url = Cluster::shared().fresh_database();
    let database = url.rsplit('/').next().unwrap().to_owned();
    drop(Postgres::connect(quiet(url.clone())).await.unwrap());
    // As the version before left it.
    Cluster::shared()
        .sql(&database, "UPDATE windlass.meta SET value = 3 WHERE name IN ('schema_version', 'min_reader')");
    drop(Postgres::connect(quiet(url)).await.unwrap());
    let min_reader = Cluster::shared().sql(&database, "SELECT value FROM windlass.meta WHERE name = 'min_reader'");
    assert!(min_reader.parse::<i64>().unwrap() > 3, "programs of version 3 may use it");
}

#[tokio::test]
async fn a_newer_schema_is_refused_unless_it_says_it_can_be_read() {
    let url = Cluster::shared().fresh_database();
    let database = url.rsplit('/').next().unwrap().to_owned();
    drop(Postgres::connect(quiet(url.clone())).await.unwrap());
    let set = |name: &str, value: i64| {
        Cluster::shared().sql(&database, &format!("UPDATE windlass.meta SET value = {value} WHERE name = '{name}'"))
    };
    set("schema_version", 99);
    let store = Postgres::connect(quiet(url.clone())).await.unwrap();
    run(&store, vec![submit(1).into()]).await.unwrap();
    set("min_reader", 99);
    let error = refusal(quiet(url)).await;
    assert!(matches!(error, OpenError::NewerSchema { found: 99, supported: 7, .. }), "{error}");
}

#[tokio::test]
async fn a_schema_is_not_made_where_that_is_not_wanted() {
    let url = Cluster::shared().fresh_database();
    let error = refusal(Options { migrate: false, ..quiet(url) }).await;
    assert!(matches!(error, OpenError::OldSchema { found: 0, .. }), "{error}");
}

#[tokio::test]
async fn two_schemas_in_one_database_are_strangers() {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(Options { schema: "second_1".into(), ..quiet(url.clone()) }).await.unwrap();
    run(&one, vec![submit(1).into()]).await.unwrap();
    run(&other, vec![submit(2).into()]).await.unwrap();
    let count = |schema: &str| {
        Cluster::shared().sql(url.rsplit('/').next().unwrap(), &format!("SELECT count(*) FROM {schema}.jobs"))
    };
    assert_eq!((count("windlass"), count("second_1")), ("1".into(), "1".into()));
    let error = refusal(Options { schema: "no\"quotes".into(), ..quiet(url) }).await;
    assert!(matches!(error, OpenError::SchemaName(_)), "{error}");
}

#[tokio::test]
async fn unsafe_settings_are_refused_unless_allowed() {
    let cluster = Cluster::start();
    let url = cluster.create_database("risky");
    cluster.sql("postgres", "ALTER SYSTEM SET fsync = off");
    cluster.sql("postgres", "SELECT pg_reload_conf()");
    windlass_stores::testing::wait_until("the setting", || cluster.sql("postgres", "SHOW fsync") == "off");
    let error = refusal(quiet(url.clone())).await;
    assert!(matches!(error, OpenError::Unsafe { .. }), "{error}");
    Postgres::connect(Options { allow_unsafe: true, ..quiet(url) }).await.unwrap();
}

#[tokio::test]
async fn refusals_name_the_place_but_never_the_password() {
    let cluster = Cluster::shared();
    let port = cluster.port();
    let with = |place: &str| quiet(format!("postgres://postgres:secret-word@{place}"));
    let error = refusal(with(&format!("127.0.0.1:{port}/nowhere"))).await;
    assert!(matches!(error, OpenError::NoDatabase { .. }), "{error}");
    assert!(error.to_string().contains("nowhere") && error.to_string().contains("127.0.0.1"), "{error}");
    let unreachable = refusal(with("127.0.0.1:1/x")).await;
    assert!(matches!(unreachable, OpenError::Unreachable { .. }), "{unreachable}");
    let address = refusal(quiet("postgres://u:secret-word@h:notaport/x".into())).await;
    assert!(matches!(address, OpenError::Address { .. }), "{address}");
    for error in [error, unreachable, address] {
        assert!(!format!("{error} {error:?}").contains("secret-word"), "{error:?}");
    }
}

#[tokio::test]
async fn of_several_hosts_one_that_answers_is_used() {
    let url = Cluster::shared().fresh_database();
    let port = Cluster::shared().port();
    let database = url.rsplit('/').next().unwrap();
    let several = format!("postgres://postgres@127.0.0.1:1,127.0.0.1:{port}/{database}");
    let store = Postgres::connect(quiet(several)).await.unwrap();
    run(&store, vec![submit(1).into()]).await.unwrap();
}

#[tokio::test]
async fn a_host_that_answers_nothing_holds_up_no_other() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Cluster::shared().fresh_database();
    let (port, mute) = (Cluster::shared().port(), silent.local_addr().unwrap().port());
    let database = url.rsplit('/').next().unwrap();
    let several = format!("postgres://postgres@127.0.0.1:{mute},127.0.0.1:{port}/{database}");
    let opened = tokio::time::timeout(Duration::from_secs(30), Postgres::connect(quiet(several))).await;
    let store = opened.expect("waits for a host that answers nothing").unwrap();
    run(&store, vec![submit(1).into()]).await.unwrap();
}
