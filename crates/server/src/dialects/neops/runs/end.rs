//! The end of a run: completed, or classified and perhaps rolled back.

use super::{
    begin::payload,
    context, ledger, read,
    read::{Made, Member},
    row::Status,
    steps,
    submit::{staged, work},
    turn::{Act, Turn, fail},
};
use crate::{
    dialects::neops::{Neops, blocks, entities, job, job::JobBrief, locks, namespace},
    flows,
    problem::Problem,
};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use windlass_api::Uuid;
use windlass_core::{
    Job, JobId, JobKey, Payload, RunId, State,
    commands::{advance::Move, submit_run::RunNode},
    policy::ParentPolicy,
};
use windlass_engine::ids;
use windlass_plan::neops::{
    reference::{EntityType, Reference},
    undo::{Ran, Verdict, classify},
    updates::Update,
};

/// All steps have ended.
pub async fn end(turn: &Turn<'_>) -> Result<Act, Problem> {
    let (mut row, mut also) = (turn.row.clone(), Vec::new());
    let mut fresh = Vec::new();
    if let Some(job) = direct(turn).await? {
        match steps::came_of_jobs(turn, 0, &[&job]).await? {
            Ok(updates) => {
                also = steps::keep(&mut row, updates.clone());
                let value = serde_json::json!({"updates": updates});
                fresh = Update::read_all(&value, "dbUpdates").unwrap_or_default();
            }
            Err((code, why)) => row.fail(code, &why),
        }
    } else if !row.is_failing() && was_cut(turn).await? {
        row.fail("aborted", "a step was cancelled");
    }
    let now = turn.neops.engine.now().await?;
    if row.is_failing() {
        return classified(turn, row, also).await;
    }
    let mut updates = match turn.row.context {
        0 => Vec::new(),
        version => context::updates(turn.neops, turn.run, version).await?,
    };
    updates.extend(fresh);
    also.extend(entities::apply(turn.neops, &updates).await?);
    also.extend(locks::release(&row.locks()));
    row.end(Status::CompletedAck, now);
    Ok(Act::with(row, also, Move::Complete { result: Payload::default() }).frees())
}

/// Whether somebody ended a step that had not come to its own end.
async fn was_cut(turn: &Turn<'_>) -> Result<bool, Problem> {
    let Some(main) = turn.job else { return Ok(false) };
    let nodes: Vec<JobId> = read::made(turn.neops, main.key.id).await?.members.iter().map(|member| member.0).collect();
    let jobs = read::last(turn.neops, &nodes).await?;
    Ok(jobs.values().any(|(job, _)| !matches!(job.state, State::Completed | State::Skipped)))
}

/// The last try of the only step, where that is work itself and has no turn of its own.
async fn direct(turn: &Turn<'_>) -> Result<Option<Job>, Problem> {
    let is_one = matches!(turn.plan.bundle.blocks.as_slice(), [only] if only.on() == EntityType::Global);
    let Some(main) = turn.job.filter(|_| is_one) else { return Ok(None) };
    let all = flows::jobs(turn.neops, &namespace(), RunId(turn.run)).await?;
    let of_main = |job: &Job| job.spec.stage.of == Some(main.key.id) && !job.spec.stage.plan;
    // Work of a step with a turn of its own belongs to that step.
    Ok(all.into_iter().filter(of_main).find(|job| job.live.retry_job.is_none()))
}

/// A piece of work, as the rules for undoing see it, as it is kept, and as workers saw it.
pub type Done = (Ran<JobId>, Job, JobBrief);

