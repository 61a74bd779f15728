//! How often a batch waits for the database: counted, because how long that takes depends on the machine.

use crate::support::{claim, complete, lease_of, leases_of, ns, quiet, run, submit};
use windlass_core::{
    Command, JobId, JobKey, LeaseId, Limits, Millis, Refusal, Reply, State,
    commands::{holder::Holder, renew::Renew},
    decider::Item,
};
use windlass_engine::{
    store::{Batch, Store},
    testing::standing::Standing,
};
use windlass_stores::{
    postgres::{Postgres, statement_texts},
    testing::Cluster,
};

async fn open() -> Postgres {
    Postgres::connect(quiet(Cluster::shared().fresh_database())).await.unwrap()
}

/// What running these takes.
async fn flights(store: &Postgres, commands: Vec<Command>) -> (u64, Vec<Result<Reply, Refusal>>) {
    let before = store.flights();
    let replies = run(store, commands).await.unwrap().replies;
    (store.flights() - before, replies)
}

fn all_ended(replies: &[Result<Reply, Refusal>]) -> bool {
    replies.iter().all(|reply| matches!(reply, Ok(Reply::Ended(ended)) if !ended.replayed))
}

async fn state(store: &Postgres, id: u128) -> State {
    store.job(&JobKey::new(&ns(), JobId::from_u128(id))).await.unwrap().unwrap().state
}

