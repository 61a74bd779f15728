//! The rules, a planner and a worker, without a server.

use crate::tables::Tables;
use serde_json::Value;
use uuid::Uuid;
use windlass_core::{
    Command, Job, JobId, JobKey, LeaseId, Namespace, Payload, Reason, Reply, RunId, State, Tags, Timestamp, WorkerId,
    commands::{advance::Advance, claim::Claim, complete::Complete, fail::Fail, holder::Holder, submit_run::SubmitRun},
    record::Kind,
    run::Run,
    stage::{self, Hold, Turn},
};
use windlass_plan::{
    Meter,
    plan::{self, Bundle, Done, Fact, Facts, Plan, StepTurn},
};

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

pub struct World {
    pub tables: Tables,
    plan: Plan,
    now: Timestamp,
    drawn: u128,
    /// Turns that were decided.
    pub turns: usize,
    /// Rows read in order to decide them.
    pub facts: usize,
}

fn namespace() -> Namespace {
    Namespace::default()
}

fn id() -> RunId {
    RunId::from_u128(1)
}

fn key(job: JobId) -> JobKey {
    JobKey::new(&namespace(), job)
}

fn value(payload: Option<&Payload>) -> Value {
    payload.and_then(|payload| serde_json::from_slice(payload.as_bytes()).ok()).unwrap_or_default()
}

impl World {
    pub fn start(source: &str, input: Value) -> Self {
        let bundle = Bundle { source: source.into(), input, ..Bundle::default() };
        let plan = Plan::new(&bundle, id(), Default::default()).unwrap_or_else(|why| panic!("{why}: {source}"));
        let mut world = Self { tables: Tables::default(), plan, now: Timestamp(1_000), drawn: 0, turns: 0, facts: 0 };
        let mut drawn = 0;
        let nodes = world.plan.nodes(&mut ids(&mut drawn), &Meter::default()).unwrap();
        world.drawn = drawn;
        let plan = world.plan.keeps(&bundle);
        let submit = SubmitRun { plan, ..SubmitRun::new(namespace(), id(), nodes) };
        world.tables.run(world.now, vec![submit.into()]).remove(0).unwrap();
        world
    }

    pub fn run(&self) -> Run {
        let record = self.tables.record(&namespace(), Run::KIND, &id().to_string()).unwrap();
        serde_json::from_str(&record.value).unwrap()
    }

    pub fn states(&self) -> Vec<(String, &'static str)> {
        let named = |job: &Job| (job.spec.node.as_ref().unwrap().name.to_string(), job.state.name());
        self.tables.jobs.values().map(named).collect()
    }

    /// Claims, reports and decides in any order until the run has ended. `act`: whether a job completes.
    pub fn work(&mut self, dice: &mut Dice, mut act: impl FnMut(&str) -> bool) {
        let mut held: Vec<LeaseId> = Vec::new();
        while self.run().finished_at.is_none() {
            self.now = Timestamp(self.now.0 + 1);
            match dice.below(3) {
                0 => self.plan_some(dice),
                1 => held.extend(self.claim(1 + dice.below(4))),
                _ if held.is_empty() => self.plan_some(dice),
                _ => {
                    let lease = held.swap_remove(dice.below(held.len()));
                    self.report(lease, &mut act);
                }
            }
        }
        assert!(held.is_empty(), "somebody still works");
        self.tables.check();
        let left = self.tables.records.keys().filter(|key| *key.kind == *Turn::KIND).count();
        assert_eq!(left, 0, "a turn is left that nobody needs");
    }

