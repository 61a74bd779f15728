//! Draws commands: all of them, weighted, with arguments that mostly make sense and sometimes do not.

use super::{
    reports, rights, staged,
    world::{PRINCIPALS, RECORD_KIND, WORKERS, World},
};
use std::sync::Arc;
use windlass_core::{
    Command, JobId, Millis, Namespace, Payload, RecordKey, RunId, Tags, WorkerId,
    commands::{
        all::All,
        audited::Audited,
        cancel::Cancel,
        cancel_run::CancelRun,
        claim::{Claim, Offer, Unknown},
        definitions::{DeleteDefinition, PutDefinition},
        doubt::Doubt,
        due::Due,
        fire::{DeleteSchedule, Fire, PutSchedule, RunSchedule},
        grace::{Excuse, Grace},
        link::Link,
        records::{DeleteRecord, Expect, PutRecord},
        retry::Retry,
        submit::{NewJob, Submit},
        submit_run::{RunNode, RunPlan, SubmitRun},
        tell::Tell,
        workers::{DrainWorker, Heartbeat, RegisterWorker, UnregisterWorker},
    },
    job::{ConcurrencyKey, DefinitionRef, UniqueKey, UniqueUntil},
    link::{TIED, tags_of},
    policy::{
        AliveBy, Backoff, CancelPolicy, FailurePolicy, JobPolicy, LeaseEnd, LeaseLength, LeasePolicy, MayClaim,
        OnlineFrom, ParentPolicy, RetryForm, RetryPolicy, StartPolicy, Unregister, WorkerPolicy,
    },
    schedule::{Missed, Rule, Schedule, Template},
};

/// Definitions that workers are linked to.
const LINKED: [&str; 2] = ["serve", "render"];

type Draw = fn(&mut World) -> Command;

/// How often each is drawn, in relation to the others.
const WEIGHTS: [(usize, Draw); 54] = [
    (160, submit),
    (25, submit_run),
    (170, claim),
    (50, reports::start),
    (60, reports::renew),
    (40, reports::progress),
    (40, reports::append_log),
    (100, reports::complete),
    (70, reports::fail),
    (30, reports::release),
    (20, reports::holds),
    (15, reports::pass_on),
    (40, cancel),
    (12, cancel_run),
    (6, staged::stop_work),
    (60, staged::advance),
    (10, staged::remind),
    (10, staged::beside),
    (40, staged::signal),
    (45, staged::judge),
    (20, reports::look),
    (20, retry),
    (15, due),
    (20, grace),
    (30, register),
    (40, heartbeat),
    (10, drain),
    (15, unregister),
    (15, doubt),
    (4, excuse),
    (30, link),
    (10, tie),
    (15, put_definition),
    (5, delete_definition),
    (10, put_schedule),
    (5, delete_schedule),
    (15, fire),
    (10, run_schedule),
    (15, rights::create_principal),
    (4, rights::disable_principal),
    (4, rights::enable_principal),
    (6, rights::change_principal),
    (6, rights::delete_principal),
    (25, rights::issue_token),
    (15, rights::revoke_token),
    (20, rights::use_token),
    (8, rights::kept_token),
    (8, rights::admin_for_a_moment),
    (30, put_record),
    (12, staged::keep_part),
    (15, delete_record),
    (10, tell),
    (25, all),
    (15, audited),
];

pub(super) fn command(world: &mut World) -> Command {
    let total: usize = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    let mut at = world.dice.below(total);
    for (weight, draw) in WEIGHTS {
        match at.checked_sub(weight) {
            Some(rest) => at = rest,
            None => return draw(world),
        }
    }
    submit(world)
}

