//! A workflow as its author published it, read into types. The JSON stays what is kept and compared; this is what it means.

use super::{
    acquire::{self, Acquire, CLAUSES_MAX},
    read::{Fault, FaultKind, Fields, Reader},
    reference::{EntityType, ID_BYTES_MAX, LABEL_BYTES_MAX, Reference, Version, is_label, is_name},
    schedule::{self, Cron, SCHEDULES_MAX},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Steps of a workflow, those of embedded ones included.
pub const STEPS_MAX: usize = 1_000;
/// How deep workflows are embedded.
pub const DEPTH_MAX: usize = 16;
/// Assertions of one step.
const ASSERTS_MAX: usize = 100;
/// Bytes of an expression, as for those of native workflows.
pub const EXPRESSION_BYTES_MAX: usize = 4_096;
const DESCRIPTION_MAX: usize = 1_000;
/// Seconds.
const DELAY_MAX: f64 = 600.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub label: String,
    pub name: String,
    pub package: String,
    pub version: Version,
    pub seed: EntityType,
    pub description: Option<String>,
    pub parameter_schema: Option<Value>,
    /// Each entity goes on by itself, until a global step joins them.
    pub parallel: bool,
    pub common: Common,
    pub cron: Vec<Cron>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub label: String,
    pub common: Common,
    pub work: Work,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Block(Reference),
    Embedded {
        name: String,
        parallel: bool,
        steps: Vec<Step>,
    },
    /// Accepted, and fails the run that meets it.
    Workflow {
        reference: Reference,
        strategy: Strategy,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Embed,
    Dispatch,
}

/// What workflows and all kinds of steps may say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Common {
    pub condition: Option<String>,
    pub asserts: Vec<String>,
    pub acquire: Vec<Acquire>,
    pub parameters: Map<String, Value>,
    pub raw_parameters: Map<String, Value>,
    pub run_on: Option<EntityType>,
    /// Fields that ask for something that is not acted on.
    pub unheeded: Vec<&'static str>,
}

impl Document {
    /// The workflow, or all that is wrong with it.
    pub fn read(value: &Value) -> Result<Self, Vec<Fault>> {
        let mut reader = Reader::default();
        let made = reader.object(value, String::new()).and_then(|at| document(&mut reader, &at));
        if let Some(made) = &made {
            labels(&mut reader, made);
        }
        reader.done(made)
    }

    pub fn id(&self) -> String {
        self.reference().to_string()
    }

    pub fn reference(&self) -> Reference {
        Reference::exact(&self.package, &self.name, self.version)
    }

    /// All steps with their places, in the order in which they run; an embedded workflow comes before its steps.
    pub fn each<'a>(&'a self, see: &mut dyn FnMut(&str, &'a Step)) {
        each(&self.steps, "steps", see);
    }
}

fn each<'a>(steps: &'a [Step], place: &str, see: &mut dyn FnMut(&str, &'a Step)) {
    for (index, step) in steps.iter().enumerate() {
        let here = format!("{place}[{index}]");
        see(&here, step);
        if let Work::Embedded { steps, .. } = &step.work {
            each(steps, &format!("{here}.steps"), see);
        }
    }
}

fn document(reader: &mut Reader, at: &Fields<'_>) -> Option<Document> {
    if reader.must_text(at, "type") != "workflow" {
        reader.fault(at.place("type"), "must be \"workflow\"");
    }
    reader.text(at, "$schema");
    reader.flag(at, "hideForExecution");
    let mut left = STEPS_MAX;
    let made = Document {
        label: label(reader, at),
        name: name(reader, at, "name"),
        package: name(reader, at, "package"),
        version: Version {
            major: reader.must_count(at, "majorVersion"),
            minor: reader.must_count(at, "minorVersion"),
            patch: reader.must_count(at, "patchVersion"),
        },
        seed: reader.must_entity(at, "seedEntity"),
        description: reader.text(at, "description").map(str::to_owned),
        parameter_schema: reader.map(at, "parameterSchema").map(Value::Object),
        parallel: parallel(reader, at),
        common: common(reader, at),
        cron: crons(reader, at),
        steps: steps(reader, at, 0, &mut left),
    };
    if made.id().len() > ID_BYTES_MAX {
        reader.fault(at.place("name"), format!("makes the id longer than {ID_BYTES_MAX} bytes"));
    }
    Some(made)
}

fn label(reader: &mut Reader, at: &Fields<'_>) -> String {
    let label = reader.must_text(at, "label");
    if !label.is_empty() && !is_label(label) {
        let text = format!(
            "must have letters, digits and '_' only, begin with no digit, have at most {LABEL_BYTES_MAX} characters, \
             and not be parameters, context or steps; it is {label:?}"
        );
        reader.fault(at.place("label"), text);
    }
    label.to_owned()
}

fn name(reader: &mut Reader, at: &Fields<'_>, field: &str) -> String {
    let name = reader.must_sized(at, field, 1, 100);
    if !name.is_empty() && !is_name(name) {
        reader.fault(at.place(field), format!("must not contain '/' or ':'; it is {name:?}"));
    }
    name.to_owned()
}

fn parallel(reader: &mut Reader, at: &Fields<'_>) -> bool {
    let Some(config) = reader.inner(at, "config") else { return false };
    let Some(strategy) = reader.inner(&config, "executionStrategy") else { return false };
    reader.flag(&strategy, "parallel").unwrap_or_default()
}

fn crons(reader: &mut Reader, at: &Fields<'_>) -> Vec<Cron> {
    let all = reader.list(at, "cron", SCHEDULES_MAX);
    all.into_iter().filter_map(|(place, value)| schedule::read(reader, value, place)).collect()
}

