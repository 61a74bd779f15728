//! `/api/v1/items/{part_number}/graph`: what an item is built from, what depends on what, and what is not clean.

use super::{
    items::Here,
    leases::{LEASE, sent_holder},
};
use crate::{
    ask::{Answer, Path, Query, Sent, ok},
    problem::{Code, Result},
    route::{Access, Route},
    wire_time::text,
};
use http::HeaderMap;
use std::sync::Arc;
use windlass_api::graph::{
    AskCone, AskDirty, AskGraph, Direction, Edge, EdgeKind, FarNode, Graph, MarkDirty, Node, NodeState, PutGraph,
    PutNode, SyncedGraph,
};
use windlass_core::{Refusal, commands::holds::Holds, principal::Role};
use windlass_product::{
    change::{self, Synced},
    graph::{self, Far, ItemGraph},
    rules::features::{self as rules, graph as facts, sync},
};

const BODY_MAX: usize = 10 << 20;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/items/{part_number}/graph", Access::Any, whole)
            .says("An item's graph: nodes with their states, and edges")
            .query::<AskGraph>()
            .answers::<Graph>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::put("/api/v1/items/{part_number}/graph", Access::EditorOrWorker, put).behind()
            .says("Store an item's graph or a part of it; states are updated, also in other items. A worker sends its lease")
            .body_max(BODY_MAX)
            .reads(LEASE)
            .takes::<PutGraph>()
            .answers::<SyncedGraph>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::Cycle, Code::VersionMismatch, Code::LeaseLost, Code::NotHeld, Code::NotHolder]),
        Route::get("/api/v1/items/{part_number}/graph/cone", Access::Any, cone)
            .says("What depends on a node, or what the node depends on, also in other items")
            .query::<AskCone>()
            .answers::<Graph>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::get("/api/v1/items/{part_number}/graph/dirty", Access::Any, dirty)
            .says("Nodes that have to be validated, sources first")
            .query::<AskDirty>()
            .answers::<Graph>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::post("/api/v1/items/{part_number}/graph/dirty", Access::Editor, mark).behind()
            .says("Mark a node and everything that depends on it as dirty")
            .takes::<MarkDirty>()
            .answers::<SyncedGraph>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::VersionMismatch]),
    ]
}

/// The same enumeration on the wire and in the rules, by name. No `_` arm: a new one must be named on both sides.
macro_rules! same {
    ($rules:ty, $wire:ty, $to_wire:ident, $to_rules:ident: $($one:ident)+) => {
        fn $to_wire(one: $rules) -> $wire {
            match one { $(<$rules>::$one => <$wire>::$one,)+ }
        }
        fn $to_rules(one: $wire) -> $rules {
            match one { $(<$wire>::$one => <$rules>::$one,)+ }
        }
    };
}
same!(rules::EdgeKind, EdgeKind, wire_edge_kind, edge_kind: DependsOn Contains Constrains);
same!(rules::Validation, NodeState, wire_state, state: Clean Dirty Validating Failed);

fn wire_node(node: &rules::Node, depth: Option<u32>) -> Node {
    let owned = |text: &Option<Arc<str>>| text.as_ref().map(|text| text.to_string());
    Node {
        key: node.key.to_string(),
        kind: node.kind.name().to_owned(),
        state: wire_state(node.state),
        properties_hash: owned(&node.properties_hash),
        output_hash: owned(&node.output_hash),
        input_hash: node.input_hash.to_string(),
        message: owned(&node.message),
        metadata: (*node.metadata).clone(),
        updated_at: text(node.updated_at),
        depth,
    }
}

fn wire_edge(graph: &facts::Graph, edge: &facts::Edge) -> Edge {
    let key = |at| graph.node(at).key.to_string();
    Edge { item: None, source: key(edge.source), target: key(edge.target), kind: wire_edge_kind(edge.kind) }
}

fn wire_cross(graph: &facts::Graph, edge: &facts::CrossEdge) -> Edge {
    Edge {
        item: Some(edge.part.to_string()),
        source: edge.source.to_string(),
        target: graph.node(edge.target).key.to_string(),
        kind: wire_edge_kind(edge.kind),
    }
}

/// Some nodes with the edges between them.
fn part_of(asked: &ItemGraph, nodes: &[(u32, Option<u32>)]) -> Graph {
    let graph = &*asked.graph;
    let within = graph.edges_within(nodes.iter().map(|(at, _)| *at));
    Graph {
        part_number: asked.item.value.part_number.clone(),
        revision: asked.revision,
        nodes: nodes.iter().map(|(at, depth)| wire_node(graph.node(*at), *depth)).collect(),
        edges: within.iter().map(|edge| wire_edge(graph, edge)).collect(),
        elsewhere: Vec::new(),
    }
}

