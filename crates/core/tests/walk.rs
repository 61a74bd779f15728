//! Seeded random walks over the rules alone. The tables check every write (one lease an attempt, final never changes,
//! attempts grow); after every step all counters must match the rows. And graphs against the plainest possible oracle.

use crate::{seeds, tables::Tables};
use std::collections::BTreeSet;
use uuid::Uuid;
use windlass_core::{
    Command, JobId, LeaseId, Millis, Namespace, Refusal, Reply, RunId, State, Tags, Timestamp, WorkerId,
    commands::{
        cancel::Cancel,
        cancel_run::CancelRun,
        claim::{Claim, Offer, Unknown},
        complete::Complete,
        fail::Fail,
        grace::Grace,
        holder::{Address, Holder},
        progress::ReportProgress,
        release::Release,
        renew::Renew,
        retry::Retry,
        start::Start,
        submit::{NewJob, Submit},
        submit_run::{RunNode, SubmitRun},
        workers::{DrainWorker, Heartbeat, RegisterWorker, UnregisterWorker},
    },
    job::{ConcurrencyKey, UniqueKey, UniqueUntil},
    policy::{
        AliveBy, Backoff, CancelPolicy, LeaseEnd, MayClaim, OnlineFrom, ParentPolicy, RetryForm, StartPolicy,
        Unregister, WorkerPolicy,
    },
};

/// A small generator (xorshift), so that a seed names a walk for ever.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
    fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

struct Walk {
    dice: Dice,
    tables: Tables,
    now: Timestamp,
    ids: u128,
    runs: u128,
    leases: Vec<LeaseId>,
    namespaces: [Namespace; 2],
}

const TAGS: [&str; 3] = ["arm", "big", "gpu"];

impl Walk {
    fn new(seed: u64) -> Self {
        let mut tables = Tables::default();
        tables.limits.retention = Millis(60_000);
        tables.limits.pass_on_max = 2;
        Self {
            dice: Dice::new(seed),
            tables,
            now: Timestamp(1_000_000),
            ids: 0,
            runs: 0,
            leases: Vec::new(),
            namespaces: ["a", "b"].map(|name| Namespace::new(name).unwrap()),
        }
    }

    fn namespace(&mut self) -> Namespace {
        self.dice.pick(&self.namespaces.clone())
    }

    fn worker(&mut self) -> WorkerId {
        WorkerId::new(self.dice.pick(&["w0", "w1", "w2"])).unwrap()
    }

    fn tags(&mut self) -> Tags {
        TAGS.into_iter().filter(|_| self.dice.one_in(3)).collect()
    }

    /// Mostly one that exists.
    fn any_job(&mut self) -> JobId {
        let ids = self.ids as u64;
        JobId::from_u128(self.dice.below(ids + 2).into())
    }

    fn new_job(&mut self) -> NewJob {
        self.ids += 1;
        let mut job = NewJob::new(JobId::from_u128(self.ids));
        let dice = &mut self.dice;
        job.priority = dice.below(3) as i32;
        job.payload = "{}".into();
        job.policy.lease.ends = dice.pick(&[LeaseEnd::Renewable, LeaseEnd::Fixed, LeaseEnd::WithWorker]);
        job.policy.hard_deadline = dice.one_in(4).then_some(Millis(25_000));
        job.policy.total_deadline = dice.one_in(6).then_some(Millis(45_000));
        job.policy.pending_deadline = dice.one_in(6).then_some(Millis(40_000));
        job.policy.start = dice.pick(&[StartPolicy::Implied, StartPolicy::Implied, StartPolicy::Required]);
        job.policy.cancel = dice.pick(&[CancelPolicy::Revoke, CancelPolicy::Drain]);
        job.policy.parents = dice.pick(&[ParentPolicy::Skip, ParentPolicy::RunAnyway, ParentPolicy::CancelRun]);
        let retry = &mut job.policy.retry;
        retry.attempts = 1 + dice.below(3) as u32;
        retry.losses_max = 1 + dice.below(3) as u32;
        retry.backoff = dice.pick(&[Backoff::None, Backoff::Fixed(Millis(5_000))]);
        (retry.on_failure, retry.on_lost, retry.on_deadline) = (!dice.one_in(4), !dice.one_in(4), !dice.one_in(4));
        if dice.one_in(2) {
            let key = dice.pick(&["k0", "k1"]).into();
            job.concurrency = Some(ConcurrencyKey { key, limit: 1 + dice.below(2) as u32 });
        }
        if dice.one_in(5) {
            job.run_at = Some(self.now + Millis(dice.below(20_000) as i64));
        }
        job.tags = self.tags();
        job
    }

