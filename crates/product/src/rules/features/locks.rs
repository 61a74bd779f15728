//! Two people at the same thing: which editing contexts touch each other.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Sketch,
    PartDesign,
    Assembly,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Sketch => "sketch",
            Level::PartDesign => "partdesign",
            Level::Assembly => "assembly",
        }
    }
}

/// Who edits: a person at a workstation. Their own locks never stand in their way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Editor {
    pub user: Arc<str>,
    pub workstation: Arc<str>,
}

/// What is being edited, and what it may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    pub level: Level,
    pub object: Arc<str>,
    /// Keys of nodes, sorted.
    pub cone: Vec<Arc<str>>,
}

impl Context {
    pub fn is_same_object(&self, other: &Context) -> bool {
        self.level == other.level && self.object == other.object
    }

    /// What both may change.
    pub fn shared(&self, other: &Context) -> Vec<Arc<str>> {
        let mine: BTreeSet<&Arc<str>> = self.cone.iter().collect();
        let mut shared: Vec<Arc<str>> = other.cone.iter().filter(|key| mine.contains(key)).cloned().collect();
        shared.sort_unstable();
        shared.dedup();
        shared
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interference {
    /// With which of the others, and in what.
    Soft(Vec<(usize, Vec<Arc<str>>)>),
    None,
    /// That one has this very object.
    Hard(usize),
    /// The same editor has this very object already.
    Own(usize),
}

/// How a new context stands to those that are open on the same item.
pub fn interference(open: &[(&Editor, &Context)], editor: &Editor, context: &Context) -> Interference {
    if let Some(at) = open.iter().position(|(_, other)| context.is_same_object(other)) {
        return if open[at].0 == editor { Interference::Own(at) } else { Interference::Hard(at) };
    }
    let others = open.iter().enumerate().filter(|(_, (who, _))| *who != editor);
    let soft = others.map(|(at, (_, other))| (at, context.shared(other))).filter(|(_, shared)| !shared.is_empty());
    let soft: Vec<_> = soft.collect();
    if soft.is_empty() { Interference::None } else { Interference::Soft(soft) }
}
