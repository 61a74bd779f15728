//! What comes next in a run: its first jobs, and what becomes of a step whose turn has come.
//!
//! Everything here follows from the definition, the input, and facts that no longer change (how the steps before ended, and
//! what they gave), so deciding once more decides the same.

use crate::{
    meter::Meter,
    nodes::{self, Recipe},
    template::Template,
    vars::Vars,
    workflow::{Step, Work, Workflow},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map as Fields, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use windlass_api::JobSettings;
use windlass_core::{
    JobId, Payload, RunId, State, Timestamp,
    commands::{
        advance::Move,
        submit_run::{RunNode, RunPlan},
    },
    payload::pieces,
    stage::Stage,
};

/// Items of one map.
pub const ITEMS_MAX: usize = 10_000;
/// Memory that a run's input may take, so that expressions can look at it.
pub const INPUT_ROOM_MAX: u64 = 20 << 20;
/// Sub-workflows in sub-workflows.
pub const DEPTH_MAX: usize = 5;
/// Steps that undo others are named so.
pub const UNDO: &str = "~undo/";
const PART_BYTES: usize = 64 << 10;
const NAMED_MAX: usize = 5;

/// All that a run is planned from, fixed when the run is made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Bundle {
    pub source: String,
    /// Sub-workflows, by the name they are called by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subs: BTreeMap<String, String>,
    /// Versions of the definitions of jobs, by the name they are called by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
}

impl Bundle {
    /// In pieces that fit a record.
    pub fn parts(&self) -> Vec<String> {
        let text = serde_json::to_string(self).expect("plain data with string keys");
        pieces(&text, PART_BYTES).map(str::to_owned).collect()
    }

    pub fn join<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let text: String = parts.into_iter().collect();
        serde_json::from_str(&text).map_err(|error| format!("the plan of the run cannot be read: {error}"))
    }
}

pub struct Plan {
    pub main: Workflow,
    subs: HashMap<String, Workflow>,
    pub(crate) recipes: HashMap<String, Recipe>,
    pub(crate) run: RunId,
    pub input: Value,
}

/// A step that asks what becomes of it.
#[derive(Clone, Copy, Debug)]
pub struct StepTurn<'a> {
    pub name: &'a str,
    pub job: JobId,
    /// Its members have ended; otherwise what it needs has.
    pub gathers: bool,
}

/// How another step ended, and what it gave, if that is wanted.
#[derive(Clone, Debug)]
pub struct Fact {
    pub name: String,
    pub state: State,
    /// It, or what it waited for, did not complete.
    pub failure: bool,
    pub output: Value,
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What it needs; or its members, where it gathers.
    pub others: Vec<Fact>,
    /// Payload and result of the job it belongs to, or undoes.
    pub of: (Value, Value),
}

/// A completed job, for undoing.
#[derive(Clone, Debug)]
pub struct Done {
    pub name: String,
    pub job: JobId,
    pub at: Timestamp,
}

/// Where a name leads.
pub(crate) struct NamedStep<'a, 'n> {
    pub workflow: &'a Workflow,
    pub step: &'a Step,
    /// Of its neighbours' names.
    pub prefix: &'n str,
    item: Option<usize>,
}

impl Plan {
    pub fn new(bundle: &Bundle, run: RunId, recipes: HashMap<String, Recipe>) -> Result<Self, String> {
        let parse = |name: &str, text: &str| {
            Workflow::parse(text).map_err(|faults| {
                let first = faults.first().map(ToString::to_string).unwrap_or_default();
                format!("the workflow {name} cannot be used: {first}")
            })
        };
        let main = parse("itself", &bundle.source)?;
        let subs = bundle.subs.iter().map(|(name, text)| Ok((name.clone(), parse(name, text)?)));
        Self::of(main, subs.collect::<Result<_, String>>()?, bundle.input.clone(), run, recipes)
    }

    /// From workflows that were read already.
    pub fn of(
        main: Workflow,
        subs: HashMap<String, Workflow>,
        input: Value,
        run: RunId,
        recipes: HashMap<String, Recipe>,
    ) -> Result<Self, String> {
        let plan = Self { main, subs, recipes, run, input };
        plan.depth(&plan.main, &mut Vec::new(), &mut HashMap::new())?;
        Ok(plan)
    }