    fn submit(&mut self) -> Command {
        let namespace = self.namespace();
        let mut job = self.new_job();
        if self.dice.one_in(3) {
            job.parents = (0..1 + self.dice.below(3)).map(|_| self.any_job()).filter(|id| *id != job.id).collect();
        }
        if self.dice.one_in(4) {
            let until = self.dice.pick(&[UniqueUntil::Final, UniqueUntil::After(Millis(30_000))]);
            job.unique = Some(UniqueKey { key: self.dice.pick(&["u0", "u1"]).into(), body_hash: "h".into(), until });
        }
        if self.dice.one_in(4) {
            job.policy.retry.form = RetryForm::NewJob;
        }
        Submit { namespace, job }.into()
    }

    fn submit_run(&mut self) -> Command {
        self.runs += 1;
        let nodes = (0..1 + self.dice.below(8)).map(|at| {
            let needs = (0..at).filter(|_| self.dice.one_in(3)).map(|need| need.to_string().into()).collect();
            let mut job = self.new_job();
            if self.dice.one_in(5) {
                job.policy.retry.form = RetryForm::NewJob;
            }
            RunNode { name: at.to_string().into(), needs, job }
        });
        let nodes = nodes.collect();
        let id = RunId::from_u128(self.runs);
        SubmitRun::new(self.namespace(), id, nodes).into()
    }

    fn worker_policy(&mut self) -> WorkerPolicy {
        let dice = &mut self.dice;
        WorkerPolicy {
            alive_by: dice.pick(&[AliveBy::Heartbeat, AliveBy::AnyCall]),
            may_claim: dice.pick(&[MayClaim::Always, MayClaim::OnlineOnly]),
            unregister: dice.pick(&[Unregister::Requeue, Unregister::Fail, Unregister::Offline]),
            online_from: dice.pick(&[OnlineFrom::Registration, OnlineFrom::Registration, OnlineFrom::FirstSign]),
            unreachable_after: dice.one_in(2).then_some(Millis(10_000)),
            offline_after: Millis(20_000),
            delete_after: dice.one_in(2).then_some(Millis(20_000 + dice.below(2) as i64 * 30_000)),
            kept_after: dice.one_in(3).then_some(Millis(30_000)),
        }
    }

    fn claim(&mut self) -> Command {
        let secrets = (0..1 + self.dice.below(3)).map(|_| {
            self.ids += 1;
            Uuid::from_u128(self.ids << 64)
        });
        let secrets = secrets.collect();
        let tags = self.tags();
        let offer = self.dice.pick(&[Offer::Tags(tags.clone()), Offer::Registered, Offer::Narrowed(tags)]);
        let policy = self.worker_policy();
        Claim {
            offer,
            unknown: self.dice.pick(&[Unknown::Refuse, Unknown::Create(policy)]),
            lease: self.dice.one_in(2).then_some(Millis(8_000)),
            request_id: self.dice.one_in(3).then(|| self.dice.pick(&["r0", "r1"]).into()),
            ..Claim::new(&self.namespace(), self.worker(), Tags::default(), secrets)
        }
        .into()
    }

    /// Mostly a lease that was given, often one that is long over.
    fn holder(&mut self) -> Holder {
        let namespace = self.namespace();
        let worker = self.worker();
        let recent = self.leases.len().saturating_sub(6);
        let address = match self.leases.get(recent..).filter(|recent| !recent.is_empty()) {
            Some(recent) if !self.dice.one_in(5) => Address::Lease(self.dice.pick(recent)),
            _ if self.dice.one_in(2) => Address::Job(self.any_job()),
            _ => Address::Worker { job: self.any_job(), worker },
        };
        Holder { namespace, address, principal: None }
    }

