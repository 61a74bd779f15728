//! Seeded random walks on the embedded store and on the reference store side by side: every reply, every event and every
//! answer to every question must be equal, also after the embedded store was closed and opened again.

mod embedded_support;

use embedded_support::*;
use std::{collections::BTreeSet, path::Path, sync::Arc};
use uuid::Uuid;
use windlass_core::{
    Command, Facet, JobId, JobKey, LeaseId, Millis, Namespace, RecordKey, RunId, State, Tags, Timestamp, WorkerId,
    commands::{
        append_log::AppendLog,
        cancel::Cancel,
        cancel_run::CancelRun,
        claim::{Claim, Offer},
        complete::Complete,
        fail::Fail,
        holder::Holder,
        progress::ReportProgress,
        records::{DeleteRecord, Expect, PutRecord},
        release::Release,
        renew::Renew,
        retry::Retry,
        start::Start,
        submit::{NewJob, Submit},
        submit_run::{RunNode, SubmitRun},
        workers::{Heartbeat, RegisterWorker, UnregisterWorker},
    },
    job::{ConcurrencyKey, UniqueKey, UniqueUntil},
    policy::{Backoff, CancelPolicy, LeaseEnd, ParentPolicy, RetryForm},
};
use windlass_engine::{
    clock::Simulated,
    memory::Memory,
    store::{JobQuery, RecordQuery, Store, Trim},
};
use windlass_stores::embedded::Embedded;

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 31)
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }
    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const TAGS: [&[&str]; 6] = [&[], &["gpu"], &["linux"], &["gpu", "linux"], &["arm"], &["a", "b", "c"]];
const OFFERS: [&[&str]; 5] = [&[], &["gpu", "linux"], &["arm", "linux"], &["a", "b", "c", "gpu"], &["b"]];

struct Walk {
    dice: Dice,
    clock: Arc<Simulated>,
    memory: Memory,
    embedded: Option<Embedded>,
    jobs: Vec<JobKey>,
    leases: Vec<(Namespace, LeaseId)>,
    runs: Vec<(Namespace, RunId)>,
    ids: u128,
    seen: BTreeSet<&'static str>,
}

impl Walk {
    fn new(seed: u64, folder: &Path) -> Self {
        let clock = clock();
        let memory = Memory::new(clock.clone());
        let embedded = Some(open(folder, &clock));
        let (jobs, leases, runs) = Default::default();
        Self { dice: Dice(seed), clock, memory, embedded, jobs, leases, runs, ids: 0, seen: BTreeSet::new() }
    }

    fn store(&self) -> &Embedded {
        self.embedded.as_ref().unwrap()
    }

    fn namespace(&mut self) -> Namespace {
        Namespace::new(["default", "silo", "wfg"][self.dice.below(3)]).unwrap()
    }

    fn worker(&mut self) -> WorkerId {
        WorkerId::new(["w1", "w2", "w3"][self.dice.below(3)]).unwrap()
    }

    /// Mostly growing, as the engine draws them; now and then out of order, as others may.
    fn id(&mut self) -> JobId {
        self.ids += 1;
        let jump = if self.dice.one_in(10) { 1 << 60 } else { 1 << 100 };
        JobId::from_u128(self.ids.wrapping_add(jump))
    }

    fn new_job(&mut self, namespace: &Namespace) -> NewJob {
        let mut job = NewJob::new(self.id());
        job.tags = self.dice.pick(&TAGS).iter().copied().collect();
        job.priority = self.dice.below(3) as i32 - 1;
        job.payload = ["", "{}", "payload"][self.dice.below(3)].into();
        job.policy.retention = self.dice.one_in(3).then_some(Millis(self.dice.below(30_000) as i64));
        job.policy.pending_deadline = self.dice.one_in(8).then_some(Millis(9_000));
        job.policy.hard_deadline = self.dice.one_in(8).then_some(Millis(12_000));
        job.policy.retry.form = if self.dice.one_in(3) { RetryForm::NewJob } else { RetryForm::SameJob };
        job.policy.cancel = if self.dice.one_in(2) { CancelPolicy::Drain } else { CancelPolicy::default() };
        job.policy.parents = *self.dice.pick(&[ParentPolicy::Skip, ParentPolicy::RunAnyway, ParentPolicy::CancelRun]);
        if self.dice.one_in(3) {
            job.policy.retry.backoff = Backoff::Fixed(Millis(3_000));
        }
        if self.dice.one_in(5) {
            job.policy.lease.ends = LeaseEnd::WithWorker;
        }
        if self.dice.one_in(4) {
            job.run_at = Some(Timestamp(1_000_000 + self.dice.below(60_000) as i64));
        }
        if self.dice.one_in(3) {
            job.facets = vec![Facet::new("room", ["a", "b"][self.dice.below(2)]), Facet::new("user", "u")];
        }
        if self.dice.one_in(3) {
            let key = ["k1", "k2"][self.dice.below(2)].into();
            job.concurrency = Some(ConcurrencyKey { key, limit: 2 });
        }
        if self.dice.one_in(6) {
            let until = if self.dice.one_in(2) { UniqueUntil::Final } else { UniqueUntil::After(Millis(5_000)) };
            job.unique = Some(UniqueKey { key: "once".into(), body_hash: "h".into(), until });
        }
        if self.dice.one_in(4) && !self.jobs.is_empty() {
            let parents: Vec<JobKey> = (0..2).map(|_| self.dice.pick(&self.jobs).clone()).collect();
            job.parents = parents.iter().filter(|key| key.namespace == *namespace).map(|key| key.id).collect();
        }
        job
    }

