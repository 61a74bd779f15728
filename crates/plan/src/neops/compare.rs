//! What changed between two versions of a workflow, and how large a step in its version number that calls for.

use super::{compare_schema, reference::Reference};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Findings told at once.
const FINDINGS_MAX: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Asks for no new version.
    Advisory,
    Patch,
    Minor,
    Major,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Advisory => "advisory",
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// One word for the kind of change.
    pub code: &'static str,
    /// A JSON pointer into the newer document; into the older one for what is gone.
    pub path: String,
    pub message: String,
    pub level: Level,
    pub target: Option<Target>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Step(String),
    Property(String),
}

/// The smallest step in the version that the findings allow. None: nothing changed that counts.
pub fn floor(findings: &[Finding]) -> Option<Level> {
    findings.iter().map(|finding| finding.level).max().filter(|level| *level > Level::Advisory)
}

/// Whether two documents say the same. Numbers count by value: 1 and 1.0 are one number in JSON.
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let fits = |(key, value)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(fits)
        }
        _ => one == other,
    }
}

/// What changed from one document to the other. Both are known to be in order.
pub fn compare(from: &Value, to: &Value) -> Vec<Finding> {
    let mut found = Found(Vec::new());
    let (empty, none) = (Map::new(), Value::Object(Map::new()));
    let (old, new) = (from.as_object().unwrap_or(&empty), to.as_object().unwrap_or(&empty));
    found.fields(old, new, "", None);
    let schema = |of: &Map<String, Value>| of.get("parameterSchema").unwrap_or(&none).clone();
    compare_schema::compare(&schema(old), &schema(new), &mut found);
    found.steps(&Steps::of(from), &Steps::of(to));
    found.0
}

pub(super) struct Found(pub Vec<Finding>);

impl Found {
    pub fn add(&mut self, level: Level, code: &'static str, path: String, message: String, target: Option<Target>) {
        if self.0.len() < FINDINGS_MAX {
            self.0.push(Finding { code, path, message, level, target });
        }
    }

    /// Fields of a workflow or a step, without those that are compared on their own.
    fn fields(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &str, label: Option<&str>) {
        let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let (before, after) = (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
            let Some((level, code)) = weight(key) else { continue };
            if !same(before, after) {
                let whose = label.map_or("the workflow".to_owned(), |label| format!("step {label:?}"));
                let message = format!("{key} of {whose} changed");
                self.add(
                    level,
                    code,
                    format!("{at}/{}", escaped(key)),
                    message,
                    label.map(|label| Target::Step(label.into())),
                );
            }
        }
    }

    fn steps(&mut self, old: &Steps<'_>, new: &Steps<'_>) {
        for (label, before) in &old.by_label {
            let Some(after) = new.by_label.get(label) else {
                self.step(Level::Major, "stepRemoved", &before.path, label, "was removed");
                continue;
            };
            if before.within != after.within {
                self.step(Level::Major, "stepMoved", &after.path, label, "moved into another workflow");
            }
            self.pin(before, after, label);
            self.fields(before.fields, after.fields, &after.path, Some(label));
        }
        for (label, after) in &new.by_label {
            if !old.by_label.contains_key(label) {
                self.step(Level::Minor, "stepAdded", &after.path, label, "was added");
            }
        }
        self.order(old, new);
    }

    /// Steps that both have, one of which now comes after another that it came before.
    fn order(&mut self, old: &Steps<'_>, new: &Steps<'_>) {
        let both = |steps: &Steps<'_>, other: &Steps<'_>| -> Vec<String> {
            steps
                .order
                .iter()
                .filter(|label| other.by_label.contains_key(**label))
                .map(|label| label.to_string())
                .collect()
        };
        let (before, after) = (both(old, new), both(new, old));
        if let Some(label) = before.iter().zip(&after).find(|(before, after)| before != after).map(|(_, after)| after) {
            let path = new.by_label.get(label.as_str()).map_or(String::new(), |step| step.path.clone());
            self.step(Level::Minor, "stepsReordered", &path, label, "has another place in the order");
        }
    }

    fn step(&mut self, level: Level, code: &'static str, path: &str, label: &str, what: &str) {
        self.add(level, code, path.into(), format!("step {label:?} {what}"), Some(Target::Step(label.into())));
    }

    /// What a step runs.
    fn pin(&mut self, before: &Placed<'_>, after: &Placed<'_>, label: &str) {
        let kind = |step: &Placed<'_>| step.fields.get("type").cloned();
        if kind(before) != kind(after) {
            self.step(Level::Major, "stepTypeChanged", &format!("{}/type", after.path), label, "has another type");
            return;
        }
        for field in ["functionBlock", "workflow"] {
            let read = |step: &Placed<'_>| step.fields.get(field).and_then(Value::as_str).and_then(Reference::parse);
            let (Some(old), Some(new)) = (read(before), read(after)) else { continue };
            if old == new {
                continue;
            }
            let same_major = (&old.package, &old.name, old.major) == (&new.package, &new.name, new.major);
            let (level, code) = if same_major { (Level::Minor, "pinChanged") } else { (Level::Major, "targetChanged") };
            self.step(level, code, &format!("{}/{field}", after.path), label, &format!("runs {new} instead of {old}"));
        }
    }
}

/// What a change of a field calls for. None: it is compared on its own, or is part of the version.
fn weight(field: &str) -> Option<(Level, &'static str)> {
    Some(match field {
        "steps" | "functionBlock" | "workflow" | "type" | "parameterSchema" | "majorVersion" | "minorVersion"
        | "patchVersion" => return None,
        "runOn" => (Level::Major, "runOnChanged"),
        "seedEntity" => (Level::Major, "seedEntityChanged"),
        "acquire" => (Level::Minor, "acquireChanged"),
        "assert" => (Level::Minor, "assertChanged"),
        "continueOnError" => (Level::Minor, "continueOnErrorChanged"),
        "label" | "name" | "package" | "description" | "condition" | "parameters" | "rawParameters" | "config"
        | "cron" | "hideForExecution" | "delay" | "retryConfig" | "repeatConfig" | "strategy" | "$schema" => {
            (Level::Patch, "fieldChanged")
        }
        _ => (Level::Minor, "unknownFieldChanged"),
    })
}

/// A step, where it is, and in which workflow.
struct Placed<'a> {
    fields: &'a Map<String, Value>,
    path: String,
    within: String,
}

/// Steps by their labels, which are unique.
struct Steps<'a> {
    by_label: BTreeMap<&'a str, Placed<'a>>,
    order: Vec<&'a str>,
}

impl<'a> Steps<'a> {
    fn of(document: &'a Value) -> Self {
        let mut all = Self { by_label: BTreeMap::new(), order: Vec::new() };
        all.collect(document, "", "");
        all
    }

    fn collect(&mut self, workflow: &'a Value, path: &str, within: &str) {
        let steps = workflow.get("steps").and_then(Value::as_array).into_iter().flatten();
        for (index, step) in steps.enumerate() {
            let (Some(fields), Some(label)) = (step.as_object(), step.get("label").and_then(Value::as_str)) else {
                continue;
            };
            let path = format!("{path}/steps/{index}");
            self.order.push(label);
            self.by_label.insert(label, Placed { fields, path: path.clone(), within: within.into() });
            self.collect(step, &path, label);
        }
    }
}

pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
