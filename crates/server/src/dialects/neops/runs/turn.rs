//! Decides turns of runs. Each decision is one transaction: the run's record, what else is written, and what becomes of the step.

use super::{
    begin, bundle,
    bundle::Plan,
    end, lanes, ledger, read,
    row::{self, Row, Status},
    steps, waiting,
};
use crate::{
    dialects::neops::{Neops, namespace},
    flows,
    planned::{Decided, Unit},
    problem::{Code, Problem},
};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Command, Job, JobId, JobKey, Refusal, RunId, Timestamp,
    commands::{
        advance::{Advance, Move},
        all::All,
        submit_run::RunNode,
    },
    stage::Hold,
};
use windlass_engine::{Error, records::Kept};

/// How often a decision is taken again that others were faster than.
const TRIES: usize = 10;

/// A turn, and what it is decided on.
pub struct Turn<'a> {
    pub neops: &'a Neops,
    /// Of the run that callers know.
    pub run: Uuid,
    pub plan: Arc<Plan>,
    pub row: Row,
    pub job: Option<&'a Job>,
}

/// What was decided.
pub enum Act {
    /// The run's record as it is from now on, what else is written, and what becomes of the step.
    Go {
        row: Option<Box<Row>>,
        also: Vec<Command>,
        wanted: Wanted,
        freed: bool,
    },
    NotYet,
}

pub enum Wanted {
    Step(Move),
    Undo(Vec<RunNode>),
}

impl Act {
    pub fn step(wanted: Move) -> Self {
        Act::Go { row: None, also: Vec::new(), wanted: Wanted::Step(wanted), freed: false }
    }

    /// The same, and the run's record says more.
    pub fn with(row: Row, also: Vec<Command>, wanted: Move) -> Self {
        Act::Go { row: Some(Box::new(row)), also, wanted: Wanted::Step(wanted), freed: false }
    }

    pub fn frees(self) -> Self {
        match self {
            Act::Go { row, also, wanted, .. } => Act::Go { row, also, wanted, freed: true },
            not_yet => not_yet,
        }
    }
}

pub fn fail(why: impl Into<Arc<str>>) -> Move {
    Move::Fail { why: why.into() }
}

pub async fn decide(neops: Neops, unit: Unit) -> Result<Decided, Problem> {
    let (mut plan, mut done) = (None, 0);
    for turn in &unit.jobs {
        let plan = match &plan {
            Some(plan) => Arc::clone(plan),
            None => Arc::clone(plan.insert(load(&neops, unit.run).await?)),
        };
        match one(&neops, unit.run, &plan, *turn).await? {
            Some(true) => done += 1,
            Some(false) => {}
            None => return Ok(Decided::NotYet),
        }
    }
    Ok(Decided::Turns(done))
}

pub async fn load(neops: &Neops, run: RunId) -> Result<Arc<Plan>, Problem> {
    if let Some(plan) = neops.own.plans.lock().get(&run) {
        return Ok(plan);
    }
    let plan = Arc::new(bundle::load(neops, run).await?);
    neops.own.plans.lock().put(run, plan.clone(), 1);
    Ok(plan)
}

async fn job_in(neops: &Neops, turn: Option<JobId>) -> Result<Option<Job>, Problem> {
    match turn {
        Some(id) => Ok(neops.engine.store().job(&JobKey::new(&namespace(), id)).await?),
        None => Ok(None),
    }
}

