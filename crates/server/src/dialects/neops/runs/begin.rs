//! The turn after the acquire jobs: which entities the run is about, their locks, and the steps.

use super::{
    context, lanes, read,
    read::{Made, Member},
    row::Status,
    steps,
    submit::staged,
    turn::{Act, Turn, fail},
    waiting,
};
use crate::{
    dialects::neops::{entities, locks, namespace},
    problem::Problem,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use windlass_core::{
    Command, JobId, Payload, State,
    commands::{advance::Move, submit_run::RunNode},
    policy::ParentPolicy,
};
use windlass_plan::{
    Meter,
    neops::{
        acquire::{self, Acquire, By, Filters},
        entity::KEPT,
        expression,
        lanes::Stretch,
        reference::EntityType,
        step::World,
        template,
        updates::Key,
    },
};

/// Names that expressions may use before any step has run.
const EARLY: [&str; 2] = ["parameters", "context"];

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
    let acquires = read::acquires(turn.neops, &in_order).await?;
    let mut all = Vec::new();
    // Parents come sorted, steps do not: the node's name has the number of its step.
    for (at, step) in turn.plan.course.steps.iter().enumerate() {
        let name = format!("acquire.{at}");
        let job = in_order.iter().find(|job| job.spec.node.as_ref().is_some_and(|node| *node.name == *name));
        let told = job.and_then(|job| acquires.get(&job.key.id));
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
    // What each step acquired by clauses of its own.
    let mut own = vec![Found::new(); clauses.len()];
    let each = clauses.iter().enumerate().flat_map(|(at, some)| some.iter().map(move |clause| (at, clause)));
    for (at, clause) in each.collect::<Vec<_>>() {
        let new: BTreeSet<u64> = match &clause.by {
            By::Expansion { from_seed } => {
                let from: Vec<u64> = match from_seed {
                    true => ids.clone(),
                    false => found.get(&seed).into_iter().flatten().copied().collect(),
                };
                entities::expand(turn.neops, seed, &from, clause.entity).await?
            }
            By::Elastic { .. } => BTreeSet::new(),
            // About what is there already; what a filter leaves is seen when all are there.
            By::Context { .. } => found.get(&clause.entity).cloned().unwrap_or_default(),
            By::Reference { .. } => continue,
        };
        if clause.not_empty && new.is_empty() {
            return Ok(Err(nothing(clause)));
        }
        own[at].entry(clause.entity).or_default().extend(&new);
        found.entry(clause.entity).or_default().extend(new);
    }
    Ok(referred(turn, clauses, &own, &found).map(|()| found))
}

fn nothing(clause: &Acquire) -> String {
    format!("an acquire clause found no {}, and it must", clause.entity.as_str())
}

/// Of each step, and of the workflow itself behind them.
fn labels<'a>(turn: &'a Turn<'_>) -> Vec<&'a str> {
    let course = &turn.plan.course;
    course.steps.iter().map(|step| step.label.as_str()).chain([course.label.as_str()]).collect()
}

/// References bring no entity that is not there, but have to find some where they say so.
fn referred(turn: &Turn<'_>, clauses: &[Vec<Acquire>], own: &[Found], found: &Found) -> Result<(), String> {
    let labels = labels(turn);
    for clause in clauses.iter().flatten() {
        let By::Reference { label } = &clause.by else { continue };
        let other = acquire::place(&labels, label)?;
        // A step without clauses of its own is for all that the run is about.
        let all = own[other].get(&clause.entity).or_else(|| found.get(&clause.entity));
        if clause.not_empty && all.is_none_or(BTreeSet::is_empty) {
            return Err(nothing(clause));
        }
    }
    Ok(())
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

/// What the steps of a run see at its beginning.
struct Seen {
    filters: Filters,
    pieces: Vec<Command>,
    world: Arc<World>,
}

/// Clauses of which the filter asks for results are left to their steps.
fn is_early(filter: &str) -> bool {
    let mut names = BTreeSet::new();
    template::names(&Value::from(filter), &mut names) && names.iter().all(|name| EARLY.contains(&name.as_str()))
}

/// Whether every clause that must leave some entities does.
fn check(clauses: &[Vec<Acquire>], world: &World) -> Result<(), String> {
    let meter = Meter::new(expression::budget());
    let strict = clauses.iter().flatten().filter(|clause| clause.not_empty);
    for clause in strict.filter(|clause| matches!(&clause.by, By::Context { filter: Some(text) } if is_early(text))) {
        if world.left_by(std::slice::from_ref(clause), clause.entity, None, &meter)?.is_empty() {
            return Err(nothing(clause));
        }
    }
    Ok(())
}

/// Jobs that the run makes if everything goes its longest way. Told before anything is done, not after half of it.
fn jobs_of(turn: &Turn<'_>, found: &Found) -> usize {
    let count = |at: usize| {
        let block = &turn.plan.bundle.blocks[at];
        let entities = match block.on() {
            EntityType::Global | EntityType::Client => 1,
            on => found.get(&on).map_or(0, BTreeSet::len),
        };
        if block.pure { entities } else { 2 * entities }
    };
    let one = |stretch: Stretch| {
        let work: usize = stretch.steps.clone().map(count).sum();
        // A step of a lane has a turn of its own.
        let turns = if stretch.lanes { stretch.steps.map(count).sum() } else { 0 };
        1 + work + turns
    };
    // Beside them the acquire jobs, the waves of a rollback, and the two steps around them.
    lanes::of(turn).into_iter().map(one).sum::<usize>() + 2 * turn.plan.course.steps.len() + 2
}

async fn see(turn: &Turn<'_>, found: &Found, clauses: Vec<Vec<Acquire>>) -> Result<Result<Seen, String>, Problem> {
    let (jobs, most) = (jobs_of(turn, found), turn.neops.engine.settings().limits.nodes_max);
    if jobs > most {
        return Ok(Err(format!("the run could come to {jobs} jobs and steps; at most {most}")));
    }
    let mut lists = context::empty();
    for (entity, list) in KEPT {
        let ids: Vec<u64> = found.get(&entity).into_iter().flatten().copied().collect();
        lists[list] = entities::get_many(turn.neops, entity, &ids).await?.into_values().collect();
    }
    let (run, plan, has_context) = (turn.run, turn.plan.clone(), found.values().any(|ids| !ids.is_empty()));
    let labels: Vec<String> = labels(turn).into_iter().map(str::to_owned).collect();
    let make = move || {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let filters = acquire::filters(&clauses, &labels)?;
        let pieces = if has_context { context::keep(run, &lists)? } else { Vec::new() };
        let parameters = Value::Object(plan.bundle.parameters.clone());
        let world = Arc::new(World::new(&plan.course.label, &parameters, &lists));
        check(&clauses, &world)?;
        Ok(Seen { filters, pieces, world })
    };
    turn.neops.aside.run(&namespace(), make).await
}

async fn go(turn: &Turn<'_>, found: &Found, keys: Vec<Key>, clauses: Vec<Vec<Acquire>>) -> Result<Act, Problem> {
    let seen = match see(turn, found, clauses).await? {
        Ok(seen) => seen,
        Err(why) => return failed(turn, &why).await,
    };
    let mut row = turn.row.clone();
    let mut also = locks::take(turn.run, &keys);
    row.has_context = !keys.is_empty();
    also.extend(seen.pieces);
    also.extend(steps::keep_clauses(turn.run, &seen.filters));
    row.held = keys.iter().map(|(entity, id)| (entity.as_str().to_owned(), *id)).collect();
    (row.status, row.retry_note, row.started_at) = (Status::Running, None, Some(turn.neops.engine.now().await?));
    let owner = turn.job.and_then(|job| job.spec.owner.clone());
    let (mut nodes, mut members): (Vec<RunNode>, Vec<Member>) = (Vec::new(), Vec::new());
    let blocks = &turn.plan.bundle.blocks;
    for stretch in lanes::of(turn) {
        let needs: Vec<Arc<str>> = nodes.last().map(|before| before.name.clone()).into_iter().collect();
        let at = stretch.steps.start;
        // One that is all there is needs no turn of its own.
        let direct = match blocks.len() == 1 && blocks[at].on() == EntityType::Global {
            true => steps::first(turn, &row, World::clone(&seen.world), owner.clone()).await?,
            false => None,
        };
        let name = if stretch.lanes { format!("lanes.{at}") } else { format!("step.{at}") };
        let mut node = direct.unwrap_or_else(|| staged(name, needs, ParentPolicy::RunAnyway));
        node.job.stage.of = turn.job.map(|job| job.key.id);
        members.extend(stretch.steps.map(|_| Member(node.job.id, None)));
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
