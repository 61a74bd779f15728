//! What a client sent, laid over what was known.

use super::{
    EdgeKind, HASH_BYTES_MAX, Node, NodeKind, Validation,
    evaluate::{Outside, Say, Statement},
    graph::{CrossEdge, Edge, Graph},
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use windlass_core::{Refusal, Timestamp};

type Text = Option<Arc<str>>;

/// A node as it was sent. What is `None` was left out; what is `Some(None)` was null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewNode {
    pub key: Arc<str>,
    pub kind: Option<NodeKind>,
    pub properties_hash: Option<Text>,
    pub output_hash: Option<Text>,
    pub message: Option<Text>,
    pub metadata: Option<Arc<Map<String, Value>>>,
    pub state: Option<Validation>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewEdge {
    /// Of another item; none: of this one.
    pub part: Option<Arc<str>>,
    pub source: Arc<str>,
    pub target: Arc<str>,
    pub kind: EdgeKind,
}

/// Whose word it is: a runner has computed what it reports, a person only says what is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    User,
    Runner,
}

/// What a write came to. All lists sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    pub added: Vec<Arc<str>>,
    pub changed: Vec<Arc<str>>,
    pub removed: Vec<Arc<str>>,
    /// Clean now, were not, and nobody said so.
    pub released: Vec<Arc<str>>,
    /// Those who depend on these see something else now.
    pub visible: Vec<Arc<str>>,
    /// Whether anything at all is different.
    pub differs: bool,
}

fn check_hash(field: &'static str, text: Option<&Text>) -> Result<(), Refusal> {
    match text {
        Some(Some(text)) if text.len() > HASH_BYTES_MAX => Err(Refusal::too_large(field, text.len(), HASH_BYTES_MAX)),
        _ => Ok(()),
    }
}

impl NewNode {
    fn check(&self) -> Result<(), Refusal> {
        check_hash("properties_hash", self.properties_hash.as_ref())?;
        check_hash("output_hash", self.output_hash.as_ref())
    }
}

/// The whole graph anew. `base` is what it is compared with: the stored one of this revision, or of the last one that has any.
pub fn replace(
    base: Option<&Graph>,
    nodes: &[NewNode],
    edges: &[NewEdge],
    writer: Writer,
    outside: Outside<'_>,
    now: Timestamp,
) -> Result<(Graph, Diff), Refusal> {
    let mut sent: Vec<&NewNode> = nodes.iter().collect();
    sent.sort_by(|a, b| a.key.cmp(&b.key));
    let mut laid = Vec::with_capacity(sent.len());
    for new in &sent {
        let known = base.and_then(|base| base.find(&new.key).map(|at| base.node(at)));
        laid.push(lay(new, known, now)?);
    }
    let (near, far) = resolve(&laid, edges)?;
    let mut graph = Graph::new(laid, near, far)?;
    let statements = sent.iter().zip(0..).filter_map(|(new, at)| {
        let known = base.is_some_and(|base| base.find(&new.key).is_some());
        let state = match (new.state, writer, known) {
            (Some(state), _, _) => Some(Say::Is(state)),
            (None, Writer::Runner, _) => Some(Say::Is(Validation::Clean)),
            (None, Writer::User, true) => None,
            (None, Writer::User, false) => Some(Say::IsNew),
        };
        let said = Statement { state, output_hash: new.output_hash.clone(), message: new.message.clone() };
        (said != Statement::default()).then_some((at, said))
    });
    let statements: HashMap<u32, Statement> = statements.collect();
    graph.evaluate(0..sent.len() as u32, &statements, outside, now);
    let reported = |at: u32| statements.get(&at).is_some_and(|said| said.state.is_some());
    let diff = compare(base, &graph, reported);
    Ok((graph, diff))
}

/// A node of the new graph, with what carries over from the old one.
fn lay(new: &NewNode, known: Option<&Node>, now: Timestamp) -> Result<Node, Refusal> {
    new.check()?;
    let kind = new.kind.clone().ok_or_else(|| Refusal::invalid("node_type", format!("{:?} has none", new.key)))?;
    let properties_hash = new.properties_hash.clone().flatten();
    let metadata = new.metadata.clone().unwrap_or_default();
    let Some(known) = known else {
        return Ok(Node {
            key: new.key.clone(),
            kind,
            properties_hash,
            output_hash: None,
            metadata,
            message: None,
            reported: Validation::Clean,
            reported_hash: "".into(),
            input_hash: "".into(),
            state: Validation::Dirty,
            updated_at: now,
        });
    };
    let same = known.kind == kind && known.properties_hash == properties_hash && known.metadata == metadata;
    let updated_at = if same { known.updated_at } else { now };
    Ok(Node { kind, properties_hash, metadata, updated_at, ..known.clone() })
}

fn resolve(nodes: &[Node], edges: &[NewEdge]) -> Result<(Vec<Edge>, Vec<CrossEdge>), Refusal> {
    let index: HashMap<&str, u32> = nodes.iter().zip(0..).map(|(node, at)| (&*node.key, at)).collect();
    let find = |key: &str| {
        let unknown = || Refusal::invalid("edges", format!("an edge names {key:?}, which is no node of this graph"));
        index.get(key).copied().ok_or_else(unknown)
    };
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for edge in edges {
        let (target, kind) = (find(&edge.target)?, edge.kind);
        match &edge.part {
            Some(part) => far.push(CrossEdge { part: part.clone(), source: edge.source.clone(), target, kind }),
            None => near.push(Edge { source: find(&edge.source)?, target, kind }),
        }
    }
    Ok((near, far))
}