    fn claim(&mut self, count: usize) -> Vec<LeaseId> {
        let secrets = (0..count).map(|at| Uuid::from_u128((self.now.0 as u128) << 16 | at as u128)).collect();
        let claim = Claim::new(&namespace(), WorkerId::new("w").unwrap(), Tags::default(), secrets);
        match self.tables.run(self.now, vec![claim.into()]).remove(0) {
            Ok(Reply::Leases(leases)) => leases.iter().map(|leased| leased.lease).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn report(&mut self, lease: LeaseId, act: &mut impl FnMut(&str) -> bool) {
        let name = self.tables.jobs[&key(lease.job)].spec.node.as_ref().unwrap().name.clone();
        let holder = Holder::lease(&namespace(), lease);
        let command: Command = match act(&name) {
            true => Complete { holder, result: Payload::from(format!("{name:?}").as_str()) }.into(),
            false => Fail { holder, message: "x".into(), retryable: false, result: Default::default() }.into(),
        };
        self.tables.run(self.now, vec![command]).remove(0).unwrap();
    }

    /// Decides some of the turns there are, some of them twice.
    fn plan_some(&mut self, dice: &mut Dice) {
        let turns = self.tables.records.values().filter(|record| *record.key.kind == *Turn::KIND);
        let turns: Vec<Turn> = turns.map(|record| serde_json::from_str(&record.value).unwrap()).collect();
        for turn in turns {
            if dice.one_in(3) {
                continue;
            }
            let advance = self.decide(&turn);
            self.turns += 1;
            let times = if dice.one_in(5) { 2 } else { 1 };
            for _ in 0..times {
                self.tables.run(self.now, vec![advance.clone().into()]).remove(0).unwrap();
            }
        }
    }

    fn decide(&mut self, turn: &Turn) -> Advance {
        let mut drawn = self.drawn;
        let mut advance = Advance { namespace: namespace(), run: id(), moves: Vec::new(), undo: None, strict: false };
        match turn.job {
            Some(job) => {
                let row = self.tables.jobs[&key(job)].clone();
                let node = row.spec.node.clone().unwrap();
                let hold = row.live.hold.expect("a turn is of a step that is held");
                let asked = StepTurn { name: &node.name, job, gathers: hold == Hold::Members };
                let facts = self.facts(&row, asked);
                advance.moves.push((
                    job,
                    hold,
                    self.plan.decide(asked, &facts, &mut ids(&mut drawn), &Meter::default()),
                ));
            }
            None => {
                let done = self.tables.jobs.values().filter(|job| job.state == State::Completed);
                let done = done.map(|job| Done {
                    name: job.spec.node.as_ref().unwrap().name.to_string(),
                    job: job.key.id,
                    at: job.live.finished_at.unwrap(),
                });
                advance.undo =
                    Some(self.plan.undo(&done.collect::<Vec<_>>(), &mut ids(&mut drawn), &Meter::default()).unwrap());
            }
        }
        self.drawn = drawn;
        advance
    }

    fn facts(&mut self, job: &Job, asked: StepTurn) -> Facts {
        let mut facts = Facts::default();
        if let Some(of) = job.spec.stage.of {
            facts.of = (value(self.tables.payloads.get(&key(of))), value(self.tables.results.get(&key(of))));
            self.facts += 1;
        }
        let others = match asked.gathers {
            true => plan::members(&value(self.tables.payloads.get(&job.key))),
            false => job.spec.parents.clone(),
        };
        for other in others {
            let row = &self.tables.jobs[&key(other)];
            let name = row.spec.node.as_ref().unwrap().name.to_string();
            let needless = row.live.outcome.as_ref().is_some_and(|outcome| outcome.reason == Reason::NotNeeded);
            let output = match self.plan.wants(asked, &name) {
                true => value(self.tables.results.get(&key(other))),
                false => Value::Null,
            };
            let failure = row.state != State::Completed && !needless;
            facts.others.push(Fact { name, state: row.state, failure, output });
            self.facts += 1;
        }
        facts
    }
}

fn ids(drawn: &mut u128) -> impl FnMut() -> JobId {
    move || {
        *drawn += 1;
        JobId::from_u128(*drawn)
    }
}

/// Where turns lie.
#[test]
fn turns_lie_where_planners_look() {
    let world = World::start("steps: {a: {if: 'true'}}", Value::Null);
    assert!(
        world.tables.records.keys().any(|key| *key.kind == *Turn::KIND && key.namespace == stage::system_namespace())
    );
}
