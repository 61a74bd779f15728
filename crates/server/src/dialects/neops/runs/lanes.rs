//! Stretches of a run that each entity goes through by itself. A step of the whole stretch makes a lane for every entity: the
//! steps of the stretch, each behind the one before, decided for that entity alone. What its work changes is kept beside the
//! run's context until the stretch is over, seen by nobody but the lane itself.

use super::{
    begin::payload,
    context, read,
    read::{Made, Member},
    steps,
    submit::staged,
    turn::{Act, Turn, Wanted, fail},
};
use crate::{
    dialects::neops::{job, job::JobBrief, namespace},
    flows,
    problem::Problem,
};
use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
    sync::Arc,
};
use windlass_core::{JobId, JobKey, Payload, RunId, commands::advance::Move, policy::ParentPolicy};
use windlass_plan::neops::{
    lanes::{Stretch, stretches},
    step::World,
};

/// A lane, and how far on it a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The first step of its stretch.
    pub first: usize,
    pub at: usize,
    pub entity: u64,
}

/// Step, entity and job.
type Worked = (usize, u64, JobId);

pub fn of(turn: &Turn<'_>) -> Vec<Stretch> {
    let steps = turn.plan.course.steps.iter().zip(&turn.plan.bundle.blocks);
    stretches(&steps.map(|(step, block)| (step.parallel, block.on())).collect::<Vec<_>>())
}

fn stretch(turn: &Turn<'_>, at: usize) -> Range<usize> {
    let found = of(turn).into_iter().find(|stretch| stretch.steps.contains(&at));
    found.map_or(at..at + 1, |stretch| stretch.steps)
}

/// The lanes of a stretch.
pub async fn begin(turn: &Turn<'_>, first: usize) -> Result<Act, Problem> {
    if turn.row.is_failing() {
        return Ok(Act::step(Move::Skip { why: "the run failed before".into() }));
    }
    let entities = steps::base(turn).await?.entities(turn.plan.bundle.blocks[first].on());
    let (mut nodes, mut members) = (Vec::new(), Vec::new());
    for entity in entities {
        let mut before: Option<Arc<str>> = None;
        for at in stretch(turn, first) {
            let needs = before.take().into_iter().collect();
            let mut node = staged(format!("lane.{at}.{entity}"), needs, ParentPolicy::RunAnyway);
            node.job.stage.of = turn.job.map(|job| job.key.id);
            before = Some(node.name.clone());
            members.push(Member(node.job.id, Some(entity)));
            nodes.push(node);
        }
    }
    if nodes.is_empty() {
        return Ok(Act::step(Move::Skip { why: "there is nothing for it to run on".into() }));
    }
    Ok(Act::step(Move::Expand { nodes, payload: payload(&Made { members }) }))
}

/// A step of a lane.
pub async fn step(turn: &Turn<'_>, at: usize, entity: u64) -> Result<Act, Problem> {
    if turn.row.is_failing() {
        return Ok(Act::step(Move::Skip { why: "the run failed before".into() }));
    }
    steps::begin_for(turn, at, Some(Lane { first: stretch(turn, at).start, at, entity })).await
}

/// The work of a step of a lane has ended.
pub async fn gather(turn: &Turn<'_>, at: usize, entity: u64) -> Result<Act, Problem> {
    let Some(job) = turn.job else { return Ok(Act::step(fail("its turn is over"))) };
    match steps::came_of(turn, at, job.key.id).await? {
        Err((code, why)) => Ok(steps::failed(turn, code, &format!("{why} (on {entity})"))),
        Ok(updates) => {
            let lane = Lane { first: stretch(turn, at).start, at, entity };
            let also = context::keep_lane(turn.run, lane, updates);
            let wanted = Wanted::Step(Move::Complete { result: Payload::default() });
            Ok(Act::Go { row: None, also, wanted, freed: false })
        }
    }
}

/// All lanes have ended: what they changed is the run's from now on, in the order of their entities.
pub async fn join(turn: &Turn<'_>, first: usize) -> Result<Act, Problem> {
    if turn.row.is_failing() {
        return Ok(Act::step(fail("the run failed on a lane")));
    }
    let updates = match context::lanes(turn.neops, turn.run, first).await? {
        Ok(updates) => updates,
        Err(why) => return Ok(steps::failed(turn, "invalid_result", &why)),
    };
    let result = serde_json::to_string(&worked(turn, first).await?).expect("plain data");
    let wanted = Move::Complete { result: Payload::from(result.as_str()) };
    if updates.is_empty() {
        return Ok(Act::step(wanted));
    }
    let mut row = turn.row.clone();
    let also = steps::keep(&mut row, updates);
    Ok(Act::with(row, also, wanted))
}

/// All work of a stretch: the first try of each.
async fn worked(turn: &Turn<'_>, first: usize) -> Result<Vec<Worked>, Problem> {
    let steps = stretch(turn, first);
    let labels: HashMap<&str, usize> = steps.map(|at| (turn.plan.course.steps[at].label.as_str(), at)).collect();
    let all = flows::jobs(turn.neops, &namespace(), RunId(turn.run)).await?;
    let one = |job: &windlass_core::Job| {
        let told = JobBrief::of(job).filter(|told| told.kind == job::Type::Execute && job.spec.retry_of.is_none())?;
        Some((*labels.get(told.label.as_str())?, u64::try_from(told.entity?).ok()?, job.key.id))
    };
    Ok(all.iter().filter_map(one).collect())
}

/// The work that a stretch which is over did for one of its steps.
pub async fn members(turn: &Turn<'_>, node: JobId, at: usize) -> Result<Vec<Member>, Problem> {
    let body = turn.neops.engine.store().body(&JobKey::new(&namespace(), node)).await?;
    let result = body.and_then(|body| body.result);
    let all: Vec<Worked> = result.and_then(|result| serde_json::from_slice(result.as_bytes()).ok()).unwrap_or_default();
    Ok(all.into_iter().filter(|(step, ..)| *step == at).map(|(_, entity, job)| Member(job, Some(entity))).collect())
}

/// Adds what the lane did before, as far as it is asked for, to what a step of it sees.
pub async fn look_back(
    turn: &Turn<'_>,
    lane: Lane,
    wanted: &BTreeSet<usize>,
    world: &mut World,
) -> Result<Result<(), String>, Problem> {
    let Some(earliest) = wanted.first().copied() else { return Ok(Ok(())) };
    let mut node = turn.job.and_then(|job| job.spec.parents.first().copied());
    for before in (earliest..lane.at).rev() {
        let Some(id) = node else { break };
        if wanted.contains(&before) {
            match steps::gave(turn, &read::made(turn.neops, id).await?.members).await? {
                Ok(results) => {
                    world.gave(&turn.plan.course.steps[before].label, turn.plan.bundle.blocks[before].on(), &results);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
        let job = turn.neops.engine.store().job(&JobKey::new(&namespace(), id)).await?;
        node = job.and_then(|job| job.spec.parents.first().copied());
    }
    Ok(Ok(()))
}