/// None: not yet. False: it was nobody's turn.
async fn one(neops: &Neops, run: RunId, plan: &Arc<Plan>, turn: Option<JobId>) -> Result<Option<bool>, Problem> {
    for _ in 0..TRIES {
        let known = plan.bundle.remedy.unwrap_or(run.0);
        let (job, kept) = tokio::try_join!(job_in(neops, turn), row::look(neops, known))?;
        let hold = match turn {
            Some(_) => flows::in_turn(job.as_ref()),
            None => Some(Hold::Plan),
        };
        let Some(hold) = hold else { return Ok(Some(false)) };
        let Some(kept) = kept else {
            let gone = Act::step(fail("what is known of the run is gone"));
            return apply(neops, run, (turn, hold), None, gone).await.map(|_| Some(true));
        };
        let acted = match &job {
            Some(job) if job.state.is_final() => Act::step(fail("its turn is over")),
            None if turn.is_some() => Act::step(fail("its turn is over")),
            _ => {
                let asked = Turn { neops, run: known, plan: plan.clone(), row: kept.value.clone(), job: job.as_ref() };
                match asked.decide(hold).await {
                    Err(problem) if !read::passes(&problem) => asked.broken(hold, &problem).await?,
                    acted => acted?,
                }
            }
        };
        if matches!(acted, Act::NotYet) {
            return Ok(None);
        }
        if apply(neops, run, (turn, hold), Some(&kept), acted).await? {
            return Ok(Some(true));
        }
    }
    Err(Problem::new(Code::Unavailable, "others were faster each time").retry_after(500))
}

impl Turn<'_> {
    async fn decide(&self, hold: Hold) -> Result<Act, Problem> {
        let Some(node) = self.job.and_then(|job| job.spec.node.as_ref()) else { return self.undo().await };
        let parts: Vec<&str> = node.name.split('.').collect();
        match (parts.as_slice(), hold) {
            ([super::submit::MAIN], Hold::Plan) => begin::begin(self).await,
            ([super::submit::MAIN], _) => end::end(self).await,
            (["step", at], Hold::Plan) => steps::begin(self, number(at)).await,
            (["step", at], _) => steps::gather(self, number(at)).await,
            (["lanes", at], Hold::Plan) => lanes::begin(self, number(at)).await,
            (["lanes", at], _) => lanes::join(self, number(at)).await,
            (["lane", at, entity], Hold::Plan) => lanes::step(self, number(at), number(entity) as u64).await,
            (["lane", at, entity], _) => lanes::gather(self, number(at), number(entity) as u64).await,
            (["wave", at], Hold::Plan) => end::wave(self, number(at)).await,
            (["wave", _], _) => end::waved(self).await,
            (["end"], _) if self.plan.bundle.remedy.is_some() => ledger::remedied(self).await,
            (["end"], _) => end::rolled_back(self).await,
            _ => Ok(Act::step(fail("the run has no such step"))),
        }
    }

    async fn undo(&self) -> Result<Act, Problem> {
        let undo = end::waves(self).await?;
        Ok(Act::Go { row: None, also: Vec::new(), wanted: Wanted::Undo(undo), freed: false })
    }

    /// What cannot be worked out, through whatever fault of its own, fails the run.
    async fn broken(&self, hold: Hold, problem: &Problem) -> Result<Act, Problem> {
        tracing::warn!(run = %self.run, problem = %problem.0, "a turn of a run went wrong");
        Ok(failed(self.row.clone(), self.job, hold, &problem.0.to_string(), self.neops.engine.now().await?))
    }
}

/// Fails the run of a turn that could not be decided.
fn failed(row: Row, job: Option<&Job>, hold: Hold, why: &str, now: Timestamp) -> Act {
    let row = given_up(row, job, hold, why, now);
    let wanted = match job {
        Some(_) => Wanted::Step(fail(why)),
        None => Wanted::Undo(Vec::new()),
    };
    Act::Go { row: Some(Box::new(row)), also: Vec::new(), wanted, freed: false }
}