fn policy(world: &mut World) -> JobPolicy {
    if world.dice.percent(25) {
        return JobPolicy::default();
    }
    let dice = &mut world.dice;
    let hard_deadline = dice.maybe_millis(20, 60_000);
    let length = match dice.below(4) {
        0 if hard_deadline.is_some() || dice.percent(5) => LeaseLength::FromDeadline,
        1 => LeaseLength::Fixed(dice.millis(40_000)),
        _ => LeaseLength::Asked,
    };
    let ends = *dice.pick(&[LeaseEnd::Renewable, LeaseEnd::Renewable, LeaseEnd::Fixed, LeaseEnd::WithWorker]);
    JobPolicy {
        lease: LeasePolicy { length, ends },
        hard_deadline,
        total_deadline: dice.maybe_millis(15, 60_000),
        pending_deadline: dice.maybe_millis(15, 60_000),
        start: *dice.pick(&[StartPolicy::Implied, StartPolicy::Implied, StartPolicy::Required]),
        retry: retry_policy(world),
        cancel: *world.dice.pick(&[CancelPolicy::Revoke, CancelPolicy::Drain]),
        parents: *world.dice.pick(&[
            ParentPolicy::Skip,
            ParentPolicy::RunAnyway,
            ParentPolicy::OnFailure,
            ParentPolicy::CancelRun,
        ]),
        failure: *world.dice.pick(&[FailurePolicy::Alone, FailurePolicy::Alone, FailurePolicy::CancelsPending]),
        retention: world.dice.maybe_millis(20, 120_000),
    }
}

fn retry_policy(world: &mut World) -> RetryPolicy {
    let dice = &mut world.dice;
    let backoff = match dice.below(4) {
        0 => Backoff::Fixed(Millis(dice.between(0, 5_000))),
        1 => Backoff::Exponential {
            base: dice.millis(2_000),
            cap: dice.millis(20_000),
            jitter_percent: dice.below(101) as u8,
        },
        _ => Backoff::None,
    };
    RetryPolicy {
        deadline_retries: dice.percent(20).then(|| dice.below(3) as u32),
        attempts: if dice.percent(2) { 0 } else { dice.between(1, 5) as u32 },
        on_failure: dice.percent(80),
        on_lost: dice.percent(80),
        on_deadline: dice.percent(50),
        backoff,
        form: if dice.percent(15) { RetryForm::NewJob } else { RetryForm::SameJob },
        losses_max: if dice.percent(2) { 0 } else { dice.between(1, 4) as u32 },
    }
}

pub(super) fn new_job(world: &mut World, namespace: &Namespace) -> NewJob {
    let id = JobId::from_u128(world.id());
    let mut job = NewJob::new(id);
    job.policy = policy(world);
    let now = world.now;
    // Drawn from the id, so that every seed still draws the walk it always drew.
    job.name =
        id.0.as_u128()
            .is_multiple_of(3)
            .then(|| ["nightly", "nightly-2", "ä"][(id.0.as_u128() % 9 / 3) as usize].into());
    let dice = &mut world.dice;
    job.priority = *dice.pick(&[100, 100, 100, 1, -5, i32::MAX, i32::MIN]);
    job.tags = dice.tags(12);
    job.payload = Payload::from(dice.text(40).as_str());
    job.run_at = dice.percent(12).then(|| now + Millis(dice.between(-5_000, 20_000)));
    job.facets = dice.facets();
    job.concurrency = dice.percent(20).then(|| concurrency(dice));
    job.owner = dice.maybe_name(40, &PRINCIPALS);
    job.extra = dice.percent(10).then(|| dice.text(70).into());
    if dice.percent(8) {
        let until = dice.maybe_millis(50, 60_000).map_or(UniqueUntil::Final, UniqueUntil::After);
        let (key, body_hash) = (dice.name(&["u1", "u2", "u3"]), dice.name(&["h", "h", "h", "g"]));
        job.unique = Some(UniqueKey { key, body_hash, until });
    }
    if dice.percent(6) {
        let version = dice.below(4) as u32;
        job.definition = Some(DefinitionRef { name: dice.name(&["build", "test"]), version });
    }
    if dice.percent(10) {
        let name = dice.name(&LINKED);
        job.tags = tags_of(&name);
        job.definition = Some(DefinitionRef { name, version: 1 });
    }
    job.parents = parents(world, namespace);
    if world.dice.percent(1) {
        job.payload = Payload::from(vec![0xff; 201]);
    }
    job
}

