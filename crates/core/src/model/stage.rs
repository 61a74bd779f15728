//! Steps that are decided while their run goes on: by the planner (conditions, templates, maps, sub-workflows), or by an
//! event or a person.
//!
//! To the graph such a step is a job that waits for one more parent. When all others are done it is the step's *turn*: the
//! planner is told by a record, written in the very transaction that brought the turn, so that a crash only means that it
//! is told again. What the planner decides follows from facts that no longer change, so of two planners at once the
//! second finds the turn taken and does nothing. Waits for events need no planner at all.

use crate::model::{
    id::{JobId, RunId},
    is_default,
    job::{Job, Node},
    name::{Facet, Namespace},
    record::Kind,
    time::{Millis, Timestamp},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What has to be decided before workers may have a job. Part of what was submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage {
    /// The planner says what becomes of it.
    #[serde(skip_serializing_if = "is_default")]
    pub plan: bool,
    /// It is no work but a wait: for an event, a person, or a time.
    #[serde(skip_serializing_if = "is_default")]
    pub wait: Option<Wait>,
    /// The step it is an item or a part of, or the one it undoes.
    #[serde(skip_serializing_if = "is_default")]
    pub of: Option<JobId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    #[serde(default, skip_serializing_if = "is_default")]
    pub event: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub approval: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout: Option<Millis>,
    /// Completes when its time is over, instead of failing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub then_complete: bool,
}

/// What holds a job back beside its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Its turn at the planner.
    Plan,
    /// Jobs that the planner made for it; then its turn comes once more.
    Members,
    /// An event, a person, or a time.
    Event,
}

/// Somebody has to decide. In the one namespace where planners look, whatever namespace it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub namespace: Namespace,
    pub run: RunId,
    /// None: all jobs of the run have ended, and what was done may have to be undone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub job: Option<JobId>,
}

/// Notes that planning steps were begun. They have to outlive their server, and not a power cut: one that is lost only means
/// that a step is begun once more.
pub const BEGUN: &str = "turn_begun";

impl Kind for Turn {
    const KIND: &'static str = "turn";
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.run.to_string().into())
    }
}

/// A step that waits for an event or a person; by run and step, found by run and event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub run: RunId,
    pub job: JobId,
    #[serde(default, skip_serializing_if = "is_default")]
    pub event: Option<Arc<str>>,
}

impl Kind for Waiting {
    const KIND: &'static str = "waiting";
    fn parent(&self) -> Option<Arc<str>> {
        self.event.as_ref().map(|event| place(self.run, event).into())
    }
}

/// An event that came before any step waited for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyEvent {
    pub run: RunId,
    /// JSON text, or nothing.
    pub payload: Arc<str>,
}

impl Kind for EarlyEvent {
    const KIND: &'static str = "event";
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.run.to_string().into())
    }
}

/// A piece of what a run's planner works from. The rules never look into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPart {
    pub run: RunId,
    pub text: Arc<str>,
}

impl Kind for PlanPart {
    const KIND: &'static str = "plan";
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.run.to_string().into())
    }
}

/// Parts of a plan whose run is yet to come; by the run's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyPlan {
    pub parts: u32,
    /// When they go if it has not come.
    pub until: Timestamp,
}

impl Kind for EarlyPlan {
    const KIND: &'static str = "early_plan";
    fn due(&self) -> Option<Timestamp> {
        Some(self.until)
    }
}

/// Finds runs, the newest first: its key is the run's id turned over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunIndex {
    pub run: RunId,
    #[serde(default, skip_serializing_if = "is_default")]
    pub workflow: Option<Arc<str>>,
}

impl Kind for RunIndex {
    const KIND: &'static str = "run_index";
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.run.to_string().into())
    }
    fn facets(&self) -> Vec<Facet> {
        self.workflow.iter().map(|name| Facet::new("workflow", name)).collect()
    }
}

pub fn index_key(run: RunId) -> String {
    format!("{:032x}", !run.0.as_u128())
}

/// Records of this kind belong to the run that their parent names, and go with it.
pub const OF_RUN: &str = "of_run";

/// The server's own namespace.
pub const SYSTEM: &str = "system";

/// Where principals, tokens and turns are, whatever namespaces they are about.
pub fn system_namespace() -> Namespace {
    Namespace::new(SYSTEM).expect("a legal name")
}

pub fn place(run: RunId, name: &str) -> String {
    format!("{run}/{name}")
}

pub fn part_key(run: RunId, part: usize) -> String {
    format!("{run}/{part:06}")
}

/// Turns of all namespaces lie side by side, so it names its own.
pub fn turn_key(namespace: &Namespace, run: RunId, job: Option<JobId>) -> String {
    let of = job.map_or_else(|| "end".into(), |job| job.to_string());
    format!("{namespace}/{run}/{of}")
}

/// The step whose item or sub-step this is: `a` for `a[3]` and `a/b`.
pub fn owner(name: &str) -> Option<&str> {
    name.rfind(['/', '[']).map(|at| &name[..at])
}

/// What the copy of a node is called that takes its place at this try.
pub fn copy_name(name: &str, tries: u32) -> String {
    format!("{name}~{tries}")
}

/// The place in its run of the copy that replaces this job.
pub(crate) fn copied(node: &Node, replaced: &Job) -> Node {
    let first = match (replaced.spec.retry_of, node.name.rsplit_once('~')) {
        (Some(_), Some((first, _))) => first,
        _ => &*node.name,
    };
    Node { run: node.run, name: copy_name(first, replaced.live.spent + 1).into() }
}

/// When a held job has to be looked at.
pub(crate) fn due(job: &Job) -> Option<Timestamp> {
    job.live.hold_until.filter(|_| job.live.hold == Some(Hold::Event))
}