/// What was done so far, each once: by the last of its tries.
pub async fn ran(turn: &Turn<'_>) -> Result<Vec<Done>, Problem> {
    let all = flows::jobs(turn.neops, &namespace(), RunId(turn.run)).await?;
    let by_id: HashMap<JobId, &Job> = all.iter().map(|job| (job.key.id, job)).collect();
    let claimed = |job: &Job| {
        let mut at = Some(job);
        while let Some(job) = at {
            if job.live.attempt > 0 {
                return true;
            }
            at = job.spec.retry_of.and_then(|before| by_id.get(&before).copied());
        }
        false
    };
    let one = |job: &Job| {
        let told = JobBrief::of(job).filter(|told| told.kind == job::Type::Execute)?;
        let step = turn.plan.course.steps.iter().position(|step| step.label == told.label)?;
        let block = &turn.plan.bundle.blocks[step];
        let (pure, reversible) = (block.pure, block.reversible);
        let ran = Ran { job: job.key.id, step, claimed: claimed(job), pure, reversible };
        job.live.retry_job.is_none().then(|| (ran, job.clone(), told))
    };
    let mut found: Vec<_> = all.iter().filter_map(one).collect();
    found.sort_by_key(|(ran, job, _)| (ran.step, job.key.id));
    Ok(found)
}

fn verdict(ran: &[Done]) -> Verdict<JobId> {
    classify(&ran.iter().map(|(ran, ..)| ran.clone()).collect::<Vec<_>>())
}

async fn classified(
    turn: &Turn<'_>,
    mut row: super::row::Row,
    mut also: Vec<windlass_core::Command>,
) -> Result<Act, Problem> {
    let (now, ran) = (turn.neops.engine.now().await?, ran(turn).await?);
    let why = row.reason.as_ref().map(|(_, why)| why.clone()).unwrap_or_default();
    match verdict(&ran) {
        Verdict::Safe => {
            also.extend(locks::release(&row.locks()));
            row.end(Status::FailedSafeAck, now);
            Ok(Act::with(row, also, fail(why)).frees())
        }
        Verdict::RollBack(_) => {
            row.status = Status::Rollback;
            Ok(Act::with(row, also, fail(why)))
        }
        Verdict::Blocked => {
            row.unsafe_cause = Some("rollback_blocked".into());
            row.end(Status::FailedUnsafeAck, now);
            also.extend(ledger::keep(turn.run, &ledger::entries(turn, &ran, &HashMap::new())));
            Ok(Act::with(row, also, fail(why)))
        }
    }
}

/// Of a run that cannot roll back by itself any more: what was done is left to people.
pub async fn cut_off(
    turn: &Turn<'_>,
    mut row: super::row::Row,
) -> Result<(super::row::Row, Vec<windlass_core::Command>), Problem> {
    let (now, ran) = (turn.neops.engine.now().await?, ran(turn).await?);
    if verdict(&ran) == Verdict::Safe {
        let also = locks::release(&row.locks());
        row.end(Status::FailedSafeAck, now);
        return Ok((row, also));
    }
    let entries = ledger::entries(turn, &ran, &ledger::undone(turn).await?);
    row.unsafe_cause = Some("rollback_blocked".into());
    row.end(Status::FailedUnsafeAck, now);
    Ok((row, ledger::keep(turn.run, &entries)))
}

async fn waves_of(turn: &Turn<'_>) -> Result<Vec<Vec<JobId>>, Problem> {
    match verdict(&ran(turn).await?) {
        Verdict::RollBack(waves) => Ok(waves),
        Verdict::Safe | Verdict::Blocked => Ok(Vec::new()),
    }
}

/// What undoes the run: a step for each wave, each behind the one before, and one that looks at what came of them.
pub async fn waves(turn: &Turn<'_>) -> Result<Vec<RunNode>, Problem> {
    if turn.row.status != Status::Rollback {
        return Ok(Vec::new());
    }
    let mut nodes: Vec<RunNode> = Vec::new();
    let mut before: Vec<Arc<str>> = Vec::new();
    for at in 0..waves_of(turn).await?.len() {
        let node = staged(format!("wave.{at}"), std::mem::take(&mut before), ParentPolicy::Skip);
        before = vec![node.name.clone()];
        nodes.push(node);
    }
    let all = nodes.iter().map(|node| node.name.clone()).collect();
    nodes.push(staged("end".into(), all, ParentPolicy::RunAnyway));
    Ok(nodes)
}