/// The first two always come with the same limit, the third with any.
fn concurrency(dice: &mut super::dice::Dice) -> ConcurrencyKey {
    let (key, limit) = match dice.below(3) {
        0 => ("one", 1),
        1 => ("two", 2),
        _ => ("any", dice.between(1, 4) as u32),
    };
    ConcurrencyKey { key: key.into(), limit }
}

fn parents(world: &mut World, namespace: &Namespace) -> Vec<JobId> {
    let count = if world.dice.percent(15) { 1 + world.dice.below(4) } else { 0 };
    let keys: Vec<_> = (0..count).map(|_| world.job()).collect();
    // A parent elsewhere is refused as unknown; a few of those are enough.
    keys.into_iter().filter(|key| key.namespace == *namespace || world.dice.percent(5)).map(|key| key.id).collect()
}

/// From this many open jobs on, workers come rather than more work.
const CROWD: usize = 60;

fn submit(world: &mut World) -> Command {
    if world.crowd > CROWD && world.dice.percent(90) {
        return claim(world);
    }
    let namespace = world.namespace();
    let mut job = new_job(world, &namespace);
    if world.dice.percent(1) {
        job.id = world.job().id;
    }
    Submit { namespace, job }.into()
}

fn submit_run(world: &mut World) -> Command {
    if world.crowd > CROWD && world.dice.percent(90) {
        return reports::complete(world);
    }
    let namespace = world.namespace();
    let most = if world.dice.percent(5) { 10 } else { 7 };
    let count = 1 + world.dice.below(most);
    let names: Vec<Arc<str>> = (0..count).map(|at| format!("n{at}").into()).collect();
    let mut nodes = Vec::new();
    for at in 0..count {
        let mut job = new_job(world, &namespace);
        if world.dice.percent(97) {
            job.parents.clear();
            job.unique = None;
        }
        // Mostly upwards, so mostly without a cycle.
        staged::shape(world, &mut job);
        let reach = if world.dice.percent(1) { count } else { at };
        let wanted = world.dice.below(3).min(reach);
        let needs = (0..wanted).map(|_| names[world.dice.below(reach)].clone()).collect();
        nodes.push(RunNode { name: names[at].clone(), needs, job });
    }
    let known = world.runs.last().map(|(_, id)| *id);
    let id = known.filter(|_| world.dice.percent(2)).unwrap_or_else(|| RunId::from_u128(world.id()));
    let owner = world.dice.maybe_name(50, &PRINCIPALS);
    let early = staged::early(world).filter(|_| world.dice.percent(10));
    let (namespace, id, early) = early.unwrap_or((namespace, id, 0));
    let parts = if world.dice.percent(10) { vec!["{}".into()] } else { Vec::new() };
    let plan = RunPlan { early, parts, compensates: world.dice.percent(20), ..RunPlan::default() };
    SubmitRun { namespace, id, owner, definition: None, nodes, extra: None, plan }.into()
}

fn claim(world: &mut World) -> Command {
    let namespace = world.namespace();
    let worker = world.worker();
    let max = if world.dice.percent(2) { world.dice.below(9) } else { 1 + world.dice.below(4) };
    let secrets = (0..max).map(|_| world.secret()).collect();
    let chance = if world.dice.percent(60) { 100 } else { 50 };
    let offered = world.dice.tags(chance);
    let offer = match world.dice.below(10) {
        0 => Offer::Registered,
        1 => Offer::Narrowed(offered),
        _ => Offer::Tags(offered),
    };
    let unknown = if world.dice.percent(10) { Unknown::Refuse } else { Unknown::Create(worker_policy(world, true)) };
    let dice = &mut world.dice;
    Claim {
        namespace,
        worker,
        offer,
        secrets,
        lease: dice.maybe_millis(70, 30_000),
        unknown,
        principal: dice.maybe_name(40, &PRINCIPALS),
        request_id: dice.maybe_name(15, &["q1", "q2", "q3"]),
    }
    .into()
}

