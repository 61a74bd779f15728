//! A workflow as a run goes through it: its function blocks in the order in which they run, whatever they are embedded in.

use super::{
    acquire::Acquire,
    document::{Common, Document, Step as Written, Work},
    reference::{EntityType, Reference},
};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    pub label: String,
    pub seed: EntityType,
    /// What the whole workflow is about, beside what its steps are.
    pub acquire: Vec<Acquire>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub label: String,
    pub block: Reference,
    /// Its own, and those of all that it is embedded in.
    pub conditions: Vec<String>,
    pub asserts: Vec<String>,
    pub acquire: Vec<Acquire>,
    pub parameters: Map<String, Value>,
    /// Handed on as they are; they win.
    pub raw: Map<String, Value>,
    pub run_on: Option<EntityType>,
    /// Each entity goes on to it by itself.
    pub parallel: bool,
}

impl Course {
    /// Otherwise why no run can go through it.
    pub fn of(document: &Document) -> Result<Self, String> {
        let mut steps = Vec::new();
        let mut outer = Outer { parallel: document.parallel, ..Outer::default() };
        outer.enter(&document.common);
        flatten(&document.steps, &outer, &mut steps)?;
        if let Some(first) = steps.first_mut() {
            first.asserts.splice(0..0, document.common.asserts.iter().cloned());
        }
        let (label, acquire) = (document.label.clone(), document.common.acquire.clone());
        Ok(Self { label, seed: document.seed, acquire, steps })
    }
}

/// What holds for all steps of an embedded workflow.
#[derive(Clone, Default)]
struct Outer {
    conditions: Vec<String>,
    acquire: Vec<Acquire>,
    run_on: Option<EntityType>,
    parallel: bool,
}

impl Outer {
    fn enter(&mut self, common: &Common) {
        self.conditions.extend(common.condition.clone());
        self.run_on = common.run_on.or(self.run_on);
    }
}

fn flatten(written: &[Written], outer: &Outer, steps: &mut Vec<Step>) -> Result<(), String> {
    for step in written {
        let mut here = outer.clone();
        here.enter(&step.common);
        match &step.work {
            Work::Block(block) => steps.push(Step {
                label: step.label.clone(),
                block: block.clone(),
                conditions: here.conditions,
                asserts: step.common.asserts.clone(),
                acquire: [here.acquire, step.common.acquire.clone()].concat(),
                parameters: step.common.parameters.clone(),
                raw: step.common.raw_parameters.clone(),
                run_on: here.run_on,
                parallel: here.parallel,
            }),
            Work::Embedded { steps: inner, parallel, .. } => {
                here.parallel |= parallel;
                here.acquire.extend(step.common.acquire.iter().cloned());
                let first = steps.len();
                flatten(inner, &here, steps)?;
                if let Some(first) = steps.get_mut(first) {
                    first.asserts.splice(0..0, step.common.asserts.iter().cloned());
                }
            }
            Work::Workflow { reference, .. } => {
                return Err(format!("step {}: workflows that refer to others ({reference}) are not run", step.label));
            }
        }
    }
    Ok(())
}
