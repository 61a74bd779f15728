//! Makes runs. Everything a run is planned from is fixed here: the versions of its workflow, of the workflows it contains
//! and of the definitions of its jobs, and its input.

use super::stored;
use crate::{app::App, auth::hash, problem::Problem, schema::check_value};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use windlass_api::definition::DefinitionBody;
use windlass_core::{
    Command, Millis, Namespace, Payload, RecordKey, Refusal, RunId, Timestamp,
    commands::{
        all::All,
        records::{Expect, PutRecord},
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    definition::DefinitionHead,
    job::DefinitionRef,
    run::{Run, RunState},
};
use windlass_engine::{Error, ids};
use windlass_plan::{
    Workflow,
    format::{Concurrency, Length, Retry, Settings},
    nodes::Recipe,
    plan::{Bundle, Plan},
};

/// Workflows that one may contain, in all.
const SUBS_MAX: usize = 50;
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
struct Taken {
    run: RunId,
    body_hash: String,
}

pub async fn start(app: &App, wanted: Wanted<'_>) -> Result<Started, Problem> {
    let key = wanted.idempotency.as_ref().map(|(key, _)| key_of(&wanted, key));
    let mut expect = Expect::Nothing;
    if let Some(key) = &key {
        match existing(app, &wanted, key).await? {
            Known::Run(started) => return Ok(started),
            Known::Free(found) => expect = found,
        }
    }
    let bundle = bundle(app, wanted.namespace, wanted.source.clone(), wanted.input.clone()).await?;
    let id = ids::run_id();
    let plan = plan(app, wanted.namespace, &bundle, id).await?;
    check_input(&plan.main, &bundle.input)?;
    let mut nodes = plan.nodes(&mut ids::job_id).map_err(|why| Problem::invalid("steps", why))?;
    for node in &mut nodes {
        node.job.owner = Some(wanted.owner.clone());
        check_payload(app, wanted.namespace, node).await?;
    }
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
        plan: RunPlan { keep_until, ..plan.keeps(&bundle) },
    };
    commands.push(submit.into());
    match app.engine.run(All { commands }).await {
        Ok(_) => Ok(Started { id, state: RunState::Running, existing: false }),
        Err(Error::Refused(
            Refusal::Exists { what: "record", .. } | Refusal::VersionMismatch { what: "record", .. },
        )) => {
            let key = key.ok_or_else(|| Problem::new("internal", "a key was taken that nobody asked for"))?;
            match existing(app, &wanted, &key).await? {
                Known::Run(started) => Ok(started),
                Known::Free(_) => Err(Problem::new("unavailable", "the key was used a moment ago").retry_after(200)),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Of one caller only, so that nobody learns of somebody else's runs by guessing.
fn key_of(wanted: &Wanted, key: &str) -> RecordKey {
    let key = hash(&format!("{}\n{key}", wanted.owner));
    RecordKey { namespace: wanted.namespace.clone(), kind: KEY_KIND.into(), key: key.into() }
}

/// What a key stands for.
enum Known {
    Run(Started),
    /// Nothing; how its record is found by whoever takes it.
    Free(Expect),
}

/// A run outlives its key. One that is gone all the same takes its key along, since nobody knows what became of it.
async fn existing(app: &App, wanted: &Wanted<'_>, key: &RecordKey) -> Result<Known, Problem> {
    let now = app.engine.now().await?;
    let found = app.engine.store().record(key).await?.filter(|record| record.due.is_none_or(|due| due > now));
    let Some(record) = found else { return Ok(Known::Free(Expect::Nothing)) };
    let taken: Taken =
        serde_json::from_str(&record.value).map_err(|error| Problem::new("damaged", error.to_string()))?;
    if wanted.idempotency.as_ref().is_some_and(|(_, hash)| *hash != taken.body_hash) {
        return Err(Problem::new("key-reused", "the key was used before with another body"));
    }
    let run = app.engine.read_record::<Run>(wanted.namespace, &taken.run.to_string()).await?;
    let started = |run: Run| Known::Run(Started { id: taken.run, state: run.state(), existing: true });
    Ok(run.map_or(Known::Free(Expect::Version(record.version)), started))
}

fn take(
    wanted: &Wanted<'_>,
    key: RecordKey,
    (expect, until): (Expect, Timestamp),
    run: RunId,
) -> Result<Command, Problem> {
    let body_hash = wanted.idempotency.as_ref().map(|(_, hash)| hash.clone()).unwrap_or_default();
    let value = serde_json::to_string(&Taken { run, body_hash })
        .map_err(|error| Problem::new("internal", error.to_string()))?;
    let expires_at = Some(until);
    Ok(PutRecord { key, expect, parent: None, value: value.into(), facets: Vec::new(), expires_at }.into())
}

pub fn check_input(main: &Workflow, input: &Value) -> Result<(), Problem> {
    let Some(schema) = &main.input_schema else { return Ok(()) };
    check_value("input_schema", schema, Some(&Payload::from(input.to_string().as_str()))).map_err(|problem| {
        let at = problem.0.field.clone().unwrap_or_default();
        problem.at(format!("input{at}"))
    })
}

/// What is known now is checked now; what is worked out later is checked then.
async fn check_payload(app: &App, namespace: &Namespace, node: &RunNode) -> Result<(), Problem> {
    let Some(reference) = node.job.definition.as_ref().filter(|_| !node.job.stage.plan) else { return Ok(()) };
    let definition = app.native.schemas.get(&app.engine, namespace, reference).await?;
    definition.check_payload(&node.job.payload).map_err(|problem| {
        let at = problem.0.field.clone().unwrap_or_default();
        problem.at(format!("steps.{}.payload{at}", node.name))
    })
}

fn versioned(text: &str) -> Result<(&str, Option<u32>), Problem> {
    match text.rsplit_once('@') {
        None => Ok((text, None)),
        Some((name, version)) => match version.parse() {
            Ok(version) => Ok((name, Some(version))),
            Err(_) => Err(Problem::invalid("steps", format!("{text:?}: write name or name@3"))),
        },
    }
}

/// Looks up all that a workflow contains or refers to.
pub async fn bundle(app: &App, namespace: &Namespace, source: String, input: Value) -> Result<Bundle, Problem> {
    let main = stored::parse(&source)?;
    let mut bundle = Bundle { source, input, ..Bundle::default() };
    let names = |workflow: &Workflow| -> Vec<String> { workflow.subs().map(str::to_owned).collect() };
    let mut open = names(&main);
    let mut definitions: Vec<String> = main.definitions().map(str::to_owned).collect();
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
        let sub = stored::parse(&text)?;
        open.extend(names(&sub));
        definitions.extend(sub.definitions().map(str::to_owned));
        bundle.subs.insert(called, text);
    }
    for called in definitions {
        let (name, version) = versioned(&called)?;
        let head = app.engine.read_record::<DefinitionHead>(namespace, name).await?;
        let head = head.filter(|head| head.deleted_at.is_none());
        let head = head.ok_or_else(|| Problem::not_found("definition", name).at("steps"))?;
        bundle.definitions.insert(called.clone(), version.unwrap_or(head.latest));
    }
    Ok(bundle)
}

/// A plan from its bundle.
pub async fn plan(app: &App, namespace: &Namespace, bundle: &Bundle, run: RunId) -> Result<Plan, Problem> {
    let mut recipes = HashMap::new();
    for (called, version) in &bundle.definitions {
        let (name, _) = versioned(called)?;
        let reference = DefinitionRef { name: name.into(), version: *version };
        let compiled = app.native.schemas.get(&app.engine, namespace, &reference).await?;
        let recipe = Recipe { reference, settings: settings(&compiled.body), payload: compiled.body.payload.clone() };
        recipes.insert(called.clone(), recipe);
    }
    Plan::new(bundle, run, recipes).map_err(|why| Problem::invalid("steps", why))
}

fn settings(body: &DefinitionBody) -> Settings {
    let length = |millis: Option<u64>| millis.map(|millis| Length(crate::wire_time::millis(millis)));
    Settings {
        tags: (!body.tags.is_empty()).then(|| body.tags.clone()),
        priority: body.priority,
        retry: body.retry.as_ref().map(|retry| Retry {
            attempts: retry.attempts,
            backoff: length(retry.backoff_ms),
            backoff_max: length(retry.backoff_max_ms),
            jitter_percent: retry.jitter_percent,
            on_failure: retry.on_failure,
            on_lost: retry.on_lost,
            on_timeout: retry.on_timeout,
        }),
        timeout: length(body.timeout_ms),
        pending_timeout: length(body.pending_timeout_ms),
        lease: length(body.lease_ms),
        concurrency: body
            .concurrency
            .as_ref()
            .map(|wanted| Concurrency { key: wanted.key.clone(), limit: wanted.limit }),
    }
}