    fn submit(&mut self) -> Command {
        let namespace = self.namespace();
        let job = self.new_job(&namespace);
        self.jobs.push(JobKey::new(&namespace, job.id));
        Submit { namespace, job }.into()
    }

    fn submit_run(&mut self) -> Command {
        let (namespace, id) = (self.namespace(), RunId(self.id().0));
        let mut nodes: Vec<RunNode> = Vec::new();
        for at in 0..4 {
            let job = NewJob { parents: Vec::new(), unique: None, ..self.new_job(&namespace) };
            self.jobs.push(JobKey::new(&namespace, job.id));
            let needs = nodes.iter().filter(|_| self.dice.one_in(2)).map(|node: &RunNode| node.name.clone()).collect();
            nodes.push(RunNode { name: format!("n{at}").into(), needs, job });
        }
        self.runs.push((namespace.clone(), id));
        SubmitRun { namespace, id, owner: None, definition: None, nodes, extra: None }.into()
    }

    fn claim(&mut self) -> Command {
        let (namespace, worker) = (self.namespace(), self.worker());
        let offered: Tags = self.dice.pick(&OFFERS).iter().copied().collect();
        let secrets = (0..1 + self.dice.below(4)).map(|_| Uuid::from_u128(self.dice.roll().into())).collect();
        let mut claim = Claim::new(&namespace, worker, offered, secrets);
        if self.dice.one_in(5) {
            claim.request_id = Some("again".into());
        }
        if self.dice.one_in(6) {
            claim.offer = Offer::Registered;
        }
        claim.into()
    }

    fn holder(&mut self) -> Holder {
        match self.leases.is_empty() {
            true => Holder::lease(&Namespace::default(), LeaseId::new(JobId::from_u128(1), Uuid::from_u128(1))),
            false => {
                let (namespace, lease) = self.dice.pick(&self.leases).clone();
                Holder::lease(&namespace, lease)
            }
        }
    }

    fn report(&mut self) -> Command {
        let holder = self.holder();
        match self.dice.below(8) {
            0 => Start { holder }.into(),
            1 => Renew { holder, length: None }.into(),
            2 => ReportProgress { holder, percent: 40.0, message: Some("half".into()) }.into(),
            3 => AppendLog { holder, data: "a line\n".into() }.into(),
            4 => Fail { holder, message: "no".into(), retryable: self.dice.one_in(2) }.into(),
            5 => Release { holder }.into(),
            _ => Complete { holder, result: ["", "42"][self.dice.below(2)].into() }.into(),
        }
    }

    fn record(&mut self) -> Command {
        let (namespace, kind) = (self.namespace(), Arc::from("item"));
        let key = RecordKey { namespace, kind, key: ["i1", "i2", "i3", "é"][self.dice.below(4)].into() };
        if self.dice.one_in(3) {
            return DeleteRecord { key, expect: Expect::Anything }.into();
        }
        let parent = self.dice.one_in(2).then(|| ["p", "q"][self.dice.below(2)].into());
        let facets = if self.dice.one_in(2) { vec![Facet::new("color", "red")] } else { Vec::new() };
        let expires_at = self.dice.one_in(3).then_some(Timestamp(1_000_000 + self.dice.below(60_000) as i64));
        PutRecord { key, expect: Expect::Anything, parent, value: "{\"v\":1}".into(), facets, expires_at }.into()
    }

