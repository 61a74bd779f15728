//! What becomes of a step in its turn: skipped, failed, or one piece of work for each entity.

use super::{
    acquire::{Acquire, By},
    course::Step,
    expression::{self, Expression},
    reference::EntityType,
    scope::{Part, Scope},
    template,
    updates::{self, Update},
};
use crate::meter::Meter;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Bytes of the parameters that one step may hand out in all.
const PARAMETERS_MAX: usize = 32 << 20;

/// What a step's expressions may look at. Copies share the entities.
#[derive(Clone)]
pub struct World {
    /// The workflow's own label: the whole scope is found under it, too.
    pub label: String,
    pub parameters: Part,
    context: BTreeMap<EntityType, Arc<BTreeMap<u64, Part>>>,
    lists: BTreeMap<EntityType, Part>,
    results: BTreeMap<String, Results>,
}

/// What a step gave: one result, or one for each entity.
#[derive(Clone)]
struct Results {
    on: EntityType,
    one: Option<Part>,
    each: BTreeMap<u64, Part>,
    all: Part,
}

/// Where a type is found in a context, and what it is called in expressions: all of them, and the one a step runs on.
const NAMES: [(EntityType, &str, &str, &str); 3] = [
    (EntityType::Device, "devices", "devices", "device"),
    (EntityType::Group, "deviceGroups", "device_groups", "device_group"),
    (EntityType::Interface, "interfaces", "interfaces", "interface"),
];