#[tokio::test]
async fn jobs_handed_out_here_are_completed_in_one_flight() {
    let store = open().await;
    run(&store, (1..=20).map(|id| submit(id).into()).collect()).await.unwrap();
    let claims = (1..=20).map(|n| claim(&format!("w{n}"), n, 1).into()).collect();
    let leases = leases_of(&run(&store, claims).await.unwrap().replies);
    let (taken, replies) = flights(&store, leases.iter().map(|lease| complete(*lease, "done").into()).collect()).await;
    assert!(all_ended(&replies), "{replies:?}");
    assert_eq!(taken, 1);
    for id in 1..=20 {
        assert_eq!(state(&store, id).await, State::Completed);
    }
    let body = store.body(&JobKey::new(&ns(), JobId::from_u128(7))).await.unwrap().unwrap();
    assert_eq!(body.result.unwrap().as_bytes(), b"done");
    assert_eq!(body.payload.as_bytes(), b"payload 7");
    let page = store.events_after(0, 1_000).await.unwrap();
    assert_eq!(page.events.iter().filter(|(_, event)| event.what.name() == "completed").count(), 20);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn new_jobs_are_written_in_one_flight_with_what_ends_and_keep_their_order() {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(quiet(url)).await.unwrap();
    // The first job of a lane writes the lane down.
    run(&one, vec![submit(1).into()]).await.unwrap();
    run(&other, vec![submit(2).into()]).await.unwrap();
    let first = lease_of(&run(&one, vec![claim("w", 1, 1).into()]).await.unwrap().replies);
    // In turns on two servers, so that each has to follow what the other did.
    let (taken, replies) = flights(&one, vec![submit(9).into(), submit(3).into(), complete(first, "1").into()]).await;
    assert!(taken == 1 && replies.iter().all(Result::is_ok), "{taken} {replies:?}");
    let (taken, _) = flights(&other, vec![submit(8).into()]).await;
    assert_eq!(taken, 1);
    run(&one, vec![submit(4).into()]).await.unwrap();
    let leases = leases_of(&run(&other, vec![claim("w", 2, 9).into()]).await.unwrap().replies);
    assert_eq!(leases.iter().map(|lease| lease.job.0.as_u128()).collect::<Vec<_>>(), [2, 9, 3, 8, 4]);
    assert_eq!((leases[1].job, state(&one, 1).await), (JobId::from_u128(9), State::Completed));
    let body = one.body(&JobKey::new(&ns(), JobId::from_u128(9))).await.unwrap().unwrap();
    assert_eq!(body.payload.as_bytes(), b"payload 9");
    let (_, replies) = flights(&one, leases.iter().map(|lease| complete(*lease, "done").into()).collect()).await;
    assert!(all_ended(&replies), "{replies:?}");
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn an_id_that_is_taken_is_refused_and_nothing_is_written_twice() {
    let store = open().await;
    run(&store, vec![submit(1).into(), submit(2).into()]).await.unwrap();
    let lease = lease_of(&run(&store, vec![claim("w", 1, 1).into()]).await.unwrap().replies);
    run(&store, vec![complete(lease, "done").into()]).await.unwrap();
    // One that ended and one that waits, each with a new neighbour.
    for taken in [1, 2] {
        let (_, replies) = flights(&store, vec![submit(taken).into(), submit(10 + taken).into()]).await;
        assert!(matches!(replies[0], Err(Refusal::Exists { .. })) && replies[1].is_ok(), "{replies:?}");
    }
    let page = store.events_after(0, 1_000).await.unwrap();
    assert_eq!(page.events.iter().filter(|(_, event)| event.what.name() == "submitted").count(), 4);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn claims_that_find_their_jobs_take_two_flights() {
    let store = open().await;
    run(&store, (1..=40).map(|id| submit(id).into()).collect()).await.unwrap();
    let claims = |secrets: std::ops::RangeInclusive<u128>| -> Vec<Command> {
        secrets.map(|secret| claim(&format!("w{}", secret % 20), secret, 1).into()).collect()
    };
    // The first claim of a worker writes down who it is.
    run(&store, claims(1..=20)).await.unwrap();
    let (taken, replies) = flights(&store, claims(21..=40)).await;
    assert_eq!((taken, leases_of(&replies).len()), (2, 20));
    let page = store.events_after(0, 1_000).await.unwrap();
    assert_eq!(page.events.iter().filter(|(_, event)| event.what.name() == "claimed").count(), 40);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_claim_that_finds_too_little_looks_once_more() {
    let store = open().await;
    run(&store, vec![submit(1).into()]).await.unwrap();
    run(&store, vec![claim("w", 1, 1).into()]).await.unwrap();
    // Nothing is left: a look, another with the lanes read again, and nothing to write.
    let (taken, replies) = flights(&store, vec![claim("w", 2, 1).into()]).await;
    assert_eq!((taken, leases_of(&replies).len()), (2, 0));
    run(&store, vec![submit(2).into()]).await.unwrap();
    let (taken, replies) = flights(&store, vec![claim("w", 3, 2).into()]).await;
    assert_eq!((taken, leases_of(&replies).len()), (3, 1));
}

/// The answers of one flight come one behind the other. One that nobody reads yet, and that is long, must not hold up another
/// that is waited for.
#[tokio::test]
async fn a_long_answer_does_not_hold_up_the_next() {
    let store = open().await;
    run(&store, vec![submit(1).into()]).await.unwrap();
    let ended = lease_of(&run(&store, vec![claim("w", 1, 1).into()]).await.unwrap().replies);
    run(&store, vec![complete(ended, "done").into()]).await.unwrap();
    let large = |id: u128| {
        let mut job = submit(id);
        job.job.payload = "x".repeat(100_000).as_str().into();
        job
    };
    run(&store, (2..=41).map(|id| large(id).into()).collect()).await.unwrap();
    // The renewal has to look for its job among those that have ended, while the claim's jobs are on their way.
    let renew = Renew { holder: Holder::lease(&ns(), ended), length: None };
    let replies = run(&store, vec![renew.into(), claim("w", 2, 40).into()]).await.unwrap().replies;
    assert!(matches!(replies[0], Err(Refusal::LeaseLost { .. })), "{:?}", replies[0]);
    assert_eq!(leases_of(&replies).len(), 40);
}

/// A job for each, handed out by the first of two servers.
async fn handed_out(count: u128) -> (Postgres, Postgres, Vec<LeaseId>) {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(quiet(url)).await.unwrap();
    run(&one, (1..=count).map(|id| submit(id).into()).collect()).await.unwrap();
    let leases = leases_of(&run(&one, vec![claim("w", 1, count).into()]).await.unwrap().replies);
    (one, other, leases)
}

async fn completed(store: &Postgres) -> usize {
    let page = store.events_after(0, 10_000).await.unwrap();
    page.events.iter().filter(|(_, event)| event.what.name() == "completed").count()
}

#[tokio::test]
async fn what_another_server_did_meanwhile_counts() {
    let (one, other, leases) = handed_out(6).await;
    let renew = |lease: LeaseId| Renew { holder: Holder::lease(&ns(), lease), length: Some(Millis(3_600_000)) };
    run(&other, vec![renew(leases[0]).into(), complete(leases[1], "theirs").into()]).await.unwrap();
    // One row that is not as it was known: the whole batch is looked at, and each report gets what is its due.
    let reports = leases[..5].iter().map(|lease| complete(*lease, "ours").into()).collect();
    let (taken, replies) = flights(&one, reports).await;
    assert_eq!(taken, 4, "one in vain, one for what is there, one for what has ended, one to write");
    assert!(matches!(replies[1], Err(Refusal::LeaseLost { state: State::Completed })), "{:?}", replies[1]);
    assert!(all_ended(&[&replies[..1], &replies[2..]].concat()), "{replies:?}");
    let body = one.body(&JobKey::new(&ns(), leases[1].job)).await.unwrap().unwrap();
    assert_eq!(body.result.unwrap().as_bytes(), b"theirs");
    // What was not touched is still known.
    let (taken, replies) = flights(&one, vec![complete(leases[5], "ours").into()]).await;
    assert!(taken == 1 && all_ended(&replies), "{taken} {replies:?}");
    assert_eq!(completed(&other).await, 6);
    // The very same report again is recognised.
    let again = run(&one, vec![complete(leases[5], "ours").into()]).await.unwrap().replies;
    assert!(matches!(&again[0], Ok(Reply::Ended(ended)) if ended.replayed), "{again:?}");
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_servers_that_end_a_job_at_once_one_does() {
    const JOBS: usize = 60;
    let (one, other, leases) = handed_out(JOBS as u128).await;
    let mut both = 0;
    for lease in leases {
        let (ours, theirs) = tokio::join!(
            run(&one, vec![complete(lease, "ours").into()]),
            run(&other, vec![complete(lease, "theirs").into()])
        );
        let won = |outcome: windlass_engine::store::Outcome| all_ended(&outcome.replies);
        both += usize::from(won(ours.unwrap())) + usize::from(won(theirs.unwrap()));
    }
    assert_eq!((both, completed(&one).await), (JOBS, JOBS));
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_pooler_makes_no_difference() {
    let cluster = Cluster::shared();
    let pooler = cluster.pooler(2);
    let url = format!("{}?pooled=true", pooler.through(&cluster.fresh_database()));
    let store = Postgres::connect(quiet(url)).await.unwrap();
    run(&store, vec![submit(1).into()]).await.unwrap();
    let lease = lease_of(&run(&store, vec![claim("w", 1, 1).into()]).await.unwrap().replies);
    let (taken, replies) = flights(&store, vec![complete(lease, "done").into()]).await;
    assert!(all_ended(&replies), "{replies:?}");
    assert_eq!(taken, 1);
    assert_eq!(state(&store, 1).await, State::Completed);
}

/// All statements of a batch are on their way before the first is answered. If its BEGIN came to nothing, each of them would be a
/// transaction by itself; so those that write refuse to be.
#[tokio::test]
async fn statements_sent_together_write_nothing_without_their_transaction() {
    let cluster = Cluster::shared();
    let url = cluster.fresh_database();
    drop(Postgres::connect(quiet(url.clone())).await.unwrap());
    let database = url.rsplit('/').next().unwrap();
    let arrays = vec!["'{}'::text[]"; 14].join(", ");
    let added = format!("{}, NULL, 'batch'", vec!["'{}'::text[]"; 13].join(", "));
    let ended = format!("{arrays}, NULL, 'batch', 0::bigint, 0, gen_random_uuid(), '[]', ''");
    for (name, values) in [("add_jobs", added), ("finish_known", ended)] {
        let (_, text) = statement_texts().into_iter().find(|(known, _)| *known == name).unwrap();
        let run = format!("EXECUTE $q${text}$q$ USING {values}");
        let refused = format!(
            "DO $do$ BEGIN {run}; RAISE EXCEPTION 'it ran'; EXCEPTION WHEN SQLSTATE 'WL001' THEN NULL; END $do$"
        );
        cluster.sql(database, &refused);
        cluster.sql(
            database,
            &format!("BEGIN; SET LOCAL windlass.batch = 'batch'; DO $do$ BEGIN {run}; END $do$; COMMIT"),
        );
        cluster.sql(database, &refused);
    }
    assert_eq!(cluster.sql(database, "SELECT count(*) FROM windlass.events"), "1");
}

#[tokio::test]
async fn a_waiting_claim_is_served_by_the_transaction_that_makes_its_job() {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(quiet(url)).await.unwrap();
    // The worker and the lane are known.
    run(&one, vec![submit(1).into()]).await.unwrap();
    run(&one, vec![claim("w", 1, 1).into()]).await.unwrap();
    for (id, before) in [(2, None), (4, Some(3))] {
        if let Some(before) = before {
            run(&other, vec![submit(before).into()]).await.unwrap();
        }
        let waiting = Standing::new(vec![(claim("w", id, 1), 1)]);
        let item = Item { command: submit(id).into(), seed: 1 };
        let batch = Batch { waiting: Some(waiting), ..Batch::new(vec![item], Limits::default()) };
        let flown = one.flights();
        let outcome = one.run(batch).await.unwrap();
        assert_eq!(one.flights() - flown, 2);
        let first = before.unwrap_or(id);
        assert_eq!(lease_of(&outcome.replies[1..]).job, JobId::from_u128(first), "what waits in front goes first");
        assert_eq!(outcome.wakes.len(), usize::from(before.is_some()));
    }
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}