    /// How deep workflows lie in workflows, each looked at once.
    fn depth<'a>(
        &'a self,
        workflow: &'a Workflow,
        path: &mut Vec<&'a str>,
        known: &mut HashMap<&'a str, usize>,
    ) -> Result<usize, String> {
        let mut deepest = 0;
        for name in workflow.subs().collect::<BTreeSet<_>>() {
            if path.contains(&name) {
                return Err(format!("workflows contain each other: {} -> {name}", path.join(" -> ")));
            }
            let depth = match known.get(name) {
                Some(depth) => *depth,
                None => {
                    let sub = self.subs.get(name).ok_or_else(|| format!("there is no workflow {name}"))?;
                    path.push(name);
                    let depth = 1 + self.depth(sub, path, known)?;
                    path.pop();
                    known.insert(name, depth);
                    depth
                }
            };
            deepest = deepest.max(depth);
        }
        if path.len() + deepest > DEPTH_MAX {
            return Err(format!("workflows in workflows, {} deep; at most {DEPTH_MAX}", path.len() + deepest));
        }
        Ok(deepest)
    }

    pub fn is_staged(&self) -> bool {
        self.main.is_staged()
    }

    pub fn compensates(&self) -> bool {
        self.main.compensates() || self.subs.values().any(Workflow::compensates)
    }

    /// What the run keeps for its planner; nothing, if it needs none.
    pub fn keeps(&self, bundle: &Bundle) -> RunPlan {
        let parts = if self.is_staged() { bundle.parts() } else { Vec::new() };
        let parts = parts.into_iter().map(Into::into).collect();
        RunPlan { parts, compensates: self.compensates(), ..RunPlan::default() }
    }

    /// The jobs a run begins with.
    pub fn nodes(&self, ids: &mut dyn FnMut() -> JobId, meter: &Meter) -> Result<Vec<RunNode>, String> {
        nodes::of_workflow(self, &self.main, "", None, ids, meter)
    }

    /// Whether the output of another step, or member, is wanted for deciding.
    pub fn wants(&self, asked: StepTurn, other: &str) -> bool {
        let Some(place) = self.find(asked.name) else { return false };
        let local = other.rsplit('/').next().unwrap_or(other);
        if !asked.gathers {
            return place.step.looks_at(local);
        }
        if place.step.map.is_some() && place.item.is_none() {
            return true;
        }
        self.sub(place.step).is_some_and(|sub| sub.gives.contains(local))
    }

    pub(crate) fn find<'a, 'n>(&'a self, name: &'n str) -> Option<NamedStep<'a, 'n>> {
        let mut workflow = &self.main;
        let mut from = 0;
        loop {
            let rest = &name[from..];
            let segment = &rest[..rest.find('/').unwrap_or(rest.len())];
            let (id, item) = match segment.split_once('[') {
                Some((id, item)) => (id, Some(item.strip_suffix(']')?.parse().ok()?)),
                None => (segment, None),
            };
            let step = &workflow.steps[*workflow.by_id.get(id)?];
            if segment.len() == rest.len() {
                return Some(NamedStep { workflow, step, prefix: &name[..from], item });
            }
            workflow = self.sub(step)?;
            from += segment.len() + 1;
        }
    }

    fn sub(&self, step: &Step) -> Option<&Workflow> {
        match &step.work {
            Work::Sub { workflow, .. } => self.subs.get(workflow),
            Work::Job(_) | Work::Wait(_) => None,
        }
    }

    /// What becomes of a step. Whatever cannot be worked out fails the step, and says why.
    pub fn decide(&self, asked: StepTurn, facts: &Facts, ids: &mut dyn FnMut() -> JobId, meter: &Meter) -> Move {
        let decided = match asked.name.strip_prefix(UNDO) {
            Some(undone) => self.undo_one(undone, facts, meter),
            None if asked.gathers => self.gather(asked, facts, meter),
            None => self.begin(asked, facts, ids, meter),
        };
        decided.unwrap_or_else(|why| Move::Fail { why: why.into() })
    }

    fn place<'a, 'n>(&'a self, name: &'n str) -> Result<NamedStep<'a, 'n>, String> {
        self.find(name).ok_or_else(|| format!("the workflow has no step {name}"))
    }

    fn begin(
        &self,
        asked: StepTurn,
        facts: &Facts,
        ids: &mut dyn FnMut() -> JobId,
        meter: &Meter,
    ) -> Result<Move, String> {
        let place = self.place(asked.name)?;
        let mut vars = self.vars(&place, facts, meter)?;
        if place.item.is_none() {
            if let Some(condition) = &place.step.condition
                && !condition.holds(&vars, meter)?
            {
                return Ok(Move::Skip { why: "its condition is false".into() });
            }
            if place.step.map.is_some() {
                return self.map(asked, &place, &mut vars, ids, meter);
            }
        }
        match &place.step.work {
            Work::Wait(_) => Ok(Move::Go { payload: Payload::default() }),
            Work::Job(payload) => Ok(Move::Go { payload: self.payload(place.step, payload.as_ref(), &vars, meter)? }),
            Work::Sub { input, .. } => {
                let sub = self.sub(place.step).ok_or("its workflow is gone")?;
                let input = input.fill(&vars, meter)?;
                let made = nodes::of_workflow(self, sub, &format!("{}/", asked.name), Some(asked.job), ids, meter)?;
                expand(made, [("input", input)], meter)
            }
        }
    }

    /// What was filled in is gone again when its text is there.
    pub(crate) fn payload(
        &self,
        step: &Step,
        template: Option<&Template>,
        vars: &Vars,
        meter: &Meter,
    ) -> Result<Payload, String> {
        let before = meter.mark();
        let made = match template {
            Some(template) => payload(&template.fill(vars, meter)?, meter)?,
            None => match self.recipe(step).and_then(|recipe| recipe.payload.as_ref()) {
                Some(value) => payload(value, meter)?,
                None => Payload::default(),
            },
        };
        meter.back_to(before);
        Ok(made)
    }

    pub(crate) fn recipe(&self, step: &Step) -> Option<&Recipe> {
        step.definition.as_ref().and_then(|name| self.recipes.get(name))
    }

    fn vars(&self, place: &NamedStep, facts: &Facts, meter: &Meter) -> Result<Vars, String> {
        let mut vars = Vars::default();
        let mut set = |name, value: &Value| {
            meter.fits(2 * meter.weigh(value)?)?;
            vars.set(name, value.clone());
            Ok::<_, String>(())
        };
        let of = &facts.of.0;
        // An item's own scope is that of its map.
        let input =
            if place.item.is_some() { of.get("outer") } else { of.get("input").filter(|_| !place.prefix.is_empty()) };
        set("input", input.unwrap_or(&self.input))?;
        match place.item {
            Some(at) => {
                set("item", &of["items"][at])?;
                set("index", &json!(at))?;
            }
            None => set("steps", &steps(&facts.others))?,
        }
        Ok(vars)
    }

    fn map(
        &self,
        asked: StepTurn,
        place: &NamedStep,
        vars: &mut Vars,
        ids: &mut dyn FnMut() -> JobId,
        meter: &Meter,
    ) -> Result<Move, String> {
        let map = place.step.map.as_ref().ok_or("it has no items")?;
        let items = match map.over.fill(vars, meter)? {
            Value::Array(items) => items,
            other => return Err(format!("map.over must be a list, not {}", kind(&other))),
        };
        if items.is_empty() {
            return Ok(Move::Complete { result: Payload::from("[]") });
        }
        if items.len() > ITEMS_MAX {
            return Err(format!("map.over has {} items; at most {ITEMS_MAX}", items.len()));
        }
        let is_sub = matches!(place.step.work, Work::Sub { .. });
        let mut made = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let name = format!("{}[{at}]", asked.name);
            let mut node = nodes::item(self, place, &name, asked, ids, meter)?;
            if let Work::Job(template) = &place.step.work {
                let payload = self.payload_of(at, item, place.step, template.as_ref(), vars, meter);
                node.job.payload = payload.map_err(|why| format!("item {at}: {why}"))?;
            }
            made.push(node);
        }
        if !is_sub {
            return expand(made, [], meter);
        }
        let outer = vars.take("input");
        expand(made, [("items", Value::Array(items)), ("outer", outer)], meter)
    }

    /// The payload of one item, which is copied only if something could look at it.
    fn payload_of(
        &self,
        at: usize,
        item: &Value,
        step: &Step,
        template: Option<&Template>,
        vars: &mut Vars,
        meter: &Meter,
    ) -> Result<Payload, String> {
        if template.is_some_and(|template| !template.is_plain()) {
            meter.fits(2 * meter.weigh(item)?)?;
            vars.set("item", item.clone());
            vars.set("index", json!(at));
        }
        self.payload(step, template, vars, meter)
    }

    fn gather(&self, asked: StepTurn, facts: &Facts, meter: &Meter) -> Result<Move, String> {
        let place = self.place(asked.name)?;
        let failed: Vec<&str> =
            facts.others.iter().filter(|fact| fact.failure).map(|fact| fact.name.as_str()).collect();
        if !failed.is_empty() {
            let more = if failed.len() > NAMED_MAX { ", …" } else { "" };
            let named = failed[..failed.len().min(NAMED_MAX)].join(", ");
            return Err(format!("{} of {} did not complete: {named}{more}", failed.len(), facts.others.len()));
        }
        let result = if place.step.map.is_some() && place.item.is_none() {
            for fact in &facts.others {
                meter.keep(meter.weigh(&fact.output)?)?;
            }
            Value::Array(facts.others.iter().map(|fact| fact.output.clone()).collect())
        } else {
            let mut vars = Vars::default();
            vars.set("steps", steps(&facts.others));
            let outputs = self.sub(place.step).and_then(|sub| sub.outputs.as_ref());
            outputs.map_or(Ok(Value::Null), |outputs| outputs.fill(&vars, meter))?
        };
        Ok(Move::Complete { result: payload(&result, meter)? })
    }

    /// What undoes these, the last completed first, one after the other.
    pub fn undo(&self, done: &[Done], ids: &mut dyn FnMut() -> JobId, meter: &Meter) -> Result<Vec<RunNode>, String> {
        let mut done: Vec<(&Done, &Step)> =
            done.iter().filter_map(|done| Some((done, self.undoable(&done.name)?))).collect();
        done.sort_by_key(|(done, _)| std::cmp::Reverse((done.at, done.job)));
        let mut made: Vec<RunNode> = Vec::with_capacity(done.len());
        for (done, step) in done {
            let needs = made.last().map(|node| node.name.clone()).into_iter().collect();
            made.extend(nodes::undo(step, done, needs, ids, meter)?);
        }
        Ok(made)
    }

    fn undoable(&self, name: &str) -> Option<&Step> {
        let place = self.find(name)?;
        let leaf = place.step.map.is_some() == place.item.is_some();
        (leaf && place.step.undo.is_some()).then_some(place.step)
    }

    fn undo_one(&self, undone: &str, facts: &Facts, meter: &Meter) -> Result<Move, String> {
        let undo = self.place(undone)?.step.undo.as_ref().ok_or("nothing undoes it")?;
        let mut vars = Vars::default();
        meter.fits(2 * meter.weigh(&self.input)?)?;
        vars.set("input", self.input.clone());
        vars.set("payload", facts.of.0.clone());
        vars.set("output", facts.of.1.clone());
        Ok(Move::Go { payload: payload(&undo.payload.fill(&vars, meter)?, meter)? })
    }

    /// What a step's job has beside its payload.
    pub(crate) fn settings(&self, step: &Step) -> JobSettings {
        match self.recipe(step) {
            Some(recipe) => step.settings.clone().or(&recipe.settings),
            None => step.settings.clone(),
        }
    }
}