    fn other(&mut self) -> Command {
        let (namespace, worker) = (self.namespace(), self.worker());
        match self.dice.below(6) {
            0 => {
                let tags = self.dice.pick(&OFFERS).iter().copied().collect();
                let policy = Default::default();
                RegisterWorker { namespace, worker, tags, slots: 1, owner: None, policy, extra: None }.into()
            }
            1 => Heartbeat { namespace, worker }.into(),
            2 => UnregisterWorker { namespace, worker, how: None }.into(),
            3 if !self.runs.is_empty() => {
                let (namespace, run) = self.dice.pick(&self.runs).clone();
                CancelRun { namespace, run, by: "me".into() }.into()
            }
            4 if !self.jobs.is_empty() => {
                let key = self.dice.pick(&self.jobs).clone();
                let id = self.id();
                self.jobs.push(JobKey::new(&key.namespace, id));
                Retry { namespace: key.namespace, job: key.id, id }.into()
            }
            _ if !self.jobs.is_empty() => {
                let key = self.dice.pick(&self.jobs).clone();
                Cancel { namespace: key.namespace, job: key.id, by: "me".into() }.into()
            }
            _ => self.submit(),
        }
    }

    fn command(&mut self) -> Command {
        match self.dice.below(12) {
            0..=2 => self.submit(),
            3 => self.submit_run(),
            4..=5 => self.claim(),
            6..=8 => self.report(),
            9 => self.record(),
            _ => self.other(),
        }
    }

    async fn sweep(&mut self) -> Vec<Command> {
        let limit = self.dice.below(20);
        let expected = self.memory.due(limit).await.unwrap();
        let found = self.store().due(limit).await.unwrap();
        assert_eq!((&found.due, found.next, found.now), (&expected.due, expected.next, expected.now));
        expected.due.into_iter().map(Command::Due).collect()
    }

    async fn step(&mut self) {
        let commands = match self.dice.below(4) {
            0 => {
                self.clock.advance(Millis(self.dice.below(4_000) as i64));
                self.sweep().await
            }
            _ => (0..1 + self.dice.below(6)).map(|_| self.command()).collect(),
        };
        let expected = try_run(&self.memory, commands.clone()).await.unwrap();
        let found = try_run(self.store(), commands.clone()).await.unwrap();
        assert_eq!(found.replies, expected.replies, "{commands:#?}");
        assert_eq!(found.events, expected.events);
        assert_eq!(found.first_event, expected.first_event);
        assert_eq!(found.wakes, expected.wakes);
        assert_eq!(found.logged, expected.logged);
        assert_eq!(found.next_due, expected.next_due);
        for (command, reply) in commands.iter().zip(&found.replies) {
            if reply.is_ok() {
                self.seen.insert(command.name());
            }
            if let (Command::Claim(claim), Ok(windlass_core::Reply::Leases(leases))) = (command, reply) {
                self.leases.extend(leases.iter().map(|leased| (claim.namespace.clone(), leased.lease)));
            }
        }
    }

    fn query(&mut self) -> JobQuery {
        let states = State::ALL.into_iter().filter(|_| self.dice.one_in(3)).collect();
        let facet = self.dice.one_in(4).then(|| Facet::new("room", "a"));
        let before = (self.dice.one_in(3) && !self.jobs.is_empty()).then(|| self.dice.pick(&self.jobs).clone());
        let run = (self.dice.one_in(6) && !self.runs.is_empty()).then(|| self.dice.pick(&self.runs).1);
        JobQuery {
            namespace: self.dice.one_in(2).then(|| self.namespace()),
            states,
            facet,
            run,
            holder: self.dice.one_in(6).then(|| self.worker()),
            before: before.map(|key| (key.namespace, key.id)),
            limit: self.dice.below(12),
        }
    }

    async fn compare(&mut self) {
        for _ in 0..8 {
            let query = self.query();
            let found = self.store().jobs(&query).await.unwrap();
            assert_eq!(found, self.memory.jobs(&query).await.unwrap(), "{query:?}");
            let max = self.dice.below(30);
            let found = self.store().count(&query, max).await.unwrap();
            assert_eq!(found, self.memory.count(&query, max).await.unwrap(), "{query:?}");
        }
        for key in self.jobs.clone() {
            assert_eq!(self.store().job(&key).await.unwrap(), self.memory.job(&key).await.unwrap());
            assert_eq!(self.store().body(&key).await.unwrap(), self.memory.body(&key).await.unwrap());
            let (after, bytes_max) = (self.dice.below(3) as u64, self.dice.below(20));
            let found = self.store().read_log(&key, after, bytes_max).await.unwrap();
            assert_eq!(found, self.memory.read_log(&key, after, bytes_max).await.unwrap());
        }
        self.compare_records().await;
        self.compare_events().await;
        assert_eq!(self.store().check().await.unwrap(), Vec::<String>::new());
    }

