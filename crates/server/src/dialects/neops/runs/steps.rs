//! Steps of a run in their turns: first what work there is, then what came of it.

use super::{
    begin::{node_of, payload},
    context,
    lanes::{self, Lane},
    read,
    read::{Made, Member},
    row::Row,
    submit::work,
    turn::{Act, Turn, fail},
};
use crate::{
    dialects::neops::{
        blocks::{self, Block},
        job, namespace,
    },
    problem::Problem,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use windlass_api::Uuid;
use windlass_core::{
    Command, Job, JobId, JobKey, Payload, RecordKey, State,
    commands::{
        advance::Move,
        records::{Expect, PutRecord},
        submit_run::RunNode,
    },
    stage::OF_RUN,
};
use windlass_engine::ids;
use windlass_plan::neops::{
    acquire::{Acquire, By, Filters},
    reference::{EntityType, Reference},
    step::{self, Begun, World},
    template,
    updates::Update,
};

/// Names of results in expressions.
const WHOLE: [&str; 2] = ["steps", "results"];

fn clauses_key(run: Uuid) -> RecordKey {
    RecordKey { namespace: namespace(), kind: OF_RUN.into(), key: format!("{run}/clauses").into() }
}

/// Keeps what leaves entities out of steps, if anything does. The last filters are those of the whole workflow.
pub fn keep_clauses(run: Uuid, filters: &Filters) -> Option<Command> {
    if filters.iter().all(Vec::is_empty) {
        return None;
    }
    let put = PutRecord {
        key: clauses_key(run),
        expect: Expect::Anything,
        parent: Some(run.to_string().into()),
        value: json!(filters).to_string().into(),
        facets: Vec::new(),
        expires_at: None,
    };
    Some(put.into())
}

async fn clauses(turn: &Turn<'_>, at: usize) -> Result<Vec<Acquire>, Problem> {
    let Some(record) = turn.neops.engine.store().record(&clauses_key(turn.run)).await? else { return Ok(Vec::new()) };
    let filters: Filters = serde_json::from_str(&record.value).unwrap_or_default();
    let whole = filters.len().saturating_sub(1);
    let mine = [at, whole].into_iter().collect::<BTreeSet<_>>().into_iter().filter_map(|at| filters.get(at)).flatten();
    let clause = |(entity, filter): &(EntityType, String)| Acquire {
        entity: *entity,
        not_empty: false,
        by: By::Context { filter: Some(filter.clone()) },
    };
    Ok(mine.map(clause).collect())
}

/// As it was when the run was made, unless that was forgotten since.
async fn block(turn: &Turn<'_>, at: usize) -> Result<Option<Arc<Block>>, Problem> {
    if let Some(block) = turn.plan.blocks.get(at) {
        return Ok(Some(block.clone()));
    }
    let known = &turn.plan.bundle.blocks[at];
    match Reference::parse(&known.id) {
        Some(reference) => blocks::resolve_known(turn.neops, &reference).await,
        None => Ok(None),
    }
}

/// Work of a step, with parameters that meet the block's schema.
type Filled = Result<Vec<(Option<u64>, Value)>, Begun>;

async fn fill(
    turn: &Turn<'_>,
    at: usize,
    block: &Arc<Block>,
    clauses: Vec<Acquire>,
    world: World,
    only: Option<u64>,
) -> Result<Filled, Problem> {
    let (plan, block) = (turn.plan.clone(), block.clone());
    let made = move || {
        let step = &plan.course.steps[at];
        let work = match step::begin(step, plan.bundle.blocks[at].on(), &clauses, &world, only) {
            Begun::Work(work) => work,
            other => return Err(other),
        };
        let fill = |(entity, parameters)| match block.fill(parameters) {
            Ok(filled) => Ok((entity, filled)),
            Err(why) => Err(Begun::Fail("invalid_parameters", format!("step {}: {why}", step.label))),
        };
        work.into_iter().map(fill).collect()
    };
    turn.neops.aside.run(&namespace(), made).await
}

/// The first step as work, if that is all there is to it; what else becomes of it is said in its turn.
pub async fn first(
    turn: &Turn<'_>,
    row: &Row,
    world: World,
    owner: Option<Arc<str>>,
) -> Result<Option<RunNode>, Problem> {
    let Some(block) = block(turn, 0).await? else { return Ok(None) };
    let Ok(work) = fill(turn, 0, &block, Vec::new(), world, None).await? else { return Ok(None) };
    Ok(work.first().map(|one| piece(turn, row, (0, None), &block, one, owner)))
}

fn piece(
    turn: &Turn<'_>,
    row: &Row,
    (at, lane): (usize, Option<Lane>),
    block: &Block,
    (entity, parameters): &(Option<u64>, Value),
    owner: Option<Arc<str>>,
) -> RunNode {
    let shape = job::Shape {
        id: ids::job_id(),
        run: turn.run,
        kind: job::Type::Execute,
        block,
        label: &turn.plan.course.steps[at].label,
        run_on: turn.plan.bundle.blocks[at].on(),
        entity: entity.map(|id| id as i64),
        parameters,
        context: (row.has_context || row.context > 0).then_some(row.context),
        lane: lane.map(|lane| (lane.first, lane.at)),
    };
    let name = entity.map_or_else(|| format!("step.{at}.g"), |id| format!("step.{at}.{id}"));
    work(turn.neops, name, &shape, owner)
}

pub async fn begin(turn: &Turn<'_>, at: usize) -> Result<Act, Problem> {
    if turn.row.is_failing() {
        return Ok(Act::step(Move::Skip { why: "the run failed before".into() }));
    }
    begin_for(turn, at, None).await
}

/// The work of a step: for all its entities, or for that of a lane.
pub async fn begin_for(turn: &Turn<'_>, at: usize, lane: Option<Lane>) -> Result<Act, Problem> {
    let Some(block) = block(turn, at).await? else {
        let why = format!("Function block with id {} not found", turn.plan.bundle.blocks[at].id);
        return Ok(failed(turn, "unresolved_reference", &why));
    };
    let changed = match lane {
        Some(lane) => context::lane(turn.neops, turn.run, lane).await?,
        None => Vec::new(),
    };
    // Where nothing was changed on the lane, its jobs share the context of all.
    let sees = lane.filter(|_| !changed.is_empty());
    let world = match world(turn, at, lane, changed).await? {
        Ok(world) => world,
        Err(why) => return Ok(failed(turn, "engine_error", &why)),
    };
    let only = lane.map(|lane| lane.entity);
    let work = match fill(turn, at, &block, clauses(turn, at).await?, world, only).await? {
        Ok(work) => work,
        Err(Begun::Fail(code, why)) => return Ok(failed(turn, code, &why)),
        Err(Begun::Skip(why)) => return Ok(Act::step(Move::Skip { why: why.into() })),
        Err(Begun::Work(_)) => Vec::new(),
    };
    let owner = turn.job.and_then(|job| job.spec.owner.clone());
    let (mut nodes, mut members) = (Vec::new(), Vec::new());
    for one in &work {
        let mut node = piece(turn, &turn.row, (at, sees), &block, one, owner.clone());
        node.job.stage.of = turn.job.map(|job| job.key.id);
        members.push(Member(node.job.id, one.0));
        nodes.push(node);
    }
    Ok(Act::step(Move::Expand { nodes, payload: payload(&Made { members }) }))
}

pub fn failed(turn: &Turn<'_>, code: &str, why: &str) -> Act {
    let mut row = turn.row.clone();
    row.fail(code, why);
    Act::with(row, Vec::new(), fail(why))
}

/// The entities of a run as expressions see them, without any results. Read once for all steps that see the same.
pub async fn base(turn: &Turn<'_>) -> Result<Arc<World>, Problem> {
    let key = (turn.run, turn.row.context);
    if let Some(known) = turn.neops.own.worlds.lock().get(&key) {
        return Ok(known);
    }
    let context = match turn.row.has_context || turn.row.context > 0 {
        true => context::value(turn.neops, turn.run, turn.row.context).await?,
        false => context::empty(),
    };
    let made = new_world(turn, context).await?;
    turn.neops.own.worlds.lock().put(key, made.clone(), made.room());
    Ok(made)
}

pub async fn new_world(turn: &Turn<'_>, context: Value) -> Result<Arc<World>, Problem> {
    let plan = turn.plan.clone();
    let make = move || {
        let parameters = Value::Object(plan.bundle.parameters.clone());
        Arc::new(World::new(&plan.course.label, &parameters, &context))
    };
    turn.neops.aside.run(&namespace(), make).await
}

/// What the step's expressions look at: no results of steps that they do not name.
async fn world(
    turn: &Turn<'_>,
    at: usize,
    lane: Option<Lane>,
    changed: Vec<Update>,
) -> Result<Result<World, String>, Problem> {
    let base = base(turn).await?;
    let mut world = turn
        .neops
        .aside
        .run(&namespace(), move || {
            let mut world = World::clone(&base);
            world.change(&changed);
            world
        })
        .await?;
    let course = &turn.plan.course;
    let (mut names, step) = (BTreeSet::new(), &course.steps[at]);
    let mut texts = step.conditions.iter().chain(&step.asserts);
    let mut known = texts.all(|text| template::names_of(text, &mut names));
    known &= template::names(&Value::Object(step.parameters.clone()), &mut names);
    let all = !known || WHOLE.iter().any(|whole| names.contains(*whole)) || names.contains(&course.label);
    let mut wanted: BTreeSet<usize> =
        (0..at).filter(|before| all || names.contains(&course.steps[*before].label)).collect();
    let own = wanted.split_off(&lane.map_or(at, |lane| lane.first));
    if !wanted.is_empty() {
        let main = match main(turn).await? {
            Some(main) => read::made(turn.neops, main).await?,
            None => Made::default(),
        };
        for before in wanted {
            let Some(node) = node_of(&main, before) else { continue };
            match gave(turn, &members(turn, node, before).await?).await? {
                Ok(results) => {
                    world.gave(&course.steps[before].label, turn.plan.bundle.blocks[before].on(), &results);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
    }
    if let Some(lane) = lane
        && let Err(why) = lanes::look_back(turn, lane, &own, &mut world).await?
    {
        return Ok(Err(why));
    }
    Ok(Ok(world))
}

/// The node that all steps belong to. Those of a lane do so through their stretch.
async fn main(turn: &Turn<'_>) -> Result<Option<JobId>, Problem> {
    let of = turn.job.and_then(|job| job.spec.stage.of);
    let on_lane = turn.job.and_then(|job| job.spec.node.as_ref()).is_some_and(|node| node.name.starts_with("lane."));
    match of.filter(|_| on_lane) {
        Some(stretch) => {
            let job = turn.neops.engine.store().job(&JobKey::new(&namespace(), stretch)).await?;
            Ok(job.and_then(|job| job.spec.stage.of))
        }
        None => Ok(of),
    }
}

/// The work of a step: what was made for it, or the node itself.
async fn members(turn: &Turn<'_>, node: JobId, at: usize) -> Result<Vec<Member>, Problem> {
    let job = turn.neops.engine.store().job(&JobKey::new(&namespace(), node)).await?;
    let named = |job: &Job, prefix| job.spec.node.as_ref().is_some_and(|node| node.name.starts_with(prefix));
    match job {
        Some(job) if named(&job, "lanes.") => lanes::members(turn, node, at).await,
        Some(job) if job.spec.stage.plan => Ok(read::made(turn.neops, node).await?.members),
        Some(_) => Ok(vec![Member(node, None)]),
        None => Ok(Vec::new()),
    }
}

/// Results by entity. The error is the run's own.
type Gave = Result<Vec<(Option<u64>, Value)>, String>;

pub async fn gave(turn: &Turn<'_>, members: &[Member]) -> Result<Gave, Problem> {
    let ids: Vec<JobId> = members.iter().map(|member| member.0).collect();
    let jobs = read::last(turn.neops, &ids).await?;
    let rows: Vec<&Job> = jobs.values().map(|(job, _)| job).collect();
    let results = match read::results(turn.neops, &rows).await? {
        Ok(results) => results,
        Err(why) => return Ok(Err(why)),
    };
    let one = |member: &Member| {
        let (job, _) = jobs.get(&member.0)?;
        Some((member.1, read::shown(job, results.get(&job.key.id))))
    };
    Ok(Ok(members.iter().filter_map(one).collect()))
}

pub async fn gather(turn: &Turn<'_>, at: usize) -> Result<Act, Problem> {
    let Some(job) = turn.job else { return Ok(Act::step(fail("its turn is over"))) };
    match came_of(turn, at, job.key.id).await? {
        Err((code, why)) => Ok(failed(turn, code, &why)),
        Ok(updates) if updates.is_empty() => Ok(Act::step(Move::Complete { result: Payload::default() })),
        Ok(updates) => {
            let mut row = turn.row.clone();
            let also = keep(&mut row, updates);
            Ok(Act::with(row, also, Move::Complete { result: Payload::default() }))
        }
    }
}

/// Adds what was changed to the context, in records that are not too large.
pub fn keep(row: &mut Row, updates: Vec<Value>) -> Vec<Command> {
    let mut keep = |piece: Vec<Value>| {
        row.context += 1;
        context::keep_updates(row.uuid, row.context, &piece)
    };
    context::in_pieces(updates).into_iter().map(&mut keep).collect()
}

/// What a step's work changed, or the code and the text of the reason for which the step failed.
type Came = Result<Vec<Value>, (&'static str, String)>;

pub async fn came_of(turn: &Turn<'_>, at: usize, node: JobId) -> Result<Came, Problem> {
    let ids: Vec<JobId> = members(turn, node, at).await?.iter().map(|member| member.0).collect();
    let jobs = read::last(turn.neops, &ids).await?;
    let rows: Vec<&Job> = ids.iter().filter_map(|id| jobs.get(id)).map(|(job, _)| job).collect();
    came_of_jobs(turn, at, &rows).await
}

/// The same of the last tries of its work.
pub async fn came_of_jobs(turn: &Turn<'_>, at: usize, rows: &[&Job]) -> Result<Came, Problem> {
    let label = &turn.plan.course.steps[at].label;
    let broken = rows.iter().copied().filter(|job| job.state != State::Completed);
    if let Some(job) = broken.min_by_key(|job| job.state == State::Cancelled) {
        return Ok(Err(read::failure(job, label)));
    }
    let changes = read::changes(turn.neops, rows, block(turn, at).await?).await?;
    Ok(changes.map_err(|why| ("invalid_result", format!("step {label}: {why}"))))
}
