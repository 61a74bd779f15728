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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn course(steps: Value) -> Result<Course, String> {
        let document = json!({"type": "workflow", "label": "wf", "name": "n", "package": "p", "majorVersion": 1,
            "minorVersion": 0, "patchVersion": 0, "seedEntity": "device", "runOn": "device",
            "condition": {"type": "jmes", "jmes": "outer"}, "assert": [{"type": "jmes", "jmes": "first"}],
            "steps": steps});
        Course::of(&Document::read(&document).expect("a document"))
    }

    #[test]
    fn embedded_steps_come_in_their_place_under_the_conditions_of_what_they_are_in() {
        let block = |label: &str| json!({"type": "functionBlock", "label": label, "functionBlock": "p/b:1"});
        let inner = json!({"type": "workflow", "label": "in", "name": "in", "runOn": "interface",
            "condition": {"type": "jmes", "jmes": "inner"}, "assert": [{"type": "jmes", "jmes": "checked"}],
            "steps": [block("b"), block("c")]});
        let made = course(json!([block("a"), inner, block("d")])).unwrap();
        let shown: Vec<String> = made
            .steps
            .iter()
            .map(|step| {
                let on = step.run_on.map_or("-", EntityType::as_str);
                format!("{} {} {} {on}", step.label, step.conditions.join("+"), step.asserts.join("+"))
            })
            .collect();
        let expected =
            ["a outer first device", "b outer+inner checked interface", "c outer+inner  interface", "d outer  device"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_workflow_that_refers_to_another_is_not_run() {
        let step = json!([{"type": "workflowReference", "label": "r", "workflow": "p/n:1", "strategy": "embed"}]);
        assert!(course(step).unwrap_err().contains("step r"));
    }
}
