//! Makes runs. What can be told before any job is checked here: a run that cannot go well is kept, and has failed safely.

use super::{
    ahead,
    bundle::{Bundle, Known, Plan},
    row::{Row, Status, Trigger},
};
use crate::{
    dialects::neops::{
        HttpError, NAMESPACE as NAME, Neops, Result,
        blocks::{self, Block},
        definitions, job, namespace,
    },
    flows,
    problem::Problem,
    schema::check_value,
};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};
use windlass_api::Uuid;
use windlass_core::{
    Command, JobId, Payload, Refusal, RunId,
    commands::{
        all::All,
        submit::NewJob,
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    policy::{FailurePolicy, ParentPolicy},
};
use windlass_engine::{Error, ids};
use windlass_plan::{
    Meter,
    neops::{
        course::{Course, Step},
        document::Document,
        expression,
        reference::{EntityType, Reference},
        step,
    },
};

/// What becomes of a run as a whole is decided in the turns of this node.
pub const MAIN: &str = "main";

/// A run to be made.
pub struct Start {
    pub workflow: Reference,
    pub ids: Vec<u64>,
    pub query: Option<String>,
    pub parameters: Map<String, Value>,
    /// None: one is drawn.
    pub id: Option<Uuid>,
    pub trigger: Trigger,
    pub by: Option<String>,
    /// Goes into the same transaction.
    pub also: Vec<Command>,
}

/// The code and the text of a reason.
type Fault = (&'static str, String);

pub async fn start(neops: &Neops, start: Start) -> Result<Row> {
    let unknown = || HttpError::not_found(format!("Workflow {} not found", start.workflow));
    let (id, document) = definitions::resolve(neops, &start.workflow).await?.ok_or_else(unknown)?;
    let (run, now) = (start.id.unwrap_or_else(|| ids::run_id().0), neops.engine.now().await?);
    let name = document.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut row = Row {
        uuid: run,
        workflow_id: id,
        workflow_name: name,
        status: Status::ResourceDiscovery,
        reason: None,
        unsafe_cause: None,
        retry_note: None,
        created_at: now,
        updated_at: now,
        started_at: None,
        finished_at: None,
        parameters: start.parameters.clone(),
        ids: start.ids.clone(),
        query: start.query.clone(),
        held: Vec::new(),
        trigger: start.trigger,
        started_by: start.by.clone(),
        aborted_by: None,
        context: 0,
        has_context: false,
    };
    let (mut made, checked) = (None, check(neops, &start, document, run).await?);
    let mut commands = match checked {
        Err((code, why)) => {
            row.fail(code, &why);
            row.end(Status::FailedSafeAck, now);
            row.create(neops, now)
        }
        Ok(checked) => {
            row.parameters = checked.bundle.parameters.clone();
            let (submit, near) = checked.submit(neops, &start).await?;
            let mut all = row.create(neops, now);
            all.push(submit.into());
            made = Some((checked.plan(), near));
            all
        }
    };
    commands.extend(start.also);
    match neops.engine.run(All { commands }).await {
        Ok(_) => {
            remember(neops, &row, made);
            Ok(row)
        }
        Err(Error::Refused(Refusal::Exists { .. } | Refusal::VersionMismatch { .. })) => {
            Err(HttpError::conflict(format!("there is a run {run} already")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Its turns come soon, and are mostly decided here.
fn remember(neops: &Neops, row: &Row, made: Option<(Plan, Near)>) {
    neops.own.begun.notify_one();
    neops.own.rows.lock().put(row.uuid, row.key().into(), 0);
    if let Some((plan, near)) = made {
        let (run, plan) = (RunId(row.uuid), Arc::new(plan));
        if let Some(course) = ahead::of_new(near, &plan, row) {
            ahead::remember(neops, course);
        }
        neops.own.plans.lock().put(run, plan, 1);
        neops.plans.put_reader(run, NAME.into());
    }
}

/// The jobs of a new run, and how long its plan is.
pub struct Near {
    pub acquires: Vec<JobId>,
    pub main: JobId,
    pub owner: Option<Arc<str>>,
    pub bytes: usize,
}

/// All that a run needs, and nothing wrong with it so far.
struct Checked {
    bundle: Bundle,
    course: Course,
    blocks: Vec<Arc<Block>>,
    /// Of the acquire jobs.
    early: Vec<Value>,
}

async fn check(
    neops: &Neops,
    start: &Start,
    document: Arc<Value>,
    run: Uuid,
) -> Result<Result<Checked, Fault>, Problem> {
    let read = Document::read(&document).map_err(|faults| {
        let first = faults.first().map(|fault| format!("{}: {}", fault.place, fault.text)).unwrap_or_default();
        ("invalid_workflow", first)
    });
    let read = match read {
        Ok(read) => read,
        Err(fault) => return Ok(Err(fault)),
    };
    let course = match Course::of(&read) {
        Ok(course) => course,
        Err(why) => return Ok(Err(("invalid_workflow", why))),
    };
    let mut found = Vec::new();
    for step in &course.steps {
        match blocks::resolve_known(neops, &step.block).await? {
            Some(block) => found.push(block),
            None => {
                let why = format!("Function block with id {} not found", step.block);
                return Ok(Err(("unresolved_reference", why)));
            }
        }
    }
    let (mut parameters, ids) = (start.parameters.clone(), start.ids.clone());
    let schema = read.parameter_schema.clone();
    let early: Option<Vec<Value>> = course.steps.iter().zip(&found).map(|(step, block)| plain(step, block)).collect();
    if let (None, Some(early)) = (&schema, early) {
        return Ok(Ok(Checked::new(run, document, (parameters, ids), course, found, early)));
    }
    let work = move || {
        if let Some(schema) = &schema {
            add_defaults(schema, &mut parameters);
            fits("parameters", schema, &Value::Object(parameters.clone()))?;
        }
        let whole = Value::Object(parameters.clone());
        let (meter, mut early) = (Meter::new(expression::budget()), Vec::new());
        for (step, block) in course.steps.iter().zip(&found) {
            let made = check_step(step, &course.label, block, &whole, &meter);
            early.push(made.map_err(|why| ("invalid_parameters", format!("step {}: {why}", step.label)))?);
        }
        Ok(Checked::new(run, document, (parameters, ids), course, found, early))
    };
    neops.aside.run(&namespace(), work).await
}

/// Bytes of parameters that are looked at on the spot.
const PLAIN_BYTES: usize = 4 << 10;

/// The parameters of a step, filled in and checked, where there is nothing to work out and that takes no longer than a moment.
pub fn plain(step: &Step, block: &Block) -> Option<Value> {
    let mut made = step.parameters.clone();
    let text = Value::Object(made.clone()).to_string();
    if text.contains("{{") || text.len() > PLAIN_BYTES {
        return None;
    }
    made.extend(step.raw.clone());
    block.fill_here(&Value::Object(made))?.ok()
}

/// What a step runs on.
pub fn on(step: &Step, block: &Block) -> EntityType {
    step.run_on.or(block.run_on).unwrap_or(EntityType::Global)
}

fn fits(place: &'static str, schema: &Value, value: &Value) -> Result<(), Fault> {
    check_value(place, schema, Some(&Payload::from(value.to_string().as_str())))
        .map_err(|problem| ("invalid_parameters", format!("{place}: {}", problem.0)))
}

/// Of the fields that are left out.
fn add_defaults(schema: &Value, fields: &mut Map<String, Value>) {
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(default) = field.get("default") {
            fields.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
}

/// What an acquire job is told: what follows from the run's parameters. That much of it has to meet the block's schema.
fn check_step(step: &Step, label: &str, block: &Block, parameters: &Value, meter: &Meter) -> Result<Value, String> {
    let (made, later) = step::early(step, label, parameters, meter)?;
    let made = Value::Object(made);
    if later.is_empty() {
        return block.fill(made);
    }
    let schema = without(&block.body.parameter_json_schema, &later);
    fits("parameters", &schema, &made).map_err(|(_, why)| why)?;
    Ok(made)
}

/// A schema that asks nothing of these fields.
fn without(schema: &Value, fields: &BTreeSet<String>) -> Value {
    let mut schema = schema.clone();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_none_or(|name| !fields.contains(name)));
    }
    schema
}

impl Checked {
    fn new(
        run: Uuid,
        document: Arc<Value>,
        (parameters, ids): (Map<String, Value>, Vec<u64>),
        course: Course,
        blocks: Vec<Arc<Block>>,
        early: Vec<Value>,
    ) -> Self {
        let known = course.steps.iter().zip(&blocks).map(|(step, block)| Known::new(block, on(step, block))).collect();
        let bundle = Bundle { run, document, parameters, ids, blocks: known, remedy: None };
        Self { bundle, course, blocks, early }
    }

    fn plan(self) -> Plan {
        Plan { bundle: self.bundle, course: self.course, blocks: self.blocks }
    }

    async fn submit(&self, neops: &Neops, start: &Start) -> Result<(SubmitRun, Near), Problem> {
        let run = RunId(self.bundle.run);
        let owner: Option<Arc<str>> = start.by.as_deref().map(Into::into);
        let mut nodes = Vec::new();
        for (at, (step, block)) in self.course.steps.iter().zip(&self.blocks).enumerate() {
            let shape = job::Shape {
                id: ids::job_id(),
                run: run.0,
                kind: job::Type::Acquire,
                block,
                label: &step.label,
                run_on: on(step, block),
                entity: None,
                parameters: &self.early[at],
                context: None,
                lane: None,
            };
            nodes.push(work(neops, format!("acquire.{at}"), &shape, owner.clone()));
        }
        let needs = nodes.iter().map(|node| node.name.clone()).collect();
        let acquires = nodes.iter().map(|node| node.job.id).collect();
        let main = staged(MAIN.into(), needs, ParentPolicy::RunAnyway);
        let parts = self.bundle.parts();
        let bytes = parts.iter().map(|part| part.len()).sum();
        let near = Near { acquires, main: main.job.id, owner: owner.clone(), bytes };
        nodes.push(main);
        let plan = RunPlan { parts, compensates: true, ..RunPlan::default() };
        let plan = flows::start::keep_early(neops, &namespace(), run, plan).await?;
        Ok((SubmitRun { namespace: namespace(), id: run, owner, definition: None, nodes, extra: None, plan }, near))
    }
}

/// A node that workers work on.
pub fn work(neops: &Neops, name: String, shape: &job::Shape<'_>, owner: Option<Arc<str>>) -> RunNode {
    let mut made = job::new(&neops.own.settings, shape);
    made.policy.failure = FailurePolicy::CancelsPending;
    made.owner = owner;
    RunNode { name: name.into(), needs: Vec::new(), job: made }
}

/// A node whose turns say what becomes of it.
pub fn staged(name: String, needs: Vec<Arc<str>>, parents: ParentPolicy) -> RunNode {
    let mut job = NewJob::new(ids::job_id());
    job.stage.plan = true;
    job.policy.parents = parents;
    RunNode { name: name.into(), needs, job }
}
