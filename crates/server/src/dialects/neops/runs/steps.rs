//! Steps of a run in their turns: first what work there is, then what came of it.

use super::{
    begin::{node_of, payload},
    context, read,
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
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use windlass_api::Uuid;
use windlass_core::{
    Command, Job, JobId, JobKey, Payload, RecordKey, State,
    commands::{advance::Move, submit_run::RunNode},
    stage::OF_RUN,
};
use windlass_engine::ids;
use windlass_plan::neops::{
    acquire::{Acquire, By},
    reference::{EntityType, Reference},
    step::{self, Begun, World},
    template,
    updates::Update,
};

/// Names of results in expressions.
const WHOLE: [&str; 2] = ["steps", "results"];

/// Which entities steps are for, by step: type and filter.
type Filters = Vec<Vec<(String, String)>>;

fn clauses_key(run: Uuid) -> RecordKey {
    RecordKey { namespace: namespace(), kind: OF_RUN.into(), key: format!("{run}/clauses").into() }
}

/// Keeps what leaves entities out of steps, if anything does. The last clauses are those of the whole workflow.
pub fn keep_clauses(run: Uuid, clauses: &[Vec<Acquire>]) -> Option<Command> {
    let of = |clauses: &Vec<Acquire>| -> Vec<(String, String)> {
        let filter = |clause: &Acquire| match &clause.by {
            By::Context { filter: Some(filter) } => Some((clause.entity.as_str().to_owned(), filter.clone())),
            _ => None,
        };
        clauses.iter().filter_map(filter).collect()
    };
    let filters: Filters = clauses.iter().map(of).collect();
    if filters.iter().all(Vec::is_empty) {
        return None;
    }
    let put = windlass_core::commands::records::PutRecord {
        key: clauses_key(run),
        expect: windlass_core::commands::records::Expect::Anything,
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
    let clause = |(entity, filter): &(String, String)| {
        let by = By::Context { filter: Some(filter.clone()) };
        Some(Acquire { entity: EntityType::parse(entity)?, not_empty: false, by })
    };
    Ok(mine.filter_map(clause).collect())
}

async fn block(turn: &Turn<'_>, at: usize) -> Result<Option<Arc<Block>>, Problem> {
    let known = &turn.plan.bundle.blocks[at];
    match Reference::parse(&known.id) {
        Some(reference) => blocks::resolve(turn.neops, &reference).await,
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
) -> Result<Filled, Problem> {
    let (plan, block) = (turn.plan.clone(), block.clone());
    let made = move || {
        let step = &plan.course.steps[at];
        let work = match step::begin(step, plan.bundle.blocks[at].on(), &clauses, &world) {
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
    lists: &Value,
    owner: Option<Arc<str>>,
) -> Result<Option<RunNode>, Problem> {
    let Some(block) = block(turn, 0).await? else { return Ok(None) };
    let parameters = Value::Object(turn.plan.bundle.parameters.clone());
    let world = World::new(&turn.plan.course.label, &parameters, lists);
    let Ok(work) = fill(turn, 0, &block, Vec::new(), world).await? else { return Ok(None) };
    Ok(work.first().map(|one| piece(turn, row, 0, &block, one, owner)))
}

fn piece(
    turn: &Turn<'_>,
    row: &Row,
    at: usize,
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
    };
    let name = entity.map_or_else(|| format!("step.{at}.g"), |id| format!("step.{at}.{id}"));
    work(turn.neops, name, &shape, owner)
}

pub async fn begin(turn: &Turn<'_>, at: usize) -> Result<Act, Problem> {
    if turn.row.is_failing() {
        return Ok(Act::step(Move::Skip { why: "the run failed before".into() }));
    }
    let Some(block) = block(turn, at).await? else {
        let why = format!("Function block with id {} not found", turn.plan.bundle.blocks[at].id);
        return Ok(failed(turn, "unresolved_reference", &why));
    };
    let world = match world(turn, at).await? {
        Ok(world) => world,
        Err(why) => return Ok(failed(turn, "engine_error", &why)),
    };
    let work = match fill(turn, at, &block, clauses(turn, at).await?, world).await? {
        Ok(work) => work,
        Err(Begun::Fail(code, why)) => return Ok(failed(turn, code, &why)),
        Err(Begun::Skip(why)) => return Ok(Act::step(Move::Skip { why: why.into() })),
        Err(Begun::Work(_)) => Vec::new(),
    };
    let owner = turn.job.and_then(|job| job.spec.owner.clone());
    let (mut nodes, mut members) = (Vec::new(), Vec::new());
    for one in &work {
        let mut node = piece(turn, &turn.row, at, &block, one, owner.clone());
        node.job.stage.of = turn.job.map(|job| job.key.id);
        members.push(Member(node.job.id, one.0));
        nodes.push(node);
    }
    Ok(Act::step(Move::Expand { nodes, payload: payload(&Made { members }) }))
}

fn failed(turn: &Turn<'_>, code: &str, why: &str) -> Act {
    let mut row = turn.row.clone();
    row.fail(code, why);
    Act::with(row, Vec::new(), fail(why))
}

/// What the step's expressions look at: no results of steps that they do not name.
async fn world(turn: &Turn<'_>, at: usize) -> Result<Result<World, String>, Problem> {
    let context = match turn.row.has_context || turn.row.context > 0 {
        true => context::value(turn.neops, turn.run, turn.row.context).await?,
        false => context::empty(),
    };
    let course = &turn.plan.course;
    let parameters = Value::Object(turn.plan.bundle.parameters.clone());
    let mut world = World::new(&course.label, &parameters, &context);
    let (mut names, step) = (BTreeSet::new(), &course.steps[at]);
    let mut texts = step.conditions.iter().chain(&step.asserts);
    let mut known = texts.all(|text| template::names_of(text, &mut names));
    known &= template::names(&Value::Object(step.parameters.clone()), &mut names);
    let all = !known || WHOLE.iter().any(|whole| names.contains(*whole)) || names.contains(&course.label);
    let main = match turn.job.and_then(|job| job.spec.stage.of) {
        Some(main) => read::made(turn.neops, main).await?,
        None => Made::default(),
    };
    for before in (0..at).filter(|before| all || names.contains(&course.steps[*before].label)) {
        let Some(node) = node_of(&main, before) else { continue };
        match gave(turn, node).await? {
            Ok(results) => {
                world.gave(&course.steps[before].label, turn.plan.bundle.blocks[before].on(), &results);
            }
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(world))
}

/// The work of a step: what was made for it, or the node itself.
async fn members(turn: &Turn<'_>, node: JobId) -> Result<Vec<Member>, Problem> {
    let job = turn.neops.engine.store().job(&JobKey::new(&namespace(), node)).await?;
    match job {
        Some(job) if job.spec.stage.plan => Ok(read::made(turn.neops, node).await?.members),
        Some(_) => Ok(vec![Member(node, None)]),
        None => Ok(Vec::new()),
    }
}

/// Results by entity. The error is the run's own.
type Gave = Result<Vec<(Option<u64>, Value)>, String>;

async fn gave(turn: &Turn<'_>, node: JobId) -> Result<Gave, Problem> {
    let members = members(turn, node).await?;
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
    let (mut commands, mut some, mut bytes) = (Vec::new(), Vec::new(), 0);
    for update in updates {
        let size = update.to_string().len() + 1;
        if bytes + size > context::UPDATE_BYTES_MAX && !some.is_empty() {
            row.context += 1;
            commands.push(context::keep_updates(row.uuid, row.context, &std::mem::take(&mut some)));
            bytes = 0;
        }
        bytes += size;
        some.push(update);
    }
    if !some.is_empty() {
        row.context += 1;
        commands.push(context::keep_updates(row.uuid, row.context, &some));
    }
    commands
}

/// What a step's work changed, or the code and the text of the reason for which the step failed.
type Came = Result<Vec<Value>, (&'static str, String)>;

pub async fn came_of(turn: &Turn<'_>, at: usize, node: JobId) -> Result<Came, Problem> {
    let label = &turn.plan.course.steps[at].label;
    let ids: Vec<JobId> = members(turn, node).await?.iter().map(|member| member.0).collect();
    let jobs = read::last(turn.neops, &ids).await?;
    let rows: Vec<&Job> = ids.iter().filter_map(|id| jobs.get(id)).map(|(job, _)| job).collect();
    let broken = rows.iter().copied().filter(|job| job.state != State::Completed);
    if let Some(job) = broken.min_by_key(|job| job.state == State::Cancelled) {
        return Ok(Err(read::failure(job, label)));
    }
    let results = match read::results(turn.neops, &rows).await? {
        Ok(results) => results,
        Err(why) => return Ok(Err(("invalid_result", format!("step {label}: {why}")))),
    };
    let Some(block) = block(turn, at).await? else { return Ok(Ok(changes(&rows, &results))) };
    let (label, rows) = (label.clone(), rows.into_iter().cloned().collect::<Vec<Job>>());
    let check = move || {
        let rows: Vec<&Job> = rows.iter().collect();
        for result in rows.iter().filter_map(|job| results.get(&job.key.id)) {
            let wrong = |why: String| ("invalid_result", format!("step {label}: {why}"));
            if let Some(data) = result.get("data").filter(|data| !data.is_null()) {
                block.check_result(data).map_err(|why| wrong(format!("data: {why}")))?;
            }
            if let Some(updates) = result.get("dbUpdates").filter(|updates| !updates.is_null()) {
                Update::read_all(updates, "dbUpdates").map_err(|faults| {
                    let first = faults.first().map(|fault| format!("{}: {}", fault.place, fault.text));
                    wrong(first.unwrap_or_default())
                })?;
            }
        }
        Ok(changes(&rows, &results))
    };
    turn.neops.aside.run(&namespace(), check).await
}

fn changes(rows: &[&Job], results: &HashMap<JobId, Value>) -> Vec<Value> {
    let of = |job: &&Job| results.get(&job.key.id)?.get("dbUpdates")?.get("updates")?.as_array();
    rows.iter().filter_map(of).flatten().cloned().collect()
}
