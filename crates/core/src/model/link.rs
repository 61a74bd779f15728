//! Links: which workers serve a definition. A link, and every record tied to a worker, goes with its worker.

use crate::model::{
    job::Spec,
    name::{Facet, Lane, Namespace, Tags, WorkerId},
    record::Kind,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kind of records that belong to a worker, which is their parent: they are deleted together with it. What is in them is
/// for those who write them to know.
pub const TIED: &str = "tied";

/// Links are listed by this facet.
pub const DEFINITION_FACET: &str = "definition";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub worker: WorkerId,
    pub definition: Arc<str>,
}

impl Kind for Link {
    const KIND: &'static str = "link";
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.worker.as_str().into())
    }
    fn facets(&self) -> Vec<Facet> {
        vec![Facet::new(DEFINITION_FACET, &self.definition)]
    }
}

/// The key of a link. Names have no line breaks, so that it can be taken apart again.
pub fn link_key(worker: &WorkerId, definition: &str) -> String {
    format!("{worker}\n{definition}")
}

/// The definition that a link of this worker is for.
pub(crate) fn linked<'a>(worker: &WorkerId, key: &'a str) -> Option<&'a str> {
    key.strip_prefix(worker.as_str())?.strip_prefix('\n')
}

/// What a job requires that is for linked workers alone.
pub fn tags_of(definition: &str) -> Tags {
    [definition].into_iter().collect()
}

pub(crate) fn lane_of(namespace: &Namespace, definition: &str) -> Lane {
    Lane::of(namespace, &tags_of(definition))
}

impl Spec {
    /// The definition whose linked workers this job waits for: its end may be the end of that definition.
    pub(crate) fn served_by_links(&self) -> Option<&Arc<str>> {
        served_by_links(self.definition.as_ref().map(|definition| &definition.name), &self.tags)
    }
}

pub(crate) fn served_by_links<'a>(definition: Option<&'a Arc<str>>, tags: &Tags) -> Option<&'a Arc<str>> {
    definition.filter(|name| tags.len() == 1 && tags.contains(name))
}