fn common(reader: &mut Reader, at: &Fields<'_>) -> Common {
    reader.sized(at, "description", 0, DESCRIPTION_MAX);
    let asserts = reader.list(at, "assert", ASSERTS_MAX);
    let acquires = reader.list(at, "acquire", CLAUSES_MAX);
    Common {
        condition: condition(reader, at),
        asserts: asserts.into_iter().filter_map(|(place, value)| jmes(reader, value, place)).collect(),
        acquire: acquires.into_iter().filter_map(|(place, value)| acquire::read(reader, value, place)).collect(),
        parameters: reader.map(at, "parameters").unwrap_or_default(),
        raw_parameters: reader.map(at, "rawParameters").unwrap_or_default(),
        run_on: reader.entity(at, "runOn"),
        unheeded: unheeded(reader, at),
    }
}

/// Checked like everything else, then only named.
fn unheeded(reader: &mut Reader, at: &Fields<'_>) -> Vec<&'static str> {
    let mut found = Vec::new();
    if reader.flag(at, "continueOnError") == Some(true) {
        found.push("continueOnError");
    }
    if reader.number(at, "delay", 0.0, DELAY_MAX).is_some_and(|delay| delay > 0.0) {
        found.push("delay");
    }
    if let Some(retry) = reader.inner(at, "retryConfig") {
        reader.must(&retry, "maxRetries");
        again(reader, &retry, "maxRetries");
        found.push("retryConfig");
    }
    if let Some(repeat) = reader.inner(at, "repeatConfig") {
        again(reader, &repeat, "repeats");
        found.push("repeatConfig");
    }
    found
}

fn again(reader: &mut Reader, at: &Fields<'_>, times: &str) {
    reader.number(at, times, 1.0, 100.0);
    reader.number(at, "delay", 0.0, DELAY_MAX);
    condition(reader, at);
}

pub(super) fn condition(reader: &mut Reader, at: &Fields<'_>) -> Option<String> {
    if !reader.has(at, "condition") {
        return None;
    }
    let value = reader.must(at, "condition")?;
    jmes(reader, value, at.place("condition"))
}

fn jmes(reader: &mut Reader, value: &Value, place: String) -> Option<String> {
    let at = reader.object(value, place)?;
    if reader.must_text(&at, "type") != "jmes" {
        reader.fault(at.place("type"), "must be \"jmes\"");
    }
    reader.text(&at, "description");
    let text = reader.must_text(&at, "jmes");
    if text.len() > EXPRESSION_BYTES_MAX {
        reader
            .fault(at.place("jmes"), format!("must have at most {EXPRESSION_BYTES_MAX} bytes; it has {}", text.len()));
    }
    Some(text.to_owned())
}

/// `left` is how many more steps the document may have.
fn steps(reader: &mut Reader, at: &Fields<'_>, depth: usize, left: &mut usize) -> Vec<Step> {
    reader.must(at, "steps");
    if depth > DEPTH_MAX {
        reader.fault(at.place("steps"), format!("must not be embedded more than {DEPTH_MAX} deep"));
        return Vec::new();
    }
    let all = reader.list(at, "steps", *left);
    if reader.has(at, "steps") && all.is_empty() {
        reader.fault(
            at.place("steps"),
            format!("must have at least one step, and a workflow at most {STEPS_MAX} in all"),
        );
    }
    *left -= all.len();
    all.into_iter().filter_map(|(place, value)| step(reader, value, place, depth, left)).collect()
}

fn step(reader: &mut Reader, value: &Value, place: String, depth: usize, left: &mut usize) -> Option<Step> {
    let at = reader.object(value, place)?;
    let (label, common) = (label(reader, &at), common(reader, &at));
    Some(Step { label, common, work: work(reader, &at, depth, left)? })
}

fn work(reader: &mut Reader, at: &Fields<'_>, depth: usize, left: &mut usize) -> Option<Work> {
    match reader.must_text(at, "type") {
        "functionBlock" => reader.must_reference(at, "functionBlock").map(Work::Block),
        "workflow" => Some(Work::Embedded {
            name: reader.must_sized(at, "name", 1, 100).to_owned(),
            parallel: parallel(reader, at),
            steps: steps(reader, at, depth + 1, left),
        }),
        "workflowReference" => {
            let strategy = strategy(reader, at);
            Some(Work::Workflow { reference: reader.must_reference(at, "workflow")?, strategy: strategy? })
        }
        other => {
            let text = format!("must be functionBlock, workflow or workflowReference; it is {other:?}");
            reader.fault(at.place("type"), text);
            None
        }
    }
}

fn strategy(reader: &mut Reader, at: &Fields<'_>) -> Option<Strategy> {
    match reader.must_text(at, "strategy") {
        "embed" => Some(Strategy::Embed),
        "dispatch" => Some(Strategy::Dispatch),
        other => {
            reader.fault(at.place("strategy"), format!("must be embed or dispatch; it is {other:?}"));
            None
        }
    }
}

/// Results are found by label, in one scope for the whole workflow, and the workflow's own label is a name in it too.
fn labels(reader: &mut Reader, made: &Document) {
    let mut taken = BTreeSet::from([made.label.as_str()]);
    made.each(&mut |place, step| {
        if !taken.insert(&step.label) {
            let text = format!("{:?} is used twice; labels are unique in a workflow", step.label);
            reader.add(Fault { place: format!("{place}.label"), text, kind: FaultKind::Twice });
        }
    });
}
