//! Ending the access of a caller while several servers write for it.

use crate::support::{claim, complete, leases_of, ns, quiet, run, submit};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use windlass_core::{
    Command, Limits, Refusal, Reply,
    commands::{
        principals::CreatePrincipal,
        tokens::{IssueToken, RevokeToken, UseToken},
    },
    credential::Credential,
    decider::Item,
    principal::Role,
    reply::KnownToken,
};
use windlass_engine::store::{Batch, JobQuery, Store};
use windlass_stores::{postgres::Postgres, testing::Cluster};

async fn open(url: &str) -> Arc<Postgres> {
    Arc::new(Postgres::connect(quiet(url.to_owned())).await.unwrap())
}

fn hash(number: u32) -> Arc<str> {
    format!("{number:064x}").into()
}

async fn issue(store: &Postgres, number: u32) -> Arc<Credential> {
    let (namespace, principal, hash) = (ns(), "ann".into(), hash(number));
    let issue = IssueToken {
        namespace,
        principal,
        hash: hash.clone(),
        shown: "t".into(),
        expires_at: None,
        made_by: None,
        session: false,
    };
    run(store, vec![issue.into()]).await.unwrap().replies.remove(0).unwrap();
    let used = run(store, vec![UseToken { namespace: ns(), hash: hash.clone() }.into()]).await.unwrap();
    let known: KnownToken = used.replies.into_iter().next().unwrap().unwrap().try_into().unwrap();
    Arc::new(Credential::token(&ns(), &hash, &known.token, &known.principal))
}

async fn world() -> (Arc<Postgres>, Arc<Postgres>) {
    let url = Cluster::shared().fresh_database();
    let (one, other) = (open(&url).await, open(&url).await);
    let create = CreatePrincipal { namespace: ns(), name: "ann".into(), role: Role::Editor, namespaces: vec![] };
    run(&*one, vec![create.into()]).await.unwrap();
    (one, other)
}

async fn run_by(store: &Postgres, by: &Arc<Credential>, commands: Vec<Command>) -> Vec<Result<Reply, Refusal>> {
    run_as(store, Some(by), commands).await
}

async fn run_as(store: &Postgres, by: Option<&Arc<Credential>>, commands: Vec<Command>) -> Vec<Result<Reply, Refusal>> {
    let item = |(at, command)| Item { command, seed: at as u64 + 1, by: by.cloned() };
    let items = commands.into_iter().enumerate().map(item).collect();
    store.run(Batch::new(items, Limits::default())).await.unwrap().replies
}

/// How many flights each claim, completion and submit takes, once the server knows the worker and the lane.
async fn flights(store: &Postgres, by: Option<&Arc<Credential>>) -> Vec<[u64; 3]> {
    run_as(store, by, (1..=200).map(|id| submit(id).into()).collect()).await;
    let mut taken = Vec::new();
    for round in 1..=20_u128 {
        let before = store.flights();
        let leases = leases_of(&run_as(store, by, vec![claim("w", round, 1).into()]).await);
        let claimed = store.flights() - before;
        let ends = leases.iter().map(|lease| complete(*lease, "done").into()).collect();
        let ended = run_as(store, by, ends).await;
        let completed = store.flights() - before - claimed;
        let new = run_as(store, by, vec![submit(1_000 + round).into()]).await;
        let submitted = store.flights() - before - claimed - completed;
        assert!(leases.len() == 1 && ended[0].is_ok() && new[0].is_ok(), "{round}");
        taken.push([claimed, completed, submitted]);
    }
    taken.split_off(5)
}

async fn revoke(store: &Postgres, number: u32) {
    run(store, vec![RevokeToken { namespace: ns(), hash: hash(number) }.into()]).await.unwrap();
    store.outlast_batches().await.unwrap();
}

#[tokio::test]
async fn what_callers_were_admitted_with_is_looked_at_without_another_flight() {
    let (store, other) = world().await;
    let by = issue(&store, 1).await;
    let (unnamed, _) = world().await;
    let taken = flights(&store, Some(&by)).await;
    assert_eq!(taken, flights(&unnamed, None).await);
    assert!(taken.iter().all(|[_, completed, submitted]| (*completed, *submitted) == (1, 1)), "{taken:?}");
    let held = leases_of(&run_by(&store, &by, vec![claim("w", 99, 1).into()]).await);
    revoke(&other, 1).await;
    // This server remembers the token as it was, and the database says otherwise.
    let commands: [Command; 3] = [complete(held[0], "late").into(), submit(5_000).into(), claim("w", 100, 1).into()];
    for command in commands {
        let replies = run_by(&store, &by, vec![command]).await;
        assert!(matches!(replies[0], Err(Refusal::AccessEnded)), "{replies:?}");
    }
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_token_is_written_after_its_revocation_is_answered_by_another_server() {
    let (one, other) = world().await;
    let next = Arc::new(AtomicU64::new(1));
    for number in 1..=25 {
        let by = issue(&one, number).await;
        let write = |store: Arc<Postgres>| {
            let (by, next) = (by.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let id = u128::from(next.fetch_add(1, Ordering::Relaxed));
                    match run_by(&store, &by, vec![submit(id).into()]).await.remove(0) {
                        Ok(_) => {}
                        Err(Refusal::AccessEnded) => return,
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        };
        let begun = next.load(Ordering::Relaxed) + u64::from(number);
        let writers = [write(one.clone()), write(other.clone()), write(other.clone())];
        while next.load(Ordering::Relaxed) < begun {
            tokio::task::yield_now().await;
        }
        revoke(&one, number).await;
        let written = one.count(&JobQuery::default(), 100_000).await.unwrap();
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(one.count(&JobQuery::default(), 100_000).await.unwrap(), written, "token {number}");
    }
}