fn cancel(world: &mut World) -> Command {
    let key = world.job();
    let namespace = world.perhaps_foreign(&key.namespace);
    let mode = *world.dice.pick(&[None, None, Some(CancelPolicy::Revoke), Some(CancelPolicy::Drain)]);
    let message = world.dice.maybe_name(30, &["not needed"]).unwrap_or_default();
    Cancel { namespace, job: key.id, by: world.dice.name(&PRINCIPALS), mode, message }.into()
}

fn cancel_run(world: &mut World) -> Command {
    let known = world.dice.recent(&world.runs, 8).cloned();
    let (namespace, run) = known.unwrap_or_else(|| (Namespace::default(), RunId::from_u128(1)));
    CancelRun { namespace: world.perhaps_foreign(&namespace), run, by: world.dice.name(&PRINCIPALS) }.into()
}

fn retry(world: &mut World) -> Command {
    let key = world.job();
    let id = JobId::from_u128(world.id());
    let again = world.dice.percent(50);
    Retry { namespace: world.perhaps_foreign(&key.namespace), job: key.id, id, again }.into()
}

/// The sweep may ask about anything at any time; if nothing is due, nothing happens.
fn due(world: &mut World) -> Command {
    let due = if world.dice.percent(60) {
        Due::Job(world.job())
    } else {
        let namespace = world.namespace();
        let kind = *world.dice.pick(&["worker", "schedule", "unique", "token", "run", RECORD_KIND]);
        Due::Record(RecordKey { namespace, kind: kind.into(), key: world.dice.name(&["w1", "hourly", "k1", "ghost"]) })
    };
    Command::Due(due)
}

fn grace(world: &mut World) -> Command {
    Grace { job: world.job() }.into()
}

fn worker_policy(world: &mut World, possible: bool) -> WorkerPolicy {
    let dice = &mut world.dice;
    if dice.percent(30) {
        return WorkerPolicy::default();
    }
    let offline_after = dice.millis(60_000);
    let unreachable_after = dice.maybe_millis(50, offline_after.0);
    let delete_after = dice.percent(60).then(|| Millis(offline_after.0 + dice.between(0, 90_000)));
    let policy = WorkerPolicy {
        alive_by: *dice.pick(&[AliveBy::Heartbeat, AliveBy::AnyCall]),
        may_claim: *dice.pick(&[MayClaim::Always, MayClaim::Always, MayClaim::OnlineOnly]),
        unregister: *dice.pick(&[Unregister::Requeue, Unregister::Fail, Unregister::Offline]),
        online_from: *dice.pick(&[OnlineFrom::Registration, OnlineFrom::Registration, OnlineFrom::FirstSign]),
        unreachable_after,
        offline_after,
        delete_after,
        kept_after: dice.maybe_millis(40, 90_000),
    };
    if possible || dice.percent(97) { policy } else { WorkerPolicy { delete_after: Some(Millis(0)), ..policy } }
}

fn register(world: &mut World) -> Command {
    let (namespace, worker, policy) = (world.namespace(), world.worker(), worker_policy(world, false));
    let dice = &mut world.dice;
    let tags = if dice.percent(50) { dice.tags(70) } else { Tags::default() };
    RegisterWorker {
        namespace,
        worker,
        tags,
        slots: dice.below(4) as u32,
        owner: dice.maybe_name(20, &["alice", "bob"]),
        policy,
        extra: dice.percent(10).then(|| dice.text(70).into()),
    }
    .into()
}