/// Turns that ended their server while they were decided. The plan is not read: reading it may be what did.
pub async fn give_up(neops: Neops, unit: Unit, why: Arc<str>) -> Result<(), Problem> {
    for turn in unit.jobs {
        let (job, kept) = tokio::try_join!(job_in(&neops, turn), row::look(&neops, unit.run.0))?;
        let hold = if turn.is_some() { flows::in_turn(job.as_ref()) } else { Some(Hold::Plan) };
        let Some(hold) = hold else { continue };
        let acted = match &kept {
            Some(kept) => failed(kept.value.clone(), job.as_ref(), hold, &why, neops.engine.now().await?),
            // What is done by hand about a run has no record of its own.
            None => {
                let wanted = if turn.is_some() { Wanted::Step(fail(why.clone())) } else { Wanted::Undo(Vec::new()) };
                Act::Go { row: None, also: Vec::new(), wanted, freed: false }
            }
        };
        if !apply(&neops, unit.run, (turn, hold), kept.as_ref(), acted).await? {
            return Err(Problem::new(Code::Unavailable, "the run was changed meanwhile").retry_after(500));
        }
    }
    Ok(())
}

/// A run of which a turn could not be decided. Before its steps nothing was done; after them nobody knows what to undo.
fn given_up(mut row: Row, job: Option<&Job>, hold: Hold, why: &str, now: Timestamp) -> Row {
    row.fail("engine_error", why);
    let name = job.and_then(|job| job.spec.node.as_ref()).map(|node| &*node.name);
    match name {
        Some(super::submit::MAIN) if hold == Hold::Plan => row.end(Status::FailedSafeAck, now),
        Some(super::submit::MAIN | "end") | None if !row.status.is_final() => {
            row.unsafe_cause = Some("engine_fault".into());
            row.end(Status::FailedUnsafeAck, now);
        }
        _ => {}
    }
    row
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or(usize::MAX)
}

/// False: somebody changed what it was decided on.
async fn apply(
    neops: &Neops,
    run: RunId,
    (turn, hold): (Option<JobId>, Hold),
    kept: Option<&Kept<Row>>,
    act: Act,
) -> Result<bool, Problem> {
    let Act::Go { row, also, wanted, freed } = act else { return Ok(true) };
    let now = neops.engine.now().await?;
    let mut commands: Vec<Command> = Vec::new();
    let expect = kept.map(Kept::unchanged);
    if let (Some(mut row), Some(expect)) = (row.clone(), expect) {
        commands.append(&mut row.put(neops, expect, now));
    }
    commands.extend(also);
    let (moves, undo) = match wanted {
        Wanted::Step(wanted) => (turn.map(|id| (id, hold, wanted)).into_iter().collect(), None),
        Wanted::Undo(nodes) => (Vec::new(), Some(nodes)),
    };
    commands.push(Advance { namespace: namespace(), run, moves, undo, strict: false }.into());
    match neops.engine.run(All { commands }).await {
        Ok(_) => {
            if freed {
                waiting::call(neops, kept.map(|kept| kept.value.held.clone()).unwrap_or_default()).await;
            }
            Ok(true)
        }
        Err(Error::Refused(Refusal::VersionMismatch { .. } | Refusal::Exists { .. } | Refusal::NotFound { .. })) => {
            Ok(false)
        }
        Err(Error::Refused(refusal)) => refused(neops, run, (turn, hold), kept, &refusal).await,
        Err(error) => Err(error.into()),
    }
}

/// What the rules do not take, a run that got too many jobs, fails the run.
async fn refused(
    neops: &Neops,
    run: RunId,
    (turn, hold): (Option<JobId>, Hold),
    kept: Option<&Kept<Row>>,
    refusal: &Refusal,
) -> Result<bool, Problem> {
    tracing::warn!(%run, %refusal, "what was planned was refused");
    let mut commands: Vec<Command> = Vec::new();
    if let Some(kept) = kept {
        let now = neops.engine.now().await?;
        let job = job_in(neops, turn).await?;
        let mut row = given_up(kept.value.clone(), job.as_ref(), hold, &refusal.to_string(), now);
        commands.append(&mut row.put(neops, kept.unchanged(), now));
    }
    let moves = turn.map(|id| (id, hold, fail(refusal.to_string()))).into_iter().collect();
    let undo = turn.is_none().then(Vec::new);
    commands.push(Advance { namespace: namespace(), run, moves, undo, strict: false }.into());
    neops.engine.run(All { commands }).await?;
    Ok(true)
}