    async fn compare_records(&mut self) {
        for kind in ["item", "worker", "run", "concurrency", "unique", "claim_request"] {
            let query = RecordQuery {
                namespace: self.namespace(),
                kind: kind.into(),
                parent: self.dice.one_in(2).then(|| "p".into()),
                facet: self.dice.one_in(2).then(|| Facet::new("color", "red")),
                after: self.dice.one_in(3).then(|| "i1".into()),
                limit: self.dice.below(5),
            };
            let found = self.store().records(&query).await.unwrap();
            assert_eq!(found, self.memory.records(&query).await.unwrap(), "{query:?}");
        }
    }

    async fn compare_events(&mut self) {
        let last = self.memory.events_after(0, 0).await.unwrap().last;
        let (after, limit) = (self.dice.below(last as usize + 3) as u64, self.dice.below(50));
        let expected = self.memory.events_after(after, limit).await.unwrap();
        let found = self.store().events_after(after, limit).await.unwrap();
        assert_eq!((&found.events, found.oldest, found.last), (&expected.events, expected.oldest, expected.last));
        if self.dice.one_in(3) {
            let events_before = Timestamp(1_000_000 + self.dice.below(100_000) as i64);
            let trim = Trim { events_before, limit: self.dice.below(60) };
            assert_eq!(self.store().trim(trim).await.unwrap(), self.memory.trim(trim).await.unwrap());
        }
    }
}

async fn walk(seed: u64, steps: usize) -> BTreeSet<&'static str> {
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(seed, folder.path());
    for at in 0..steps {
        walk.step().await;
        if at % 40 == 39 {
            walk.compare().await;
        }
        if walk.dice.one_in(60) {
            walk.embedded = None;
            walk.embedded = Some(open(folder.path(), &walk.clock));
        }
    }
    walk.compare().await;
    walk.seen
}

#[tokio::test]
async fn both_stores_answer_the_same() {
    let mut seen = BTreeSet::new();
    for seed in 0..12 {
        seen.extend(walk(seed, 250).await);
    }
    let expected = [
        "Submit",
        "SubmitRun",
        "Claim",
        "Start",
        "Renew",
        "Progress",
        "AppendLog",
        "Complete",
        "Fail",
        "Release",
        "Cancel",
        "CancelRun",
        "Retry",
        "Due",
        "RegisterWorker",
        "Heartbeat",
        "UnregisterWorker",
        "PutRecord",
        "DeleteRecord",
    ];
    for name in expected {
        assert!(seen.contains(name), "{name} never succeeded");
    }
}

/// So many lanes fit some offers that the store walks them in order rather than looking them up by tag.
#[tokio::test]
async fn many_lanes_are_served_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(77, folder.path());
    let names: Vec<String> = (0..12).map(|at| format!("tag{at}")).collect();
    for round in 0..120 {
        let mut commands = Vec::new();
        for _ in 0..15 {
            let mut job = NewJob::new(walk.id());
            job.priority = walk.dice.below(3) as i32;
            job.tags = names.iter().filter(|_| walk.dice.one_in(4)).map(String::as_str).collect();
            commands.push(Submit { namespace: Namespace::default(), job }.into());
        }
        let rare = [1, 2, 12][walk.dice.below(3)];
        let offered = names.iter().filter(|_| !walk.dice.one_in(rare)).map(String::as_str).collect();
        let secrets = (0..1 + walk.dice.below(25)).map(|_| Uuid::from_u128(walk.dice.roll().into())).collect();
        commands.push(Claim::new(&Namespace::default(), walk.worker(), offered, secrets).into());
        let expected = run(&walk.memory, commands.clone()).await;
        assert_eq!(run(walk.store(), commands).await, expected, "round {round}");
    }
    assert!(walk.store().stats().lanes > 300, "{:?}", walk.store().stats());
    // Found again from the claim index alone.
    walk.embedded = None;
    walk.embedded = Some(open(folder.path(), &walk.clock));
    let claim = Claim::new(
        &Namespace::default(),
        walk.worker(),
        names.iter().map(String::as_str).collect(),
        (0..1_000).map(Uuid::from_u128).collect(),
    );
    let expected = run(&walk.memory, vec![claim.clone().into()]).await;
    assert!(leases(&expected).len() > 300);
    assert_eq!(run(walk.store(), vec![claim.into()]).await, expected);
}
