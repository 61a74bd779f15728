//! How often a batch waits for the database: counted, because how long that takes depends on the machine.

use crate::support::{claim, complete, lease_of, leases_of, ns, quiet, run, submit};
use std::sync::Arc;
use windlass_core::{
    Command, JobId, JobKey, LeaseId, Limits, Millis, Namespace, Refusal, Reply, State, WorkerId,
    commands::{
        claim::{Claim, Offer},
        holder::Holder,
        renew::Renew,
        submit::Submit,
        workers::DrainWorker,
    },
    decider::Item,
};
use windlass_engine::{
    store::{Batch, Committed, Store},
    testing::standing::Standing,
};
use windlass_stores::{
    postgres::{Postgres, statement_texts},
    testing::Cluster,
};

async fn open_at(url: &str) -> Arc<Postgres> {
    Arc::new(Postgres::connect(quiet(url.to_owned())).await.unwrap())
}

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

fn drain(worker: &str) -> Command {
    DrainWorker { namespace: ns(), worker: WorkerId::new(worker).unwrap(), draining: true, principal: None }.into()
}

fn for_gpu(id: u128) -> Submit {
    let mut job = submit(id);
    job.job.tags = ["gpu"].into_iter().collect();
    job
}

fn with_gpu(secret: u128, count: u128) -> Claim {
    Claim { offer: Offer::Tags(["gpu"].into_iter().collect()), ..claim("w", secret, count) }
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

fn claims(secrets: std::ops::RangeInclusive<u128>) -> Vec<Command> {
    secrets.map(|secret| claim(&format!("w{}", secret % 20), secret, 1).into()).collect()
}

async fn claimed(store: &Postgres) -> usize {
    let page = store.events_after(0, 10_000).await.unwrap();
    page.events.iter().filter(|(_, event)| event.what.name() == "claimed").count()
}

fn jobs_of(replies: &[Result<Reply, Refusal>]) -> Vec<u128> {
    leases_of(replies).iter().map(|lease| lease.job.0.as_u128()).collect()
}

/// Of the jobs 2, 4, … 200 the first forty are claimed; the lane is known to be busy and its workers are known, so that the next
/// ones are read ahead.
async fn read_ahead(store: &Postgres) {
    run(store, (1..=100).map(|id| submit(2 * id).into()).collect()).await.unwrap();
    // The first claim of a worker writes down who it is.
    run(store, claims(1..=20)).await.unwrap();
    let (taken, replies) = flights(store, claims(21..=40)).await;
    assert_eq!((taken, leases_of(&replies).len()), (2, 20), "a look, and a write");
}

#[tokio::test]
async fn claims_of_jobs_that_were_read_ahead_take_one_flight() {
    let store = open().await;
    read_ahead(&store).await;
    for from in [41, 61] {
        let (taken, replies) = flights(&store, claims(from..=from + 19)).await;
        assert_eq!((taken, jobs_of(&replies)), (1, (from..from + 20).map(|n| 2 * n).collect()));
    }
    // They are this server's to complete, with the payload that was read with them.
    let (taken, replies) = flights(&store, claims(81..=81)).await;
    let reply = leases_of(&replies)[0];
    assert_eq!(taken, 1);
    let Ok(Reply::Leases(leases)) = &replies[0] else { panic!("{replies:?}") };
    assert_eq!((leases[0].payload.as_bytes(), leases[0].job.live.attempt), (&b"payload 162"[..], 1));
    let (taken, replies) = flights(&store, vec![complete(reply, "done").into()]).await;
    assert!(taken == 1 && all_ended(&replies), "{taken} {replies:?}");
    // The rest, and then nothing.
    let rest = jobs_of(&run(&store, claims(82..=101)).await.unwrap().replies);
    assert_eq!(rest, (82..=100).map(|n| 2 * n).collect::<Vec<_>>());
    assert_eq!(
        (claimed(&store).await, jobs_of(&run(&store, claims(102..=103)).await.unwrap().replies).len()),
        (100, 0)
    );
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_stands_in_front_meanwhile_is_claimed_first() {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(quiet(url)).await.unwrap();
    read_ahead(&one).await;
    let mut urgent = submit(7);
    urgent.job.priority = -1;
    run(&other, vec![urgent.into()]).await.unwrap();
    let (taken, replies) = flights(&one, claims(41..=60)).await;
    assert_eq!(taken, 3, "one in vain");
    assert_eq!(jobs_of(&replies), [7].into_iter().chain((41..60).map(|n| 2 * n)).collect::<Vec<_>>());
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_job_that_another_server_has_taken_is_not_claimed_again() {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(quiet(url)).await.unwrap();
    read_ahead(&one).await;
    assert_eq!(jobs_of(&run(&other, claims(901..=901)).await.unwrap().replies), [82]);
    let replies = run(&one, claims(41..=60)).await.unwrap().replies;
    assert_eq!(jobs_of(&replies), (42..62).map(|n| 2 * n).collect::<Vec<_>>());
    assert_eq!((claimed(&one).await, claimed(&other).await), (61, 61));
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_worker_that_another_server_lets_drain_gets_nothing_of_what_was_read_ahead() {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(quiet(url)).await.unwrap();
    read_ahead(&one).await;
    run(&other, vec![drain("w1")]).await.unwrap();
    let replies = run(&one, claims(41..=60)).await.unwrap().replies;
    assert!(matches!(replies[0], Err(Refusal::WorkerDraining { .. })), "{:?}", replies[0]);
    assert_eq!(jobs_of(&replies), (41..60).map(|n| 2 * n).collect::<Vec<_>>(), "everybody else does, in order");
}

#[tokio::test]
async fn offers_of_several_lanes_are_read_ahead_in_the_order_of_all() {
    let store = open().await;
    let job = |id: u128| if id.is_multiple_of(3) { for_gpu(id) } else { submit(id) };
    run(&store, (1..=40).map(|id| job(id).into()).collect()).await.unwrap();
    let mut got = Vec::new();
    for (secret, expected) in [(100, 3), (200, 2), (300, 1), (400, 1)] {
        let (taken, replies) = flights(&store, vec![with_gpu(secret, 10).into()]).await;
        got.extend(jobs_of(&replies));
        assert!(taken <= expected, "{taken} flights after {} jobs", got.len());
    }
    assert_eq!(got, (1..=40).collect::<Vec<_>>());
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_that_read_ahead_in_one_lane_claim_every_job_once() {
    const JOBS: u128 = 600;
    let url = Cluster::shared().fresh_database();
    let stores = [open_at(&url).await, open_at(&url).await];
    run(&*stores[0], (1..=JOBS).map(|id| submit(id).into()).collect()).await.unwrap();
    let drains = stores.iter().enumerate().flat_map(|(at, store)| (0..3).map(move |n| (at * 3 + n, store.clone())));
    let drains: Vec<_> = drains
        .map(|(at, store)| {
            tokio::spawn(async move {
                let mut got = Vec::new();
                for round in 1.. {
                    let secret = (at as u128 + 1) * 1_000_000 + round * 10;
                    let found = leases_of(
                        &run(&*store, vec![claim(&format!("w{at}"), secret, 4).into()]).await.unwrap().replies,
                    );
                    if found.is_empty() {
                        return got;
                    }
                    got.extend(found);
                }
                got
            })
        })
        .collect();
    let mut all = Vec::new();
    for drain in drains {
        all.extend(drain.await.unwrap().iter().map(|lease| lease.job.0.as_u128()));
    }
    all.sort_unstable();
    assert_eq!(all, (1..=JOBS).collect::<Vec<_>>(), "every job once, and none left behind");
    assert_eq!(claimed(&stores[0]).await, JOBS as usize);
    assert_eq!(stores[1].check().await.unwrap(), Vec::<String>::new());
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
        let won = |committed: windlass_engine::store::Committed| all_ended(&committed.replies);
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
    let added = format!("{}, NULL, 'batch', '{{}}'::text[]", vec!["'{}'::text[]"; 13].join(", "));
    let looked = "'{}'::text[], '{}'::text[], '{}'::text[], '{}'::bigint[]";
    let ended = format!("{arrays}, NULL, 'batch', 0::bigint, 0, gen_random_uuid(), '[]', '', {looked}");
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

/// Servers on one database, the first of which knows the worker and the lane, and that there is nothing to do.
async fn idle() -> (Postgres, Postgres) {
    let url = Cluster::shared().fresh_database();
    let one = Postgres::connect(quiet(url.clone())).await.unwrap();
    let other = Postgres::connect(quiet(url)).await.unwrap();
    run(&one, vec![submit(1).into()]).await.unwrap();
    run(&one, vec![claim("w", 1, 1).into()]).await.unwrap();
    assert_eq!(leases_of(&run(&one, vec![claim("w", 2, 1).into()]).await.unwrap().replies), []);
    (one, other)
}

/// New jobs beside a claim that waits; how many flights it took.
async fn served(store: &Postgres, new: &[u128], waiting: Claim) -> (u64, Committed) {
    let waiting = Standing::new(vec![(waiting, 1)]);
    let items = new.iter().map(|id| Item { command: submit(*id).into(), seed: 1, by: None });
    let batch = Batch { waiting: Some(waiting), ..Batch::new(items.collect(), Limits::default()) };
    let before = store.flights();
    let committed = store.run(batch).await.unwrap();
    (store.flights() - before, committed)
}

#[tokio::test]
async fn a_waiting_claim_is_served_in_one_flight_with_the_new_job() {
    let (one, other) = idle().await;
    let (taken, committed) = served(&one, &[2], claim("w", 2, 1)).await;
    let lease = lease_of(&committed.replies[1..]);
    assert_eq!((taken, lease.job, committed.wakes.len()), (1, JobId::from_u128(2), 0));
    assert!(leases_of(&run(&other, vec![claim("v", 3, 1).into()]).await.unwrap().replies).is_empty());
    // It is known as it was written: one flight, too.
    let (taken, replies) = flights(&one, vec![complete(lease, "done").into()]).await;
    assert!(all_ended(&replies) && taken == 1, "{taken} flights: {replies:?}");
    // Of several the first, and the others stay.
    let (taken, committed) = served(&one, &[3, 4, 5], claim("w", 4, 2)).await;
    assert_eq!((taken, committed.wakes.len()), (1, 1));
    assert_eq!(jobs_of(&committed.replies[3..]), [3, 4]);
    assert_eq!(jobs_of(&run(&other, vec![claim("v", 5, 9).into()]).await.unwrap().replies), [5]);
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_waits_in_front_of_a_new_job_is_claimed_first() {
    let (one, other) = idle().await;
    run(&other, vec![submit(2).into()]).await.unwrap();
    let (taken, committed) = served(&one, &[3], claim("w", 2, 1)).await;
    assert_eq!(lease_of(&committed.replies[1..]).job, JobId::from_u128(2));
    assert_eq!((taken, committed.wakes.len()), (4, 1), "one flight in vain, and one to see whether the id was free");
    assert_eq!(one.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_waits_in_a_lane_that_another_server_added_is_claimed_first() {
    let (one, other) = idle().await;
    run(&other, vec![for_gpu(2).into()]).await.unwrap();
    let (taken, committed) = served(&one, &[3], with_gpu(2, 1)).await;
    assert_eq!(lease_of(&committed.replies[1..]).job, JobId::from_u128(2));
    assert_eq!(taken, 5, "one flight in vain, and two for the id and the lane");
}

#[tokio::test]
async fn lanes_that_another_namespace_adds_cost_this_one_nothing() {
    let (one, other) = idle().await;
    let elsewhere = Submit { namespace: Namespace::new("elsewhere").unwrap(), ..for_gpu(2) };
    run(&other, vec![elsewhere.into()]).await.unwrap();
    let (taken, committed) = served(&one, &[3], claim("w", 2, 1)).await;
    assert_eq!((taken, lease_of(&committed.replies[1..]).job), (1, JobId::from_u128(3)));
}

#[tokio::test]
async fn a_worker_that_another_server_lets_drain_takes_no_new_job() {
    let (one, other) = idle().await;
    run(&other, vec![drain("w")]).await.unwrap();
    let (_, committed) = served(&one, &[2], claim("w", 2, 1)).await;
    assert_eq!(jobs_of(&committed.replies[1..]), []);
    assert_eq!(state(&one, 2).await, State::Pending);
}