/// `members` are told apart from the payload's other fields, because their ids are new when the run is retried.
fn expand<const N: usize>(nodes: Vec<RunNode>, fields: [(&str, Value); N], meter: &Meter) -> Result<Move, String> {
    let mut kept: Fields<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    kept.insert("members".into(), nodes.iter().map(|node| node.job.id.to_string()).collect());
    Ok(Move::Expand { nodes, payload: payload(&Value::Object(kept), meter)? })
}

/// The jobs a step was expanded to, by its payload.
pub fn members(payload: &Value) -> Vec<JobId> {
    let ids = payload["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    ids.iter().filter_map(|id| id.as_str()?.parse().ok()).collect()
}

pub(crate) fn payload(value: &Value, meter: &Meter) -> Result<Payload, String> {
    if value.is_null() {
        return Ok(Payload::default());
    }
    let text = meter.text(value)?;
    meter.send(text.len() as u64)?;
    Ok(Payload::from(text.as_str()))
}

/// By their own ids, without what comes before.
fn steps(facts: &[Fact]) -> Value {
    let step = |fact: &Fact| {
        let id = fact.name.rsplit('/').next().unwrap_or(&fact.name);
        (id.to_owned(), json!({"state": fact.state.name(), "output": fact.output}))
    };
    Value::Object(facts.iter().map(step).collect())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

pub(crate) fn stage(plan: bool, of: Option<JobId>) -> Stage {
    Stage { plan, wait: None, of }
}
