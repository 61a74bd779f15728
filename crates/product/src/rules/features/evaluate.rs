//! Working out states where something changed, and only there.
//!
//! ```text
//! state: 1. the inputs are not those it was stated at -> dirty   2. stated other than clean -> as stated
//!        3. some direct source is not clean -> dirty             4. else clean
//! ```

use super::{EdgeKind, Node, Seen, Validation, graph::Graph};
use sha2::{Digest, Sha256};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap},
    fmt::Write,
    sync::Arc,
};
use windlass_core::Timestamp;

/// What is said about a node, at the inputs it turns out to have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    pub state: Option<Say>,
    pub output_hash: Option<Option<Arc<str>>>,
    pub message: Option<Option<Arc<str>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say {
    Is(Validation),
    /// Seen for the first time: clean if all its direct sources are, else dirty.
    IsNew,
}

/// How nodes of other items look from here.
pub type Outside<'a> = &'a dyn Fn(&str, &str) -> Seen;

/// A node that was looked at and came out different.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    pub at: u32,
    pub before: Validation,
    /// Those who depend on it see something else now.
    pub visible: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluated {
    pub changed: Vec<Changed>,
    /// Nodes looked at.
    pub visited: usize,
}

impl Graph {
    /// Looks at `seeds`, and at whatever sees one of them differently afterwards.
    pub fn evaluate(
        &mut self,
        seeds: impl IntoIterator<Item = u32>,
        statements: &HashMap<u32, Statement>,
        outside: Outside<'_>,
        now: Timestamp,
    ) -> Evaluated {
        let mut open: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let mut known: BTreeSet<u32> = BTreeSet::new();
        for at in seeds {
            if known.insert(at) {
                open.push(Reverse((self.rank(at), at)));
            }
        }
        let mut evaluated = Evaluated::default();
        // A node only ever waits behind nodes of lower rank, so each is looked at once, after all its sources.
        while let Some(Reverse((_, at))) = open.pop() {
            evaluated.visited += 1;
            let before = (self.node(at).state, self.node(at).seen());
            let updated = self.update(at, statements.get(&at), outside, now);
            let visible = before.1 != self.node(at).seen();
            if updated {
                evaluated.changed.push(Changed { at, before: before.0, visible });
            }
            if visible {
                for place in 0..self.dependents(at).len() {
                    let (next, _) = self.dependents(at)[place];
                    if known.insert(next) {
                        open.push(Reverse((self.rank(next), next)));
                    }
                }
            }
        }
        evaluated
    }

    /// One node by the rule. Whether anything about it changed.
    fn update(&mut self, at: u32, said: Option<&Statement>, outside: Outside<'_>, now: Timestamp) -> bool {
        let (input_hash, sources_clean) = self.inputs(at, outside);
        let mut node = self.node(at).clone();
        node.input_hash = input_hash;
        if let Some(said) = said {
            state(&mut node, said, sources_clean);
        }
        node.state = if node.reported_hash != node.input_hash {
            Validation::Dirty
        } else if node.reported != Validation::Clean {
            node.reported
        } else if !sources_clean {
            Validation::Dirty
        } else {
            Validation::Clean
        };
        let updated = node != *self.node(at);
        if updated {
            *self.node_mut(at) = Node { updated_at: now, ..node };
        }
        updated
    }

    /// The digest of everything a node is made from, and whether all its direct sources are clean.
    pub(super) fn inputs(&self, at: u32, outside: Outside<'_>) -> (Arc<str>, bool) {
        let near = self.sources(at).iter().map(|&(source, kind)| {
            let source = self.node(source);
            (kind, source.key.to_string(), source.seen())
        });
        let far = self.cross_sources(at).map(|edge| {
            let name = format!("{}/{}", edge.part, edge.source);
            (edge.kind, name, outside(&edge.part, &edge.source))
        });
        let sources: Vec<(EdgeKind, String, Seen)> = near.chain(far).collect();
        let clean = sources.iter().all(|(_, _, seen)| seen.clean);
        let mut list: Vec<(&str, &str, &str)> =
            sources.iter().map(|(kind, name, seen)| (kind.name(), name.as_str(), seen.output.as_str())).collect();
        list.sort_unstable();
        let node = self.node(at);
        let text = serde_json::to_vec(&(node.kind.name(), node.properties_hash.as_deref().unwrap_or(""), list))
            .expect("strings are JSON");
        (hex(&Sha256::digest(text)).into(), clean)
    }
}

fn state(node: &mut Node, said: &Statement, sources_clean: bool) {
    let moved = node.reported_hash != node.input_hash;
    let says = said.state.map(|say| match say {
        Say::Is(state) => state,
        Say::IsNew if sources_clean => Validation::Clean,
        Say::IsNew => Validation::Dirty,
    });
    if let Some(says) = says {
        node.reported = says;
        node.reported_hash = node.input_hash.clone();
        if says != Validation::Failed {
            node.message = None;
        }
    }
    match &said.output_hash {
        Some(output) => node.output_hash = output.clone(),
        // What came out of other inputs says nothing about these.
        None if says == Some(Validation::Clean) && moved => node.output_hash = None,
        None => {}
    }
    if let Some(message) = &said.message {
        node.message = message.clone();
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}
