//! The turn after the acquire jobs: which entities the run is about, their locks, and the steps.

use super::{
    context, read,
    read::{Made, Member},
    row::Status,
    steps,
    submit::staged,
    turn::{Act, Turn, fail},
    waiting,
};
use crate::{
    dialects::neops::{entities, locks},
    problem::Problem,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use windlass_core::{JobId, Payload, State, commands::advance::Move, policy::ParentPolicy};
use windlass_plan::neops::{
    acquire::{Acquire, By},
    reference::EntityType,
    updates::Key,
};

/// By step.
type Clauses = Vec<Vec<Acquire>>;
type Found = BTreeMap<EntityType, BTreeSet<u64>>;

pub async fn begin(turn: &Turn<'_>) -> Result<Act, Problem> {
    if turn.row.is_failing() {
        return failed(turn, "the run was aborted").await;
    }
    let clauses = match acquired(turn).await? {
        Ok(clauses) => clauses,
        Err(why) => return failed(turn, &why).await,
    };
    let found = match resolve(turn, &clauses).await? {
        Ok(found) => found,
        Err(why) => return failed(turn, &why).await,
    };
    let keys: Vec<Key> = found.iter().flat_map(|(entity, ids)| ids.iter().map(|id| (*entity, *id))).collect();
    if let Some(not_yet) = wait(turn, &keys).await? {
        return Ok(not_yet);
    }
    go(turn, &found, keys, clauses).await
}

/// Nothing has been done yet, so nothing has to be undone.
async fn failed(turn: &Turn<'_>, why: &str) -> Result<Act, Problem> {
    let (mut row, now) = (turn.row.clone(), turn.neops.engine.now().await?);
    row.fail("acquire_failed", why);
    row.end(Status::FailedSafeAck, now);
    Ok(Act::with(row, Vec::new(), fail(why)))
}

/// The clauses of the document and of the acquire jobs, by step; the last are those of the whole workflow.
async fn acquired(turn: &Turn<'_>) -> Result<Result<Clauses, String>, Problem> {
    let ids = turn.job.map(|job| job.spec.parents.clone()).unwrap_or_default();
    let jobs = read::last(turn.neops, &ids).await?;
    let in_order: Vec<_> = ids.iter().filter_map(|id| jobs.get(id).map(|(job, _)| job)).collect();
    let broken = |job: &&windlass_core::Job| job.state != State::Completed;
    // Those that were cancelled were so because of the one that failed.
    let first = in_order.iter().copied().filter(broken).min_by_key(|job| job.state == State::Cancelled);
    if let Some(job) = first {
        let label = job.spec.name.as_deref().unwrap_or_default();
        return Ok(Err(read::failure(job, label).1));
    }
    let results = match read::results(turn.neops, &in_order).await? {
        Ok(results) => results,
        Err(why) => return Ok(Err(why)),
    };
    let mut all = Vec::new();
    // Parents come sorted, steps do not: the node's name has the number of its step.
    for (at, step) in turn.plan.course.steps.iter().enumerate() {
        let name = format!("acquire.{at}");
        let job = in_order.iter().find(|job| job.spec.node.as_ref().is_some_and(|node| *node.name == *name));
        let told = job.and_then(|job| results.get(&job.key.id)).and_then(|result| result.get("acquires"));
        let mut clauses = step.acquire.clone();
        for (index, value) in told.and_then(Value::as_array).into_iter().flatten().enumerate() {
            match Acquire::read(value, &format!("acquires[{index}]")) {
                Ok(clause) => clauses.push(clause),
                Err(faults) => {
                    let first = faults.first().map(|fault| format!("{}: {}", fault.place, fault.text));
                    return Ok(Err(format!("step {}: {}", step.label, first.unwrap_or_default())));
                }
            }
        }
        all.push(clauses);
    }
    all.push(turn.plan.course.acquire.clone());
    Ok(Ok(all))
}

async fn resolve(turn: &Turn<'_>, clauses: &[Vec<Acquire>]) -> Result<Result<Found, String>, Problem> {
    let (seed, ids) = (turn.plan.course.seed, &turn.plan.bundle.ids);
    let mut found = Found::new();
    if !matches!(seed, EntityType::Global | EntityType::Client) {
        found.entry(seed).or_default().extend(ids);
    }
    for clause in clauses.iter().flatten() {
        let new: BTreeSet<u64> = match &clause.by {
            By::Expansion { from_seed } => {
                let from: Vec<u64> = match from_seed {
                    true => ids.clone(),
                    false => found.get(&seed).into_iter().flatten().copied().collect(),
                };
                entities::expand(turn.neops, seed, &from, clause.entity).await?
            }
            By::Elastic { .. } => BTreeSet::new(),
            // About what is there already; whether anything is left is seen by the steps.
            By::Context { .. } | By::Reference { .. } => found.get(&clause.entity).cloned().unwrap_or_default(),
        };
        if clause.not_empty && new.is_empty() {
            return Ok(Err(format!("an acquire clause found no {}, and it must", clause.entity.as_str())));
        }
        found.entry(clause.entity).or_default().extend(new);
    }
    Ok(Ok(found))
}

/// Notes that it waits, where somebody else holds one of its locks. Looked at again after that, so that nothing is missed.
async fn wait(turn: &Turn<'_>, keys: &[Key]) -> Result<Option<Act>, Problem> {
    let Some((lock, _)) = locks::held(turn.neops, turn.run, keys).await? else { return Ok(None) };
    let Some(job) = turn.job else { return Ok(None) };
    waiting::note(turn.neops, &lock, turn.run, job.key.id).await?;
    let Some((lock, holder)) = locks::held(turn.neops, turn.run, keys).await? else { return Ok(None) };
    let note = format!("waits for {lock}, which run {holder} holds");
    if turn.row.retry_note.as_deref() != Some(&note)
        && let Some(kept) = super::row::find(turn.neops, turn.run).await?
        && !kept.value.is_failing()
    {
        let (mut row, now) = (kept.value.clone(), turn.neops.engine.now().await?);
        (row.status, row.retry_note) = (Status::Locking, Some(note));
        // Whoever was faster says more.
        drop(
            turn.neops
                .engine
                .run(windlass_core::commands::all::All { commands: row.put(turn.neops, kept.unchanged(), now) })
                .await,
        );
    }
    Ok(Some(Act::NotYet))
}

async fn go(turn: &Turn<'_>, found: &Found, keys: Vec<Key>, clauses: Vec<Vec<Acquire>>) -> Result<Act, Problem> {
    let mut row = turn.row.clone();
    let mut lists = context::empty();
    for (entity, list) in
        [(EntityType::Device, "devices"), (EntityType::Group, "deviceGroups"), (EntityType::Interface, "interfaces")]
    {
        let ids: Vec<u64> = found.get(&entity).into_iter().flatten().copied().collect();
        lists[list] = entities::get_many(turn.neops, entity, &ids).await?.into_values().collect();
    }
    let mut also = locks::take(turn.run, &keys);
    row.has_context = !keys.is_empty();
    if row.has_context {
        match context::keep(turn.run, &lists) {
            Ok(records) => also.extend(records),
            Err(why) => return failed(turn, &why).await,
        }
    }
    also.extend(steps::keep_clauses(turn.run, &clauses));
    row.held = keys.iter().map(|(entity, id)| (entity.as_str().to_owned(), *id)).collect();
    (row.status, row.retry_note, row.started_at) = (Status::Running, None, Some(turn.neops.engine.now().await?));
    let owner = turn.job.and_then(|job| job.spec.owner.clone());
    let (mut nodes, mut members) = (Vec::new(), Vec::new());
    let mut before: Option<Arc<str>> = None;
    for (at, block) in turn.plan.bundle.blocks.iter().enumerate() {
        let needs: Vec<Arc<str>> = before.take().into_iter().collect();
        let direct = match at {
            // One that is all there is needs no turn of its own.
            0 if turn.plan.bundle.blocks.len() == 1 && block.on() == EntityType::Global => {
                steps::first(turn, &row, &lists, owner.clone()).await?
            }
            _ => None,
        };
        let mut node = direct.unwrap_or_else(|| staged(format!("step.{at}"), needs, ParentPolicy::RunAnyway));
        node.job.stage.of = turn.job.map(|job| job.key.id);
        members.push(Member(node.job.id, None));
        before = Some(node.name.clone());
        nodes.push(node);
    }
    let payload = payload(&Made { members });
    Ok(Act::with(row, also, Move::Expand { nodes, payload }))
}

pub fn payload(made: &Made) -> Payload {
    Payload::from(serde_json::to_string(made).expect("plain data").as_str())
}

/// The step's own node, or the work itself where a step is one piece of work that was made at once.
pub fn node_of(made: &Made, at: usize) -> Option<JobId> {
    made.members.get(at).map(|member| member.0)
}
