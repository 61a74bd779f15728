//! What a run is planned from, fixed when it is made: the document, its function blocks, its parameters.

use crate::{
    app::App,
    dialects::neops::{NAMESPACE as NAME, blocks::Block},
    flows::{self, reader},
    problem::{Code, Problem},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{RunId, payload::pieces};
use windlass_plan::neops::{course::Course, document::Document, reference::EntityType};

/// Bytes of one part of a plan.
const PART_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bundle {
    pub run: Uuid,
    pub document: Arc<Value>,
    pub parameters: Map<String, Value>,
    pub ids: Vec<u64>,
    /// By step.
    pub blocks: Vec<Known>,
    /// Set in the run that rolls back what another one left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Uuid>,
}

/// What of a function block decides the course of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    pub id: Arc<str>,
    pub on: String,
    pub pure: bool,
    pub reversible: bool,
}

impl Known {
    pub fn new(block: &Block, on: EntityType) -> Self {
        let (id, on) = (block.id.clone(), on.as_str().into());
        Self { id, on, pure: block.is_pure(), reversible: block.is_reversible() }
    }

    pub fn on(&self) -> EntityType {
        EntityType::parse(&self.on).unwrap_or(EntityType::Global)
    }
}

/// A bundle, read.
pub struct Plan {
    pub bundle: Bundle,
    pub course: Course,
    /// By step, in the server that made the run; empty where the plan was read again.
    pub blocks: Vec<Arc<Block>>,
}

impl Bundle {
    /// In pieces that fit a record, with the dialect's mark.
    pub fn parts(&self) -> Vec<Arc<str>> {
        let text = reader::marked(NAME, &serde_json::to_string(self).expect("plain data"));
        pieces(&text, PART_BYTES).map(Into::into).collect()
    }

    /// Of a run that rolls back what another one left.
    pub fn remedy(run: Uuid, of: Uuid) -> Self {
        let (parameters, ids, blocks) = Default::default();
        Self { run, document: Arc::default(), parameters, ids, blocks, remedy: Some(of) }
    }

    pub fn plan(self) -> Result<Plan, String> {
        if self.remedy.is_some() {
            let course =
                Course { label: String::new(), seed: EntityType::Global, acquire: Vec::new(), steps: Vec::new() };
            return Ok(Plan { course, bundle: self, blocks: Vec::new() });
        }
        let document = Document::read(&self.document).map_err(|faults| {
            let first = faults.first().map(|fault| format!("{}: {}", fault.place, fault.text));
            format!("the workflow cannot be read: {}", first.unwrap_or_default())
        })?;
        Ok(Plan { course: Course::of(&document)?, bundle: self, blocks: Vec::new() })
    }
}

pub async fn load(app: &App, run: RunId) -> Result<Plan, Problem> {
    let parts = flows::parts(app, &super::super::namespace(), run).await?;
    let damaged = |why: String| Problem::new(Code::Damaged, why);
    let read = move || {
        let text: String = parts.iter().map(|part| &**part).collect();
        let bundle: Bundle = serde_json::from_str(reader::unmarked(&text)).map_err(|error| error.to_string())?;
        bundle.plan()
    };
    app.aside.run(&super::super::namespace(), read).await?.map_err(damaged)
}