    fn command(&mut self) -> Command {
        match self.dice.below(30) {
            0..=4 => self.submit(),
            5 => self.submit_run(),
            6..=10 => self.claim(),
            11..=14 => Complete { holder: self.holder(), result: "1".into() }.into(),
            15..=17 => Fail {
                holder: self.holder(),
                message: "x".into(),
                retryable: !self.dice.one_in(4),
                result: Default::default(),
            }
            .into(),
            18 => Start { holder: self.holder() }.into(),
            19..=20 => Renew { holder: self.holder(), length: None }.into(),
            21 => ReportProgress { holder: self.holder(), percent: 1.0, message: None }.into(),
            22 => Release { holder: self.holder() }.into(),
            23 => Cancel {
                namespace: self.namespace(),
                job: self.any_job(),
                by: "x".into(),
                mode: None,
                message: "".into(),
            }
            .into(),
            24 => {
                let run = RunId::from_u128(u128::from(self.dice.below(self.runs as u64 + 2)));
                CancelRun { namespace: self.namespace(), run, by: "x".into() }.into()
            }
            25 => {
                self.ids += 1;
                let id = JobId::from_u128(self.ids);
                let again = self.dice.one_in(2);
                Retry { namespace: self.namespace(), job: self.any_job(), id, again }.into()
            }
            26 => Heartbeat { namespace: self.namespace(), worker: self.worker(), principal: None }.into(),
            27 => {
                let (namespace, worker, tags) = (self.namespace(), self.worker(), self.tags());
                let policy = self.worker_policy();
                RegisterWorker { namespace, worker, tags, slots: 1, owner: None, policy, extra: None }.into()
            }
            28 => {
                let how = self.dice.pick(&[None, Some(Unregister::Offline), Some(Unregister::Fail)]);
                UnregisterWorker {
                    namespace: self.namespace(),
                    worker: self.worker(),
                    how,
                    only_offline: false,
                    principal: None,
                }
                .into()
            }
            _ if self.dice.one_in(2) => {
                let job = windlass_core::JobKey::new(&self.namespace(), self.any_job());
                Grace { job }.into()
            }
            _ => {
                let draining = self.dice.one_in(3);
                DrainWorker { namespace: self.namespace(), worker: self.worker(), draining, principal: None }.into()
            }
        }
    }

    /// One batch of a few commands, now and then with what is due, then a little time passes.
    fn step(&mut self) -> usize {
        let mut commands: Vec<Command> = (0..1 + self.dice.below(6)).map(|_| self.command()).collect();
        if self.dice.one_in(3) {
            commands.extend(self.tables.due(self.now).into_iter().map(Command::from));
        }
        let answers = self.tables.run(self.now, commands);
        for answer in &answers {
            if let Ok(Reply::Leases(leases)) = answer {
                self.leases.extend(leases.iter().map(|leased| leased.lease));
            }
        }
        self.tables.check();
        self.now = self.now + Millis(self.dice.below(4_000) as i64);
        answers.iter().filter(|answer| answer.is_ok()).count()
    }

    /// Every job ends: all workers fall silent but one, which completes what it can get.
    fn run_out(&mut self) {
        for _ in 0..200 {
            let due = self.tables.due(self.now).into_iter().map(Command::from).collect();
            self.tables.run(self.now, due);
            for namespace in self.namespaces.clone() {
                self.ids += 1;
                let secrets = vec![Uuid::from_u128(self.ids << 64)];
                let worker = WorkerId::new("last").unwrap();
                let claim = Claim::new(&namespace, worker, TAGS.into_iter().collect(), secrets).into();
                let claimed = self.tables.run(self.now, vec![claim]).remove(0);
                let Ok(Reply::Leases(leases)) = claimed else { panic!("{claimed:?}") };
                for leased in leases {
                    let holder = Holder::lease(&namespace, leased.lease);
                    let start = Start { holder: holder.clone() }.into();
                    self.tables.run(self.now, vec![start, Complete { holder, result: "1".into() }.into()]);
                }
            }
            self.now = self.now + Millis(11_000);
        }
        self.tables.check();
        let open: Vec<_> = self.tables.jobs.values().filter(|job| !job.state.is_final()).collect();
        assert!(open.is_empty(), "still open: {open:#?}");
    }
}

#[test]
fn no_walk_breaks_a_rule_and_every_job_ends() {
    let (mut accepted, mut walks) = (0, 0);
    for seed in seeds::of(0..30) {
        let mut walk = Walk::new(seed);
        for _ in 0..120 {
            accepted += walk.step();
        }
        walk.run_out();
        walks += 1;
        let events = &walk.tables.events;
        let mut ended = BTreeSet::new();
        for event in events.values().filter(|event| event.what.ends_job()) {
            assert!(ended.insert((event.namespace.clone(), event.what.job())), "seed {seed}: {event:?} a second time");
        }
    }
    assert!(accepted > 150 * walks, "a walk that is refused everything proves nothing: {accepted}");
}

/// Without the bytes of jobs: those of a row are counted when it is written, so a reply says what they were before its batch.
fn uncounted(answers: &[Result<Reply, Refusal>]) -> String {
    let told = format!("{answers:?}");
    let mut parts = told.split("JobBytes {");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once('}').unwrap().1).collect::<String>()
}