fn some_worker(world: &mut World) -> WorkerId {
    if world.dice.percent(3) { WorkerId::trusted("nobody") } else { world.worker() }
}

fn heartbeat(world: &mut World) -> Command {
    let (namespace, worker) = (world.namespace(), some_worker(world));
    Heartbeat { namespace, worker, principal: world.dice.maybe_name(10, &["alice", "bob"]) }.into()
}

fn drain(world: &mut World) -> Command {
    let (namespace, worker) = (world.namespace(), some_worker(world));
    let principal = world.dice.maybe_name(10, &["alice", "bob"]);
    DrainWorker { namespace, worker, draining: world.dice.percent(40), principal }.into()
}

fn unregister(world: &mut World) -> Command {
    let (namespace, worker) = (world.namespace(), some_worker(world));
    let how = [None, None, Some(Unregister::Requeue), Some(Unregister::Fail), Some(Unregister::Offline)];
    let principal = world.dice.maybe_name(10, &["alice", "bob"]);
    let (how, only_offline) = (*world.dice.pick(&how), world.dice.percent(20));
    UnregisterWorker { namespace, worker, how, only_offline, principal }.into()
}

fn doubt(world: &mut World) -> Command {
    let (namespace, worker) = (world.namespace(), some_worker(world));
    let silence = world.dice.maybe_millis(70, 20_000);
    Doubt { namespace, worker, silence, principal: world.dice.maybe_name(10, &["alice", "bob"]) }.into()
}

fn excuse(world: &mut World) -> Command {
    let (namespace, worker) = (world.namespace(), some_worker(world));
    Excuse { namespace, worker }.into()
}

fn link(world: &mut World) -> Command {
    let (namespace, worker) = (world.namespace(), some_worker(world));
    let (definition, body) = (world.dice.name(&LINKED), world.dice.name(&["{}", "{}", "{}", "{\"a\":1}"]));
    let principal = world.dice.maybe_name(10, &["alice", "bob"]);
    Link { namespace, definition, print: body.clone(), body, retires: world.dice.percent(90), worker, principal }.into()
}

/// A record that goes with its worker.
fn tie(world: &mut World) -> Command {
    let key = RecordKey { namespace: world.namespace(), kind: TIED.into(), key: world.dice.name(&["t1", "t2"]) };
    let parent = Some(some_worker(world).as_str().into());
    let (expect, facets) = (Expect::Anything, world.dice.facets());
    PutRecord { key, expect, parent, value: "{}".into(), facets, expires_at: None }.into()
}

fn put_definition(world: &mut World) -> Command {
    let namespace = world.namespace();
    let name = world.dice.name(&["build", "test"]);
    PutDefinition { namespace, name, body: world.dice.name(&["{}", "{\"a\":1}", "{\"b\":2}"]) }.into()
}

fn delete_definition(world: &mut World) -> Command {
    DeleteDefinition { namespace: world.namespace(), name: world.dice.name(&["build", "test", "ghost"]) }.into()
}

fn put_schedule(world: &mut World) -> Command {
    let (namespace, policy, now) = (world.namespace(), policy(world), world.now);
    let dice = &mut world.dice;
    let rule = match dice.percent(50) {
        true => Rule::Every(Millis(dice.between(900, 60_000))),
        false => Rule::Calendar("0 3 * * *".into()),
    };
    let name = match rule {
        Rule::Every(_) => dice.name(&["hourly", "often"]),
        Rule::Calendar(_) => dice.name(&["nightly", "weekly"]),
    };
    let template =
        Template { priority: 7, tags: dice.tags(10), payload: dice.text(20).into(), policy, ..Template::default() };
    let missed = if dice.percent(30) { Missed::Skip } else { Missed::Once };
    let paused = dice.percent(10);
    let next_at = now + Millis(dice.between(-1_000, 30_000));
    PutSchedule { namespace, schedule: Schedule { missed, paused, ..Schedule::new(&name, rule, next_at, template) } }
        .into()
}

