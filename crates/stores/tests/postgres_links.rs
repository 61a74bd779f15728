//! A definition that retires while other servers use it: whoever comes at the same time is refused, or keeps it.

use crate::support::ns;
use std::sync::Arc;
use windlass_core::{
    JobId, Namespace, WorkerId,
    commands::{
        cancel::Cancel,
        link::Link,
        submit::{NewJob, Submit},
        workers::{RegisterWorker, UnregisterWorker},
    },
    definition::DefinitionHead,
    job::DefinitionRef,
    link::tags_of,
    policy::{Unregister, WorkerPolicy},
};
use windlass_engine::{Engine, Error, Settings};
use windlass_stores::{
    postgres::{Options, Postgres},
    testing::Cluster,
};

const ROUNDS: u128 = 60;

async fn server(url: &str) -> Engine {
    let store = Postgres::connect(Options::new(url)).await.unwrap();
    Engine::start(Arc::new(store), Settings::shared()).await.unwrap()
}

fn worker() -> WorkerId {
    WorkerId::trusted("w")
}

async fn link(engine: &Engine) {
    let policy = WorkerPolicy { unregister: Unregister::Fail, ..WorkerPolicy::default() };
    let (namespace, tags) = (ns(), Default::default());
    let register = RegisterWorker { namespace, worker: worker(), tags, slots: 1, owner: None, policy, extra: None };
    engine.run(register).await.unwrap();
    let (definition, body) = ("d".into(), "{}".into());
    let (namespace, worker, print) = (ns(), worker(), "{}".into());
    let link = Link { namespace, definition, body, print, retires: true, worker, principal: None };
    engine.run(link).await.unwrap();
}

fn job(id: u128) -> Submit {
    let mut job = NewJob::new(JobId::from_u128(id));
    job.tags = tags_of("d");
    job.definition = Some(DefinitionRef { name: "d".into(), version: 1 });
    Submit { namespace: ns(), job }
}

fn cancel(id: u128) -> Cancel {
    Cancel { namespace: ns(), job: JobId::from_u128(id), by: "test".into(), mode: None, message: "".into() }
}

async fn in_force(engine: &Engine, namespace: &Namespace) -> bool {
    let head = engine.read_record::<DefinitionHead>(namespace, "d").await.unwrap();
    head.is_some_and(|head| head.deleted_at.is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_beside_a_retirement_is_refused_or_keeps_the_definition() {
    let url = Cluster::shared().fresh_database();
    let (one, other) = (server(&url).await, server(&url).await);
    let (mut kept, mut refused) = (0, 0);
    for round in 1..=ROUNDS {
        link(&one).await;
        let leave =
            UnregisterWorker { namespace: ns(), worker: worker(), how: None, only_offline: false, principal: None };
        let (left, submitted) = tokio::join!(one.run(leave), other.run(job(round)));
        left.unwrap();
        match submitted {
            Ok(_) => {
                assert!(in_force(&one, &ns()).await, "round {round}: a job waits for nobody");
                other.run(cancel(round)).await.unwrap();
                kept += 1;
            }
            Err(Error::Refused(refusal)) => {
                assert_eq!(refusal.code(), "not-found");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(!in_force(&one, &ns()).await, "round {round}: nobody serves it, and no job waits");
    }
    assert_eq!(kept + refused, ROUNDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_servers_that_end_the_last_two_jobs_one_retires_the_definition() {
    let url = Cluster::shared().fresh_database();
    let (one, other) = (server(&url).await, server(&url).await);
    for round in 1..=ROUNDS {
        link(&one).await;
        let (first, second) = (2 * round, 2 * round + 1);
        one.run(job(first)).await.unwrap();
        one.run(job(second)).await.unwrap();
        let leave =
            UnregisterWorker { namespace: ns(), worker: worker(), how: None, only_offline: false, principal: None };
        one.run(leave).await.unwrap();
        assert!(in_force(&one, &ns()).await);
        let (ended, too) = tokio::join!(one.run(cancel(first)), other.run(cancel(second)));
        ended.unwrap();
        too.unwrap();
        assert!(!in_force(&one, &ns()).await, "round {round}");
    }
}
