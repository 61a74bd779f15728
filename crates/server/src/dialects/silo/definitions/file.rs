//! One definition file: what it says, or everything that is wrong with it, each with its place.

use super::{Compute, Definition, Runner, Scope, ScopeKind, Trigger};
use crate::calendar::Calendar;
use serde::Serialize;
use std::collections::BTreeMap;
use windlass_product::rules::item::{is_plain_name, is_tag};
use windlass_yaml::{Booleans, Entry, Node, Tree};

pub const BYTES_MAX: usize = 1 << 20;
/// Every job carries a copy.
pub const ARGS_BYTES_MAX: usize = 32 << 10;
const TAGS_MAX: usize = 64;
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;
const TRIGGERS: [&str; 4] = ["revision_created", "bom_changed", "manual", "schedule"];
const COMPUTES: [&str; 5] = ["validate", "rebuild", "diff", "export", "custom"];

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub file: String,
    pub line: u64,
    pub column: u64,
    pub field: Option<String>,
    pub message: String,
}

/// Reads a file's text. `priority` is what counts where the file does not say.
pub fn parse(file: &str, text: &str, priority: i32) -> Result<Definition, Vec<Fault>> {
    let mut checker = Checker { file, faults: Vec::new() };
    let nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#') || line.trim() == "---";
    if text.lines().all(nothing) {
        checker.fault((1, 1), None, "the file is empty");
        return Err(checker.faults);
    }
    let tree: Tree = match windlass_yaml::read(text, BYTES_MAX, Booleans::Loose) {
        Ok(tree) => tree,
        Err(fault) => {
            checker.fault((fault.line.max(1), fault.column.max(1)), None, fault.text);
            return Err(checker.faults);
        }
    };
    let made = checker.definition(&tree, priority);
    match made {
        Some(definition) if checker.faults.is_empty() => Ok(definition),
        _ => Err(checker.faults),
    }
}

/// Where a file that can be used says its name.
pub fn name_place(text: &str) -> Spot {
    let inside = |tree: &Tree, key: &str| match &tree.node {
        Node::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.clone()),
        _ => None,
    };
    let tree: Option<Tree> = windlass_yaml::read(text, BYTES_MAX, Booleans::Loose).ok();
    let name = tree.and_then(|tree| inside(&inside(&tree, "job")?, "name"));
    name.map_or((1, 1), |name| spot(&name))
}

pub type Spot = (u64, u64);

struct Checker<'a> {
    file: &'a str,
    faults: Vec<Fault>,
}

/// A map whose keys are known, and where to point if one is missing.
struct Fields<'a> {
    entries: &'a [Entry],
    at: Spot,
    path: &'static str,
}

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a Entry> {
        let set = |entry: &&Entry| entry.key == key && !matches!(entry.value.node, Node::Null);
        self.entries.iter().find(set)
    }
    fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

fn spot(tree: &Tree) -> Spot {
    (tree.line, tree.column)
}

fn key_spot(entry: &Entry) -> Spot {
    (entry.line, entry.column)
}