fn delete_schedule(world: &mut World) -> Command {
    let namespace = world.namespace();
    DeleteSchedule { namespace, name: world.dice.name(&["hourly", "often", "nightly", "weekly"]) }.into()
}

fn fire(world: &mut World) -> Command {
    let mut known: Vec<_> = world.calendars.iter().map(|(at, next)| (at.clone(), *next)).collect();
    known.sort();
    let now = world.now;
    let unknown = ((world.namespace(), Arc::from("nightly")), now);
    let ((namespace, name), expected_at) = if known.is_empty() { unknown } else { world.dice.pick(&known).clone() };
    let expected_at = expected_at + Millis(i64::from(world.dice.percent(5)));
    let next_at = expected_at.max(now) + Millis(world.dice.between(0, 60_000));
    let wall = now + Millis(world.dice.between(-60_000, 60_000));
    Fire { namespace, name, expected_at, next_at, wall }.into()
}

fn run_schedule(world: &mut World) -> Command {
    let namespace = world.namespace();
    let job = new_job(world, &namespace);
    let name = world.dice.name(&["hourly", "often", "nightly", "weekly"]);
    RunSchedule { namespace, name, id: job.id, owner: job.owner, unique: job.unique }.into()
}

/// Mostly of what an operator does.
fn audited(world: &mut World) -> Command {
    let command = match world.dice.below(4) {
        0 => put_definition(world),
        1 => rights::issue_token(world),
        2 => drain(world),
        _ => heartbeat(world),
    };
    let audited = Audited::new(&"alice".into(), command);
    let told = world.dice.percent(20).then(|| ("act_of_its_own", "thing".into()));
    Audited { act: told, ..audited }.into()
}

fn record_key(world: &mut World) -> RecordKey {
    let namespace = world.namespace();
    let kind = if world.dice.percent(2) { "worker" } else { RECORD_KIND };
    RecordKey { namespace, kind: kind.into(), key: world.dice.name(&["k1", "k2", "k3", WORKERS[5]]) }
}

fn expect(world: &mut World) -> Expect {
    match world.dice.below(4) {
        0 => Expect::Nothing,
        1 => Expect::Version(world.dice.below(5) as u64),
        _ => Expect::Anything,
    }
}

fn put_record(world: &mut World) -> Command {
    let (key, expect, now) = (record_key(world), expect(world), world.now);
    let dice = &mut world.dice;
    let value = format!("{{\"n\":{}}}", dice.below(1_000)).into();
    let parent = dice.maybe_name(40, &["p1", "p2"]);
    let expires_at = dice.maybe_millis(30, 40_000).map(|length| now + length);
    PutRecord { key, expect, parent, value, facets: dice.facets(), expires_at }.into()
}

fn tell(world: &mut World) -> Command {
    let (namespace, topic) = (world.namespace(), world.dice.name(&["item.created", "graph.updated"]));
    Tell { namespace, topic, data: world.dice.text(40).into() }.into()
}

fn delete_record(world: &mut World) -> Command {
    DeleteRecord { key: record_key(world), expect: expect(world) }.into()
}

/// Mostly of commands that go well, so that some succeed as a whole.
fn all(world: &mut World) -> Command {
    let count = if world.dice.percent(3) { 10 } else { 1 + world.dice.below(3) };
    let mut commands: Vec<Command> = Vec::new();
    for _ in 0..count {
        let one = match world.dice.below(7) {
            0 => command(world),
            1 => put_record(world),
            2 => reports::complete(world),
            3 => unregister(world),
            4 => reports::holds(world),
            _ => submit(world),
        };
        if !matches!(one, Command::All(_)) || world.dice.percent(10) {
            commands.push(one);
        }
    }
    All { commands }.into()
}