/// Where a node's inputs come from, comparable between graphs.
fn sources_of(graph: &Graph, at: u32) -> Vec<(EdgeKind, Option<Arc<str>>, Arc<str>)> {
    let near = graph.sources(at).iter().map(|&(source, kind)| (kind, None, graph.node(source).key.clone()));
    let far = graph.cross_sources(at).map(|edge| (edge.kind, Some(edge.part.clone()), edge.source.clone()));
    let mut all: Vec<_> = near.chain(far).collect();
    all.sort_unstable();
    all
}

fn compare(base: Option<&Graph>, graph: &Graph, reported: impl Fn(u32) -> bool) -> Diff {
    let mut diff = Diff::default();
    let old: BTreeMap<&Arc<str>, u32> =
        base.into_iter().flat_map(|base| base.nodes().zip(0..)).map(|(node, at)| (&node.key, at)).collect();
    for (node, at) in graph.nodes().zip(0..) {
        let key = node.key.clone();
        let Some((base, &was)) = base.zip(old.get(&node.key)) else {
            diff.added.push(key.clone());
            diff.visible.push(key);
            continue;
        };
        let before = base.node(was);
        if before.properties_hash != node.properties_hash || sources_of(base, was) != sources_of(graph, at) {
            diff.changed.push(key.clone());
        }
        if before.state != Validation::Clean && node.state == Validation::Clean && !reported(at) {
            diff.released.push(key.clone());
        }
        if before.seen() != node.seen() {
            diff.visible.push(key);
        }
        diff.differs |= before != node;
    }
    diff.removed = old.into_keys().filter(|key| graph.find(key).is_none()).cloned().collect();
    diff.visible.extend(diff.removed.iter().cloned());
    diff.visible.sort_unstable();
    diff.differs |= !(diff.added.is_empty() && diff.changed.is_empty() && diff.removed.is_empty());
    diff
}

/// Some nodes of a graph that is there, only in the fields that were sent.
pub fn update(graph: &mut Graph, nodes: &[NewNode], outside: Outside<'_>, now: Timestamp) -> Result<Diff, Refusal> {
    let mut statements: HashMap<u32, Statement> = HashMap::new();
    let mut diff = Diff::default();
    for new in nodes {
        new.check()?;
        let unknown = || Refusal::invalid("node_key", format!("{:?} is no node of this graph", new.key));
        let at = graph.find(&new.key).ok_or_else(unknown)?;
        let node = graph.node(at);
        let own = Node {
            kind: new.kind.clone().unwrap_or_else(|| node.kind.clone()),
            properties_hash: new.properties_hash.clone().unwrap_or_else(|| node.properties_hash.clone()),
            metadata: new.metadata.clone().unwrap_or_else(|| node.metadata.clone()),
            ..node.clone()
        };
        if own != *node {
            diff.differs = true;
            if own.properties_hash != node.properties_hash {
                diff.changed.push(own.key.clone());
            }
            *graph.node_mut(at) = Node { updated_at: now, ..own };
        }
        let said = Statement {
            state: new.state.map(Say::Is),
            output_hash: new.output_hash.clone(),
            message: new.message.clone(),
        };
        if statements.insert(at, said).is_some() {
            return Err(Refusal::invalid("node_key", format!("{:?} is there twice", new.key)));
        }
    }
    let seeds: Vec<u32> = statements.keys().copied().collect();
    let reported = |at: u32| statements.get(&at).is_some_and(|said| said.state.is_some());
    let evaluated = graph.evaluate(seeds, &statements, outside, now);
    // Only what was looked at can have changed.
    for changed in &evaluated.changed {
        let node = graph.node(changed.at);
        if changed.before != Validation::Clean && node.state == Validation::Clean && !reported(changed.at) {
            diff.released.push(node.key.clone());
        }
        if changed.visible {
            diff.visible.push(node.key.clone());
        }
    }
    diff.differs |= !evaluated.changed.is_empty();
    for list in [&mut diff.changed, &mut diff.released, &mut diff.visible] {
        list.sort_unstable();
    }
    Ok(diff)
}

/// Says that a node has to be validated again, whatever its inputs are.
pub fn mark_dirty(graph: &mut Graph, at: u32, outside: Outside<'_>, now: Timestamp) -> Diff {
    let said = Statement { state: Some(Say::Is(Validation::Dirty)), ..Statement::default() };
    let evaluated = graph.evaluate([at], &HashMap::from([(at, said)]), outside, now);
    let visible = evaluated.changed.iter().filter(|changed| changed.visible);
    let mut visible: Vec<Arc<str>> = visible.map(|changed| graph.node(changed.at).key.clone()).collect();
    visible.sort_unstable();
    Diff { visible, differs: !evaluated.changed.is_empty(), ..Diff::default() }
}