/// A batch must come to the same as its commands one by one; only claims are served last.
#[test]
fn a_batch_decides_as_its_commands_would_alone() {
    for seed in seeds::of(0..25) {
        let (mut together, mut alone) = (Walk::new(seed), Walk::new(seed));
        for _ in 0..80 {
            let mut commands: Vec<Command> = (0..1 + together.dice.below(6)).map(|_| together.command()).collect();
            commands.sort_by_key(|command| matches!(command, Command::Claim(_)));
            let answers = together.tables.run(together.now, commands.clone());
            let one_by_one: Vec<_> =
                commands.into_iter().flat_map(|command| alone.tables.run(together.now, vec![command])).collect();
            assert_eq!(uncounted(&answers), uncounted(&one_by_one), "seed {seed}");
            for answer in &answers {
                if let Ok(Reply::Leases(leases)) = answer {
                    together.leases.extend(leases.iter().map(|leased| leased.lease));
                }
            }
            assert_eq!(together.tables.jobs, alone.tables.jobs, "seed {seed}");
            assert_eq!(together.tables.events, alone.tables.events, "seed {seed}");
            together.now = together.now + Millis(together.dice.below(4_000) as i64);
        }
    }
}

/// What a graph must come to, worked out the plain way: look at every node again and again until nothing changes.
fn oracle(needs: &[Vec<usize>], policies: &[ParentPolicy], fails: &[bool]) -> Vec<State> {
    let mut states = vec![State::Pending; needs.len()];
    loop {
        let before = states.clone();
        for at in 0..needs.len() {
            if states[at].is_final() {
                continue;
            }
            let bad = needs[at].iter().any(|&need| states[need].is_final() && states[need] != State::Completed);
            if bad && policies[at] == ParentPolicy::Skip {
                states[at] = State::Skipped;
            } else if needs[at].iter().all(|&need| states[need].is_final()) {
                states[at] = if fails[at] { State::Failed } else { State::Completed };
            }
        }
        if before == states {
            return states;
        }
    }
}

#[test]
fn graphs_end_as_the_oracle_says_whatever_order_they_run_in() {
    for seed in seeds::of(0..150) {
        let mut dice = Dice::new(seed);
        let count = 1 + dice.below(25) as usize;
        let needs: Vec<Vec<usize>> =
            (0..count).map(|at| (0..at).filter(|_| dice.one_in(at as u64 / 2 + 1)).collect()).collect();
        let policies: Vec<ParentPolicy> =
            (0..count).map(|_| dice.pick(&[ParentPolicy::Skip, ParentPolicy::Skip, ParentPolicy::RunAnyway])).collect();
        let fails: Vec<bool> = (0..count).map(|_| dice.one_in(4)).collect();
        let expected = oracle(&needs, &policies, &fails);
        assert_eq!(run_graph(&mut dice, &needs, &policies, &fails), expected, "seed {seed}: {needs:?} {fails:?}");
    }
}

fn run_graph(dice: &mut Dice, needs: &[Vec<usize>], policies: &[ParentPolicy], fails: &[bool]) -> Vec<State> {
    let (mut tables, now, namespace) = (Tables::default(), Timestamp(1_000), Namespace::default());
    let node = |at: usize| {
        let mut job = NewJob::new(JobId::from_u128(at as u128 + 1));
        job.policy.retry.attempts = 1;
        job.policy.parents = policies[at];
        let needs = needs[at].iter().map(|need| need.to_string().into()).collect();
        RunNode { name: at.to_string().into(), needs, job }
    };
    let nodes = (0..needs.len()).map(node).collect();
    let id = RunId::from_u128(1);
    let submit = SubmitRun::new(namespace.clone(), id, nodes);
    tables.run(now, vec![submit.into()]);
    let mut held: Vec<LeaseId> = Vec::new();
    let mut secrets = 0;
    loop {
        secrets += 1;
        let claim = Claim::new(
            &namespace,
            WorkerId::new("w").unwrap(),
            Tags::default(),
            vec![Uuid::from_u128(secrets), Uuid::from_u128(secrets << 64)],
        );
        let Ok(Reply::Leases(leases)) = tables.run(now, vec![claim.into()]).remove(0) else { panic!("refused") };
        held.extend(leases.iter().map(|leased| leased.lease));
        if held.is_empty() {
            break;
        }
        let mut reports = Vec::new();
        for _ in 0..=dice.below(held.len() as u64) {
            let lease = held.swap_remove(dice.below(held.len() as u64) as usize);
            let holder = Holder::lease(&namespace, lease);
            reports.push(match fails[lease.job.0.as_u128() as usize - 1] {
                true => Fail { holder, message: "x".into(), retryable: true, result: Default::default() }.into(),
                false => Command::from(Complete { holder, result: "".into() }),
            });
        }
        assert!(tables.run(now, reports).iter().all(Result::is_ok));
        tables.check();
    }
    tables.jobs.values().map(|job| job.state).collect()
}