async fn whole(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Query(query): Query<AskGraph>,
) -> Result<Answer<Graph>> {
    let asked = ItemGraph::find(&products, &part, query.revision).await?;
    let all: Vec<_> = (0..asked.graph.count() as u32).map(|at| (at, None)).collect();
    let mut shown = part_of(&asked, &all);
    shown.edges.extend(asked.graph.cross().iter().map(|edge| wire_cross(&asked.graph, edge)));
    Ok(ok(shown))
}

async fn cone(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Query(query): Query<AskCone>,
) -> Result<Answer<Graph>> {
    let asked = ItemGraph::find(&products, &part, query.revision).await?;
    let direction = match query.direction {
        Direction::Forward => facts::Direction::Forward,
        Direction::Backward => facts::Direction::Backward,
    };
    let cone = asked.cone(&products, &query.node, direction, query.max_depth).await?;
    let near: Vec<_> = cone.near.iter().map(|(at, depth)| (*at, Some(*depth))).collect();
    let far = |far: &Far| FarNode {
        item: far.part.to_string(),
        key: far.key.to_string(),
        state: Some(wire_state(far.state)),
        depth: Some(far.depth),
    };
    Ok(ok(Graph { elsewhere: cone.far.iter().map(far).collect(), ..part_of(&asked, &near) }))
}

async fn dirty(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Query(query): Query<AskDirty>,
) -> Result<Answer<Graph>> {
    let asked = ItemGraph::find(&products, &part, query.revision).await?;
    let states = graph::states(query.state.as_deref())?;
    let found: Vec<_> = asked.graph.in_states(&states).into_iter().map(|at| (at, None)).collect();
    Ok(ok(part_of(&asked, &found)))
}

fn new_node(sent: PutNode) -> Result<sync::NewNode, Refusal> {
    let shared = |text: Option<Option<String>>| text.map(|text| text.map(Arc::from));
    Ok(sync::NewNode {
        key: sent.key.into(),
        kind: sent.kind.as_deref().map(rules::NodeKind::new).transpose()?,
        properties_hash: shared(sent.properties_hash),
        output_hash: shared(sent.output_hash),
        message: shared(sent.message),
        metadata: sent.metadata.map(Arc::new),
        state: sent.state.map(state),
    })
}

fn sent(body: PutGraph) -> Result<change::Sent, Refusal> {
    let edge = |edge: Edge| sync::NewEdge {
        part: edge.item.map(Into::into),
        source: edge.source.into(),
        target: edge.target.into(),
        kind: edge_kind(edge.kind),
    };
    let edges = body.edges.into_iter().map(edge).collect();
    let nodes = body.nodes.into_iter().map(new_node).collect::<Result<_, _>>()?;
    Ok(change::Sent { revision: body.revision, nodes, edges, partial: body.partial })
}

fn wire_synced(done: &Synced) -> SyncedGraph {
    let all = |keys: &[Arc<str>]| keys.iter().map(|key| key.to_string()).collect();
    let far = |(part, key): &(Arc<str>, Arc<str>)| FarNode {
        item: part.to_string(),
        key: key.to_string(),
        state: Some(NodeState::Dirty),
        depth: None,
    };
    SyncedGraph {
        part_number: done.item.part_number.clone(),
        revision: done.revision,
        nodes: done.graph.count() as u32,
        edges: (done.graph.edges().len() + done.graph.cross().len()) as u32,
        added: all(&done.diff.added),
        changed: all(&done.diff.changed),
        removed: all(&done.diff.removed),
        dirty: all(&done.dirty()),
        released: all(&done.diff.released),
        elsewhere: done.spread.dirty.iter().map(far).collect(),
    }
}

async fn put(
    Here { ask, products }: Here,
    Path(part): Path<String>,
    headers: HeaderMap,
    Sent(body): Sent<PutGraph>,
) -> Result<Answer<SyncedGraph>> {
    let writer = if ask.caller.role == Role::Worker { sync::Writer::Runner } else { sync::Writer::User };
    let holds = sent_holder(&ask.caller, &ask.namespace, &headers)?.map(|holder| Holds { holder });
    let done = change::write(&products, &part, &sent(body)?, writer, holds).await?;
    Ok(ok(wire_synced(&done)))
}

async fn mark(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Sent(body): Sent<MarkDirty>,
) -> Result<Answer<SyncedGraph>> {
    Ok(ok(wire_synced(&change::mark_dirty(&products, &part, &body.node).await?)))
}