/// The rollback jobs of one wave.
pub async fn wave(turn: &Turn<'_>, at: usize) -> Result<Act, Problem> {
    let wave = waves_of(turn).await?.into_iter().nth(at).unwrap_or_default();
    let (mut nodes, mut members) = (Vec::new(), Vec::new());
    for id in wave {
        match undo(turn.neops, turn.run, id, format!("wave.{at}.{}", nodes.len())).await? {
            Some(mut node) => {
                node.job.stage.of = turn.job.map(|job| job.key.id);
                members.push(Member(node.job.id, None));
                nodes.push(node);
            }
            None => return Ok(Act::step(fail("what is to be rolled back is gone"))),
        }
    }
    if nodes.is_empty() {
        return Ok(Act::step(Move::Complete { result: Payload::default() }));
    }
    Ok(Act::step(Move::Expand { nodes, payload: payload(&Made { members }) }))
}

/// A job that undoes another: with the same parameters, context and entity.
pub async fn undo(neops: &Neops, run: Uuid, done: JobId, name: String) -> Result<Option<RunNode>, Problem> {
    let store = neops.engine.store();
    let key = JobKey::new(&namespace(), done);
    let (Some(job), Some(body)) = (store.job(&key).await?, store.body(&key).await?) else { return Ok(None) };
    let Some(told) = JobBrief::of(&job) else { return Ok(None) };
    let Some(reference) = Reference::parse(&told.block) else { return Ok(None) };
    let Some(block) = blocks::resolve(neops, &reference).await? else { return Ok(None) };
    let parameters: Value = serde_json::from_slice(body.payload.as_bytes()).unwrap_or_default();
    let shape = job::Shape {
        id: ids::job_id(),
        run,
        kind: job::Type::Rollback,
        block: &block,
        label: &told.label,
        run_on: EntityType::parse(&told.on).unwrap_or(EntityType::Global),
        entity: told.entity,
        parameters: &parameters,
        context: told.context,
        lane: told.lane,
    };
    Ok(Some(work(neops, name, &shape, job.spec.owner.clone())))
}

/// The jobs of a wave have ended.
pub async fn waved(turn: &Turn<'_>) -> Result<Act, Problem> {
    let Some(job) = turn.job else { return Ok(Act::step(fail("its turn is over"))) };
    let ids: Vec<JobId> = read::made(turn.neops, job.key.id).await?.members.iter().map(|member| member.0).collect();
    let jobs = read::last(turn.neops, &ids).await?;
    let done = ids.iter().all(|id| jobs.get(id).is_some_and(|(job, _)| job.state == State::Completed));
    Ok(Act::step(if done { Move::Complete { result: Payload::default() } } else { fail("it was not rolled back") }))
}

/// All waves have ended, or were not needed any more.
pub async fn rolled_back(turn: &Turn<'_>) -> Result<Act, Problem> {
    let waves = turn.job.map(|job| job.spec.parents.clone()).unwrap_or_default();
    let jobs = read::last(turn.neops, &waves).await?;
    let done = waves.iter().all(|id| jobs.get(id).is_some_and(|(job, _)| job.state == State::Completed));
    let (mut row, now) = (turn.row.clone(), turn.neops.engine.now().await?);
    let ran = ran(turn).await?;
    let entries = ledger::entries(turn, &ran, &ledger::undone(turn).await?);
    let mut also = ledger::keep(turn.run, &entries);
    let over = Move::Complete { result: Payload::default() };
    if done {
        also.extend(locks::release(&row.locks()));
        row.end(Status::FailedSafeAck, now);
        return Ok(Act::with(row, also, over).frees());
    }
    row.unsafe_cause = Some("rollback_failed".into());
    row.end(Status::FailedUnsafeAck, now);
    Ok(Act::with(row, also, over))
}
