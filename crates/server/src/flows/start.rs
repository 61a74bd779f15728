//! Makes runs. Everything a run is planned from is fixed here: the versions of its workflow, of the workflows it contains
//! and of the definitions of its jobs, and its input.

use super::stored;
use crate::{
    app::App,
    aside::Large,
    auth::hash,
    problem::{Code, Problem, Result},
    schema::check_value,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use windlass_api::{JobSettings, definition::DefinitionBody};
use windlass_core::{
    Command, Millis, Namespace, Payload, RecordKey, Refusal, RunId, Timestamp,
    commands::{
        all::All,
        keep_part::KeepPart,
        records::{Expect, PutRecord},
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    definition::DefinitionHead,
    job::DefinitionRef,
    run::{Run, RunState},
    unique,
};
use windlass_engine::{Error, ids, records::read};
use windlass_plan::{
    Budget, Meter, Workflow,
    nodes::Recipe,
    plan::{Bundle, INPUT_ROOM_MAX, Plan},
};

/// Workflows that one may contain, in all.
const SUBS_MAX: usize = 50;
/// Bytes of a workflow and of those it contains.
const SOURCES_BYTES_MAX: usize = 8 << 20;
/// A plan of more bytes is not written in one transaction with its run.
const AT_ONCE_BYTES: usize = 128 << 10;
const KEY_KIND: &str = "run_key";
const KEY_KEPT: Millis = Millis::from_secs(86_400);

/// A run to be made.
pub struct Wanted<'a> {
    pub namespace: &'a Namespace,
    pub source: String,
    /// Where the source is stored.
    pub workflow: Option<DefinitionRef>,
    pub input: Value,
    pub owner: Arc<str>,
    /// The key, and what stands for the whole request.
    pub idempotency: Option<(String, String)>,
}

pub struct Started {
    pub id: RunId,
    pub state: RunState,
    pub existing: bool,
}

#[derive(Serialize, Deserialize)]
struct KeyUse {
    run: RunId,
    body_hash: String,
}

pub async fn start(app: &App, mut wanted: Wanted<'_>) -> Result<Started> {
    let key = wanted.idempotency.as_ref().map(|(key, _)| key_of(&wanted, key));
    let mut expect = Expect::Nothing;
    if let Some(key) = &key {
        match existing(app, &wanted, key).await? {
            Known::Run(started) => return Ok(started),
            Known::Free(found) => expect = found,
        }
    }
    let (source, input) = (std::mem::take(&mut wanted.source), std::mem::take(&mut wanted.input));
    let gathered = gather(app, wanted.namespace, source, input).await?;
    let id = ids::run_id();
    let bundle = gathered.bundle.clone();
    check_input(app, wanted.namespace, gathered.main.input_schema.clone(), bundle.clone()).await?;
    let plan = gathered.plan(app, wanted.namespace, id).await?;
    let limits = app.engine.settings().limits;
    let work = move || {
        let budget = Budget { payload: limits.payload_bytes_max as u64, ..Budget::default() };
        let made = plan.nodes(&mut ids::job_id, &Meter::new(budget));
        made.map(|nodes| (nodes, plan.keeps(&bundle)))
    };
    let made = app.aside.run(wanted.namespace, work).await?;
    let (mut nodes, keeps) = made.map_err(|why| Problem::invalid("steps", why))?;
    nodes.iter_mut().for_each(|node| node.job.owner = Some(wanted.owner.clone()));
    if let Err((name, problem)) = check_payloads(app, wanted.namespace, &nodes).await? {
        let at = problem.0.field.clone().unwrap_or_default();
        return Err(problem.at(format!("steps.{name}.payload{at}")));
    }
    let keeps = keep_early(app, wanted.namespace, id, keeps).await?;
    let mut commands: Vec<Command> = Vec::new();
    let mut keep_until = None;
    if let Some(key) = &key {
        let until = app.engine.now().await? + KEY_KEPT;
        keep_until = Some(until);
        commands.push(take(&wanted, key.clone(), (expect, until), id)?);
    }
    let submit = SubmitRun {
        namespace: wanted.namespace.clone(),
        id,
        owner: Some(wanted.owner.clone()),
        definition: wanted.workflow.clone(),
        nodes,
        extra: None,
        plan: RunPlan { keep_until, ..keeps },
    };
    commands.push(submit.into());
    match app.engine.run(All { commands }).await {
        Ok(_) => Ok(Started { id, state: RunState::Running, existing: false }),
        Err(Error::Refused(
            Refusal::Exists { what: "record", .. } | Refusal::VersionMismatch { what: "record", .. },
        )) => {
            let key = key.ok_or_else(|| Problem::new(Code::Internal, "a key was taken that nobody asked for"))?;
            match existing(app, &wanted, &key).await? {
                Known::Run(started) => Ok(started),
                Known::Free(_) => {
                    Err(Problem::new(Code::Unavailable, "the key was used a moment ago").retry_after(200))
                }
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a large plan before its run, in steps that let others commit in between.
pub async fn keep_early(app: &App, namespace: &Namespace, run: RunId, plan: RunPlan) -> Result<RunPlan> {
    if plan.parts.iter().map(|part| part.len()).sum::<usize>() <= AT_ONCE_BYTES {
        return Ok(plan);
    }
    let early = plan.parts.len() as u32;
    let parts = (0..).zip(plan.parts).map(|(at, text)| KeepPart { namespace: namespace.clone(), run, at, text });
    for kept in app.engine.run_many(parts.collect()).await? {
        kept?;
    }
    Ok(RunPlan { early, parts: Vec::new(), ..plan })
}

fn key_of(wanted: &Wanted, key: &str) -> RecordKey {
    let key = hash(&unique::record_key(Some(&wanted.owner), key));
    RecordKey { namespace: wanted.namespace.clone(), kind: KEY_KIND.into(), key: key.into() }
}

/// What a key stands for.
enum Known {
    Run(Started),
    /// Nothing; how its record is found by whoever takes it.
    Free(Expect),
}

/// A run outlives its key. One that is gone all the same takes its key along, since nobody knows what became of it.
async fn existing(app: &App, wanted: &Wanted<'_>, key: &RecordKey) -> Result<Known> {
    let Some(record) = app.engine.record(key).await? else { return Ok(Known::Free(Expect::Nothing)) };
    let taken = read::<KeyUse>(&record)?.value;
    if let Some((key, hash)) = &wanted.idempotency {
        unique::check_body(key, &taken.body_hash, hash)?;
    }
    let run = app.engine.read_record::<Run>(wanted.namespace, &taken.run.to_string()).await?;
    let started = |run: Run| Known::Run(Started { id: taken.run, state: run.state(), existing: true });
    Ok(run.map_or(Known::Free(Expect::Version(record.version)), started))
}

fn take(wanted: &Wanted<'_>, key: RecordKey, (expect, until): (Expect, Timestamp), run: RunId) -> Result<Command> {
    let body_hash = wanted.idempotency.as_ref().map(|(_, hash)| hash.clone()).unwrap_or_default();
    let value = serde_json::to_string(&KeyUse { run, body_hash })
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let expires_at = Some(until);
    Ok(PutRecord { key, expect, parent: None, value: value.into(), facets: Vec::new(), expires_at }.into())
}

/// Whether expressions can look at the input, and whether it is one that the workflow takes.
async fn check_input(app: &App, namespace: &Namespace, schema: Option<Value>, bundle: Arc<Bundle>) -> Result<()> {
    let check = move || {
        let input = &bundle.input;
        let room = Meter::default().weigh(input).unwrap_or(u64::MAX);
        if room > INPUT_ROOM_MAX {
            let why = format!(
                "the input takes more than {INPUT_ROOM_MAX} bytes of memory, the most that a run may be given; \
                 give it less, or the name of an artifact"
            );
            return Err(Problem::new(Code::TooLarge, why).at("input"));
        }
        let Some(schema) = schema else { return Ok(()) };
        check_value("input_schema", &schema, Some(&Payload::from(input.to_string().as_str()))).map_err(|problem| {
            let at = problem.0.field.clone().unwrap_or_default();
            problem.at(format!("input{at}"))
        })
    };
    app.aside.run(namespace, check).await?
}

/// What is known now is checked now; what is worked out later is checked then. Otherwise the step whose payload does not
/// fit.
pub async fn check_payloads(
    app: &App,
    namespace: &Namespace,
    nodes: &[RunNode],
) -> Result<Result<(), (Arc<str>, Problem)>> {
    let (mut names, mut all) = (Vec::new(), Vec::new());
    for node in nodes {
        let Some(reference) = node.job.definition.as_ref().filter(|_| !node.job.stage.plan) else { continue };
        let definition = app.schemas.get(namespace, reference).await?;
        if definition.body.payload_schema.is_some() {
            names.push(node.name.clone());
            all.push((definition, node.job.payload.clone()));
        }
    }
    if all.is_empty() {
        return Ok(Ok(()));
    }
    let checked = app.schemas.check_all(namespace, all).await?;
    Ok(checked.map_err(|(at, problem)| (names[at].clone(), problem)))
}

fn versioned(text: &str) -> Result<(&str, Option<u32>)> {
    match text.rsplit_once('@') {
        None => Ok((text, None)),
        Some((name, version)) => match version.parse() {
            Ok(version) => Ok((name, Some(version))),
            Err(_) => Err(Problem::invalid("steps", format!("{text:?}: write name or name@3"))),
        },
    }
}

/// A workflow with all that it contains or refers to, read.
pub struct Gathered {
    pub bundle: Arc<Bundle>,
    pub main: Large<Workflow>,
    subs: HashMap<String, Large<Workflow>>,
}

/// Looks up all that a workflow contains or refers to.
pub async fn gather(app: &App, namespace: &Namespace, source: String, input: Value) -> Result<Gathered> {
    let main = stored::parse(app, namespace, source.clone()).await?;
    let mut bytes = source.len();
    let mut bundle = Bundle { source, input, ..Bundle::default() };
    let names = |workflow: &Workflow| -> Vec<String> { workflow.subs().map(str::to_owned).collect() };
    let mut open = names(&main);
    let mut subs: HashMap<String, Large<Workflow>> = HashMap::new();
    let mut definitions: BTreeSet<String> = main.definitions().map(str::to_owned).collect();
    while let Some(called) = open.pop() {
        if bundle.subs.contains_key(&called) {
            continue;
        }
        if bundle.subs.len() == SUBS_MAX {
            return Err(Problem::invalid("steps", format!("more than {SUBS_MAX} workflows in one")));
        }
        let (name, version) = versioned(&called)?;
        let found = stored::load(app, namespace, name, version).await?;
        let found = found.ok_or_else(|| Problem::not_found("workflow", &called).at("steps"))?;
        let text = stored::source(app, namespace, &found).await?;
        bytes += text.len();
        if bytes > SOURCES_BYTES_MAX {
            let why = format!("the workflow and those in it have {bytes} bytes; at most {SOURCES_BYTES_MAX}");
            return Err(Problem::invalid("steps", why));
        }
        let sub = stored::parse(app, namespace, text.clone()).await?;
        open.extend(names(&sub));
        definitions.extend(sub.definitions().map(str::to_owned));
        bundle.subs.insert(called.clone(), text);
        subs.insert(called, sub);
    }
    for called in definitions {
        let (name, version) = versioned(&called)?;
        let head = app.engine.read_record::<DefinitionHead>(namespace, name).await?;
        let head = head.filter(|head| head.deleted_at.is_none());
        let head = head.ok_or_else(|| Problem::not_found("definition", name).at("steps"))?;
        bundle.definitions.insert(called.clone(), version.unwrap_or(head.latest));
    }
    Ok(Gathered { bundle: Arc::new(bundle), main, subs })
}

impl Gathered {
    pub async fn plan(self, app: &App, namespace: &Namespace, run: RunId) -> Result<Large<Plan>> {
        let recipes = recipes(app, namespace, &self.bundle).await?;
        let make = move || {
            let subs = self.subs.into_iter().map(|(name, sub)| (name, sub.into_inner())).collect();
            let plan = Plan::of(self.main.into_inner(), subs, self.bundle.input.clone(), run, recipes);
            plan.map_err(|why| Problem::invalid("steps", why))
        };
        app.aside.run_large(namespace, make).await
    }
}

/// A plan from its bundle, which may take as long as reading a definition does.
pub async fn plan(app: &App, namespace: &Namespace, bundle: Bundle, run: RunId) -> Result<Large<Plan>> {
    let recipes = recipes(app, namespace, &bundle).await?;
    let read = move || Plan::new(&bundle, run, recipes).map_err(|why| Problem::invalid("steps", why));
    app.aside.run_large(namespace, read).await
}

async fn recipes(app: &App, namespace: &Namespace, bundle: &Bundle) -> Result<HashMap<String, Recipe>> {
    let mut recipes = HashMap::new();
    for (called, version) in &bundle.definitions {
        let (name, _) = versioned(called)?;
        let reference = DefinitionRef { name: name.into(), version: *version };
        let compiled = app.schemas.get(namespace, &reference).await?;
        let recipe = Recipe { reference, settings: settings(&compiled.body), payload: compiled.body.payload.clone() };
        recipes.insert(called.clone(), recipe);
    }
    Ok(recipes)
}

/// How long a step's job is kept is a matter of its run.
fn settings(body: &DefinitionBody) -> JobSettings {
    JobSettings { retention_ms: None, ..body.settings() }
}