impl Checker<'_> {
    fn fault(&mut self, (line, column): Spot, field: Option<String>, message: impl Into<String>) {
        let message = message.into();
        self.faults.push(Fault { file: self.file.to_owned(), line, column, field, message });
    }

    /// The entries of a map, after telling of those it should not have.
    fn fields<'t>(&mut self, tree: &'t Tree, at: Spot, path: &'static str, known: &[&str]) -> Option<Fields<'t>> {
        let Node::Map(entries) = &tree.node else {
            let field = (!path.is_empty()).then(|| path.to_owned());
            self.fault(spot(tree), field, format!("must be a map, not {}", tree.node.name()));
            return None;
        };
        let fields = Fields { entries, at, path };
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let why = format!("unknown key {:?}; known here: {}", entry.key, known.join(", "));
            self.fault(key_spot(entry), Some(fields.name(&entry.key)), why);
        }
        Some(fields)
    }

    fn missing(&mut self, fields: &Fields, key: &str) {
        self.fault(fields.at, Some(fields.name(key)), format!("{} is required", fields.name(key)));
    }

    fn text<'t>(&mut self, fields: &Fields<'t>, key: &str) -> Option<(&'t str, Spot)> {
        let entry = fields.get(key)?;
        match &entry.value.node {
            Node::Text(text) => Some((text, spot(&entry.value))),
            other => {
                let why = format!("must be text, not {}", other.name());
                self.fault(spot(&entry.value), Some(fields.name(key)), why);
                None
            }
        }
    }

    fn whole(&mut self, fields: &Fields, key: &str, least: i64, most: i64) -> Option<i64> {
        let entry = fields.get(key)?;
        let fits = |value: &i64| (least..=most).contains(value);
        match &entry.value.node {
            Node::Whole(value) if fits(value) => Some(*value),
            Node::Whole(value) => {
                let why = format!("{value} is not between {least} and {most}");
                self.fault(spot(&entry.value), Some(fields.name(key)), why);
                None
            }
            other => {
                let why = format!("must be a whole number, not {}", other.name());
                self.fault(spot(&entry.value), Some(fields.name(key)), why);
                None
            }
        }
    }

    fn choice(&mut self, fields: &Fields, key: &str, choices: &[&str]) -> Option<String> {
        let (text, at) = self.text(fields, key)?;
        if choices.contains(&text) {
            return Some(text.to_owned());
        }
        self.fault(at, Some(fields.name(key)), format!("{text:?} is none of {}", choices.join(", ")));
        None
    }

    fn required_choice(&mut self, fields: &Fields, key: &str, choices: &[&str]) -> Option<String> {
        if fields.get(key).is_none() {
            self.missing(fields, key);
            return None;
        }
        self.choice(fields, key, choices)
    }

    fn required_name(&mut self, fields: &Fields, key: &str) -> Option<String> {
        if fields.get(key).is_none() {
            self.missing(fields, key);
            return None;
        }
        let (text, at) = self.text(fields, key)?;
        if is_plain_name(text, 128) {
            return Some(text.to_owned());
        }
        let why = format!("{text:?} must have 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or digit");
        self.fault(at, Some(fields.name(key)), why);
        None
    }

    fn definition(&mut self, tree: &Tree, priority: i32) -> Option<Definition> {
        let top = self.fields(tree, (1, 1), "", &["job"])?;
        let Some(job) = top.get("job") else {
            self.missing(&top, "job");
            return None;
        };
        const KNOWN: [&str; 10] = [
            "name",
            "version",
            "description",
            "trigger",
            "scope",
            "compute",
            "runner",
            "timeout",
            "max_retries",
            "priority",
        ];
        let fields = self.fields(&job.value, key_spot(job), "", &KNOWN)?;
        let name = self.required_name(&fields, "name");
        let version = self.whole(&fields, "version", 1, u32::MAX.into()).unwrap_or(1);
        let description = self.text(&fields, "description").map(|(text, at)| {
            if text.len() > DESCRIPTION_BYTES_MAX {
                self.fault(at, Some("description".into()), format!("may have {DESCRIPTION_BYTES_MAX} bytes"));
            }
            text.to_owned()
        });
        let trigger = self.trigger(&fields);
        let scheduled = trigger.as_ref().is_none_or(|trigger| trigger.kind == "schedule");
        let scope = self.scope(&fields, scheduled);
        let compute = self.compute(&fields);
        let runner = self.runner(&fields);
        let timeout = self.either(&fields, runner.as_ref(), "timeout", 1, 604_800).unwrap_or(600);
        let max_retries = self.either(&fields, runner.as_ref(), "max_retries", 0, 100).unwrap_or(1);
        let own_priority = self.either(&fields, runner.as_ref(), "priority", -1_000_000, 1_000_000);
        Some(Definition {
            name: name?,
            version: version as u32,
            description: description.unwrap_or_default(),
            trigger: trigger?,
            scope: scope?,
            compute: compute?,
            runner: Runner { tags: self.tags(runner.as_ref()) },
            timeout: timeout as u64,
            max_retries: max_retries as u32,
            priority: own_priority.map_or(priority, |priority| priority as i32),
            source_file: self.file.to_owned(),
        })
    }

    /// A key that may stand under `job` or under `runner`, or under both if they say the same.
    fn either(&mut self, job: &Fields, runner: Option<&Fields>, key: &str, least: i64, most: i64) -> Option<i64> {
        let own = self.whole(job, key, least, most);
        let theirs = runner.and_then(|runner| self.whole(runner, key, least, most));
        if let (Some(own), Some(theirs), Some(entry)) = (own, theirs, runner.and_then(|runner| runner.get(key)))
            && own != theirs
        {
            let why = format!("{key} is {own} under job and {theirs} under runner");
            self.fault(spot(&entry.value), Some(format!("runner.{key}")), why);
        }
        own.or(theirs)
    }

    fn trigger(&mut self, job: &Fields) -> Option<Trigger> {
        let Some(entry) = job.get("trigger") else {
            self.missing(job, "trigger");
            return None;
        };
        let fields =
            self.fields(&entry.value, spot(&entry.value), "trigger", &["type", "filter", "cron", "timezone"])?;
        let kind = self.required_choice(&fields, "type", &TRIGGERS);
        let filter = self.filter(&fields);
        let scheduled = kind.as_deref().is_none_or(|kind| kind == "schedule");
        for key in ["cron", "timezone"] {
            if let Some(entry) = fields.get(key).filter(|_| !scheduled) {
                let why = format!("{key} goes with trigger type schedule only");
                self.fault(key_spot(entry), Some(fields.name(key)), why);
            }
        }
        let cron = self.text(&fields, "cron");
        let zone = self.text(&fields, "timezone");
        if let (Some("schedule"), Some(cron)) = (kind.as_deref(), cron) {
            self.calendar(&fields, cron, zone);
        }
        let timezone = zone.map(|(zone, _)| zone.to_owned());
        let timezone = timezone.or_else(|| (kind.as_deref() == Some("schedule")).then(|| "UTC".to_owned()));
        Some(Trigger { kind: kind?, filter, cron: cron.map(|(cron, _)| cron.to_owned()), timezone })
    }

    fn calendar(&mut self, fields: &Fields, (cron, at): (&str, Spot), zone: Option<(&str, Spot)>) {
        let Err(problem) = Calendar::new(cron, zone.map(|(zone, _)| zone)) else { return };
        let at_zone = problem.0.field.as_deref() == Some("time_zone");
        match zone.filter(|_| at_zone) {
            Some((_, at)) => self.fault(at, Some(fields.name("timezone")), problem.0.detail),
            None => self.fault(at, Some(fields.name("cron")), problem.0.detail),
        }
    }

    fn filter(&mut self, trigger: &Fields) -> BTreeMap<String, String> {
        let mut filter = BTreeMap::new();
        let Some(entry) = trigger.get("filter") else { return filter };
        let known = &["item_type", "schema"];
        let Some(fields) = self.fields(&entry.value, spot(&entry.value), "trigger.filter", known) else {
            return filter;
        };
        for entry in fields.entries.iter().filter(|entry| known.contains(&entry.key.as_str())) {
            let scalar = match &entry.value.node {
                Node::Text(text) => Some(text.clone()),
                Node::Bool(_) | Node::Whole(_) | Node::Number(_) => {
                    entry.value.node.json().map(|value| value.to_string())
                }
                Node::Null | Node::List(_) | Node::Map(_) => None,
            };
            match scalar {
                Some(text) => drop(filter.insert(entry.key.clone(), text)),
                None => {
                    let why = format!("must be a single value, not {}", entry.value.node.name());
                    self.fault(spot(&entry.value), Some(fields.name(&entry.key)), why);
                }
            }
        }
        filter
    }

    fn scope(&mut self, job: &Fields, scheduled: bool) -> Option<Scope> {
        let Some(entry) = job.get("scope") else {
            return Some(Scope { kind: ScopeKind::Item, part_number: None, project: None });
        };
        let fields = self.fields(&entry.value, spot(&entry.value), "scope", &["type", "part_number", "project"])?;
        let kind = match fields.get("type") {
            None => ScopeKind::Item,
            Some(_) => match self.choice(&fields, "type", &["item", "assembly", "project"])?.as_str() {
                "assembly" => ScopeKind::Assembly,
                "project" => ScopeKind::Project,
                _ => ScopeKind::Item,
            },
        };
        for key in ["part_number", "project"] {
            if let Some(entry) = fields.get(key).filter(|_| !scheduled) {
                let why = format!("{key} goes with trigger type schedule only");
                self.fault(key_spot(entry), Some(fields.name(key)), why);
            }
        }
        let own = |found: Option<(&str, Spot)>| found.map(|(text, _)| text.to_owned());
        let part_number = own(self.text(&fields, "part_number"));
        Some(Scope { kind, part_number, project: own(self.text(&fields, "project")) })
    }

    fn compute(&mut self, job: &Fields) -> Option<Compute> {
        let Some(entry) = job.get("compute") else {
            self.missing(job, "compute");
            return None;
        };
        let fields = self.fields(&entry.value, spot(&entry.value), "compute", &["type", "command", "args"])?;
        let kind = self.required_choice(&fields, "type", &COMPUTES);
        let command = self.required_name(&fields, "command");
        let args = fields.get("args").map_or(Some(serde_json::json!({})), |entry| entry.value.node.json());
        let args = match args {
            Some(serde_json::Value::Object(args)) if serde_json::json!(args).to_string().len() <= ARGS_BYTES_MAX => {
                Some(args)
            }
            other => {
                let at = fields.get("args").map_or(fields.at, |entry| spot(&entry.value));
                let why = match other {
                    Some(serde_json::Value::Object(_)) => format!("may have {ARGS_BYTES_MAX} bytes as JSON"),
                    _ => "must be a map that JSON can hold".to_owned(),
                };
                self.fault(at, Some(fields.name("args")), why);
                None
            }
        };
        Some(Compute { kind: kind?, command: command?, args: args? })
    }

    fn runner<'t>(&mut self, job: &Fields<'t>) -> Option<Fields<'t>> {
        let entry = job.get("runner")?;
        let known = ["tags", "timeout", "max_retries", "priority"];
        self.fields(&entry.value, spot(&entry.value), "runner", &known)
    }

    fn tags(&mut self, runner: Option<&Fields>) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        let Some(entry) = runner.and_then(|runner| runner.get("tags")) else { return tags };
        let Node::List(list) = &entry.value.node else {
            let why = format!("must be a list, not {}", entry.value.node.name());
            self.fault(spot(&entry.value), Some("runner.tags".into()), why);
            return tags;
        };
        for tree in list {
            match &tree.node {
                Node::Text(text) if is_tag(text) => {
                    if !tags.contains(text) {
                        tags.push(text.clone());
                    }
                }
                _ => {
                    let why = "a tag has 1 to 64 of A-Z a-z 0-9 . _ : -, starting with a letter or digit";
                    self.fault(spot(tree), Some("runner.tags".into()), why);
                }
            }
        }
        if tags.len() > TAGS_MAX {
            self.fault(spot(&entry.value), Some("runner.tags".into()), format!("{TAGS_MAX} tags are possible"));
        }
        tags
    }
}