#[derive(Debug, PartialEq)]
pub enum Begun {
    Skip(&'static str),
    /// The reason's code, and the reason.
    Fail(&'static str, String),
    Work(Vec<(Option<u64>, Value)>),
}

impl World {
    /// `context` has the three lists of a job's context.
    pub fn new(label: &str, parameters: &Value, context: &Value) -> Self {
        let (mut entities, mut lists) = (BTreeMap::new(), BTreeMap::new());
        for (entity, list, _, _) in NAMES {
            let all = context.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let parts: Vec<(Option<u64>, Part)> =
                all.iter().map(|one| (one.get("id").and_then(Value::as_u64), Part::entity(one))).collect();
            lists.insert(entity, Part::list(parts.iter().map(|(_, part)| part.clone())));
            entities.insert(entity, Arc::new(parts.into_iter().filter_map(|(id, part)| Some((id?, part))).collect()));
        }
        Self {
            label: label.to_owned(),
            parameters: Part::new(parameters),
            context: entities,
            lists,
            results: BTreeMap::new(),
        }
    }

    /// What a step before gave, by entity.
    pub fn gave(&mut self, label: &str, on: EntityType, results: &[(Option<u64>, Value)]) {
        let one = results.iter().find(|(entity, _)| entity.is_none()).map(|(_, result)| Part::new(result));
        let each: BTreeMap<u64, Part> =
            results.iter().filter_map(|(entity, result)| Some(((*entity)?, Part::new(result)))).collect();
        let all = Part::object(each.iter().map(|(id, part)| (id.to_string(), part.clone())));
        self.results.insert(label.to_owned(), Results { on, one, each, all });
    }

    /// Bytes of memory that the entities take, roughly.
    pub fn room(&self) -> usize {
        self.lists.values().map(Part::room).sum()
    }

    /// What was changed since the entities were read. Only those that it is about are read again.
    pub fn change(&mut self, changes: &[Update]) {
        for (entity, list, _, _) in NAMES {
            let mine: Vec<Update> = changes.iter().filter(|change| change.entity == entity).cloned().collect();
            if mine.is_empty() {
                continue;
            }
            let all = Arc::make_mut(self.context.entry(entity).or_default());
            let touched: BTreeSet<u64> = mine.iter().map(|change| change.id).collect();
            let known: Vec<Value> = touched.iter().filter_map(|id| all.remove(id)).map(|part| part.json()).collect();
            let mut few = json!({ list: known });
            updates::apply(&mut few, &mine);
            let left = few[list].as_array().map(Vec::as_slice).unwrap_or_default();
            all.extend(left.iter().filter_map(|one| Some((one.get("id")?.as_u64()?, Part::entity(one)))));
            self.lists.insert(entity, Part::list(all.values().cloned()));
        }
    }

    /// Entities of a type, in order.
    pub fn entities(&self, on: EntityType) -> Vec<u64> {
        self.context.get(&on).map(|all| all.keys().copied().collect()).unwrap_or_default()
    }

    pub fn scope(&self, on: EntityType, entity: Option<u64>) -> Scope {
        let mut context = Vec::new();
        for (of, _, all, one) in NAMES {
            context.push((all.to_owned(), self.lists[&of].clone()));
            let here = entity.filter(|_| of == on).and_then(|id| self.context[&of].get(&id));
            context.push((one.to_owned(), here.cloned().unwrap_or_else(Part::null)));
        }
        let step = |(label, results): (&String, &Results)| {
            let own = entity.filter(|_| results.on == on).and_then(|id| results.each.get(&id));
            let result = results.one.as_ref().or(own).cloned().unwrap_or_else(Part::null);
            let fields = [("result".to_owned(), result), ("results".to_owned(), results.all.clone())];
            (label.clone(), Part::object(fields))
        };
        let steps: Vec<(String, Part)> = self.results.iter().map(step).collect();
        let mut all = steps.clone();
        all.push(("parameters".to_owned(), self.parameters.clone()));
        all.push(("context".to_owned(), Part::object(context)));
        all.push(("steps".to_owned(), Part::object(steps)));
        let whole = Part::object(all.clone());
        all.push((self.label.clone(), whole));
        Scope::new(all)
    }

    /// Whether a clause about entities of a context lets this one through. The error: it takes more than the budget.
    fn passes(&self, filter: &str, on: EntityType, id: u64, meter: &Meter) -> Result<bool, String> {
        let Some(entity) = self.context.get(&on).and_then(|all| all.get(&id)) else { return Ok(false) };
        let before = meter.mark();
        let found = template::fill(&Value::from(filter), &self.scope(EntityType::Global, None), meter);
        let found = found.and_then(|filled| match filled.as_str() {
            Some(text) => Expression::new(text)?.search(&Scope::only(entity.clone()), meter),
            None => Ok(Value::Null),
        });
        meter.back_to(before);
        match found {
            Err(why) if meter.is_over() => Err(why),
            found => Ok(!matches!(found, Err(_) | Ok(Value::Null | Value::Bool(false)))),
        }
    }

    /// Entities that these clauses leave to a step; of one alone, whether it is left. The error: a filter takes too much.
    pub fn left_by(
        &self,
        clauses: &[Acquire],
        on: EntityType,
        only: Option<u64>,
        meter: &Meter,
    ) -> Result<Vec<u64>, String> {
        let mut left = match only {
            Some(id) => self.context.get(&on).filter(|all| all.contains_key(&id)).map(|_| id).into_iter().collect(),
            None => self.entities(on),
        };
        for clause in clauses.iter().filter(|clause| clause.entity == on) {
            if let By::Context { filter: Some(filter) } = &clause.by {
                let mut passed = Vec::new();
                for id in left {
                    if self.passes(filter, on, id, meter)? {
                        passed.push(id);
                    }
                }
                left = passed;
            }
        }
        Ok(left)
    }
}

/// Decides a step, for all its entities or for one of them. `clauses`: which entities it is for, beside its own.
pub fn begin(step: &Step, on: EntityType, clauses: &[Acquire], world: &World, only: Option<u64>) -> Begun {
    let meter = Meter::new(expression::budget());
    let entities: Vec<Option<u64>> = match on {
        EntityType::Global => vec![None],
        on => match world.left_by(clauses, on, only, &meter) {
            Ok(left) => left.into_iter().map(Some).collect(),
            Err(why) => return Begun::Fail("interpolation_failed", told(step, None, &why)),
        },
    };
    if entities.is_empty() {
        return Begun::Skip("there is nothing for it to run on");
    }
    let (mut work, mut bytes) = (Vec::new(), 0);
    for entity in entities {
        match begin_one(step, &world.scope(on, entity), &meter) {
            Ok(Some(made)) => {
                bytes += made.to_string().len();
                work.push((entity, made));
            }
            Ok(None) => {}
            Err((code, why)) => return Begun::Fail(code, told(step, entity, &why)),
        }
        if bytes > PARAMETERS_MAX {
            let why = format!("its parameters have more than {PARAMETERS_MAX} bytes in all");
            return Begun::Fail("interpolation_failed", told(step, None, &why));
        }
    }
    if work.is_empty() { Begun::Skip("its condition does not hold") } else { Begun::Work(work) }
}

/// The parameters of one piece of work. None: its condition does not hold. Otherwise the code of the reason, and the reason.
fn begin_one(step: &Step, scope: &Scope, meter: &Meter) -> Result<Option<Value>, (&'static str, String)> {
    let failed = |why| ("interpolation_failed", why);
    let before = meter.mark();
    for condition in &step.conditions {
        if !template::holds(condition, scope, meter).map_err(failed)? {
            return Ok(None);
        }
    }
    for assert in &step.asserts {
        if !template::holds(assert, scope, meter).map_err(failed)? {
            return Err(("assertion_failed", format!("{assert:?} does not hold")));
        }
    }
    meter.back_to(before);
    parameters(step, scope, meter).map(Some).map_err(failed)
}

fn told(step: &Step, entity: Option<u64>, why: &str) -> String {
    match entity {
        Some(id) => format!("step {} for {id}: {why}", step.label),
        None => format!("step {}: {why}", step.label),
    }
}

fn parameters(step: &Step, scope: &Scope, meter: &Meter) -> Result<Value, String> {
    let mut made = template::fill_fields(&step.parameters, scope, meter)?;
    made.extend(step.raw.clone());
    Ok(Value::Object(made))
}

/// The parameters that follow from the run's own parameters, and the names of those that do not yet.
pub fn early(
    step: &Step,
    label: &str,
    parameters: &Value,
    meter: &Meter,
) -> Result<(Map<String, Value>, BTreeSet<String>), String> {
    let world = World::new(label, parameters, &Value::Null);
    let scope = world.scope(EntityType::Global, None);
    let (mut made, mut later) = (Map::new(), BTreeSet::new());
    for (name, value) in &step.parameters {
        let mut names = BTreeSet::new();
        let known = template::names(value, &mut names);
        // A result may be called as a parameter is; then it is only checked later than it could be.
        let late = ["context", "steps", "result", "results", label].iter().any(|late| names.contains(*late));
        if late || !known && template::fill(value, &scope, meter).is_ok() {
            later.insert(name.clone());
            continue;
        }
        made.insert(name.clone(), template::fill(value, &scope, meter).map_err(|why| format!("{name}: {why}"))?);
    }
    made.extend(step.raw.clone());
    later.retain(|name| !step.raw.contains_key(name));
    Ok((made, later))
}
