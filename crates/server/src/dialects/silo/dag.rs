//! The dependency graph over HTTP.

use super::{
    body::{Here, Json, Params, Path, Raw, ok, time, told},
    derived,
    error::{HttpError, Result},
    products, show, work,
};
use crate::{app::App, auth::Caller};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_core::{Refusal, principal::Role};
use windlass_product::{
    Products,
    change::{self, Synced},
    graph::{self, ItemGraph, NOT_CLEAN},
    items,
    rules::features::{
        EdgeKind, NodeKind, Validation,
        graph::{CrossEdge, Direction, Edge, Graph},
        sync::{NewEdge, NewNode, Writer},
        world::Spread,
    },
};

/// The kinds of nodes this protocol knows; elsewhere a kind is any word.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NodeType {
    Sketch,
    Pad,
    Pocket,
    Fillet,
    Chamfer,
    Constraint,
    Body,
    Part,
    Datum,
}

impl NodeType {
    fn kind(self) -> Result<NodeKind, Refusal> {
        NodeKind::new(match self {
            NodeType::Sketch => "sketch",
            NodeType::Pad => "pad",
            NodeType::Pocket => "pocket",
            NodeType::Fillet => "fillet",
            NodeType::Chamfer => "chamfer",
            NodeType::Constraint => "constraint",
            NodeType::Body => "body",
            NodeType::Part => "part",
            NodeType::Datum => "datum",
        })
    }
}

#[derive(Deserialize)]
struct SentNode {
    node_key: String,
    node_type: Option<NodeType>,
    #[serde(default, deserialize_with = "told")]
    properties_hash: Option<Option<Arc<str>>>,
    #[serde(default, deserialize_with = "told")]
    output_hash: Option<Option<Arc<str>>>,
    #[serde(default, deserialize_with = "told")]
    validation_message: Option<Option<Arc<str>>>,
    validation_state: Option<Validation>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct SentEdge {
    source_key: String,
    target_key: String,
    edge_type: Option<EdgeKind>,
}

#[derive(Deserialize)]
struct SentCross {
    source_part_number: String,
    source_key: String,
    target_key: String,
    edge_type: Option<EdgeKind>,
}

#[derive(Deserialize)]
struct Sent {
    revision_number: Option<u32>,
    part_number: Option<String>,
    nodes: Vec<SentNode>,
    #[serde(default)]
    edges: Vec<SentEdge>,
    #[serde(default)]
    cross_edges: Vec<SentCross>,
    #[serde(default)]
    partial: bool,
}

fn wanted(sent: Sent, revision: Option<u32>) -> Result<change::Sent> {
    let near = sent.edges.into_iter().map(|edge| NewEdge {
        part: None,
        source: edge.source_key.into(),
        target: edge.target_key.into(),
        kind: edge.edge_type.unwrap_or_default(),
    });
    let far = sent.cross_edges.into_iter().map(|edge| NewEdge {
        part: Some(edge.source_part_number.into()),
        source: edge.source_key.into(),
        target: edge.target_key.into(),
        kind: edge.edge_type.unwrap_or_default(),
    });
    let edges = near.chain(far).collect();
    let nodes = sent.nodes.into_iter().map(node).collect::<Result<_, _>>()?;
    Ok(change::Sent { revision, nodes, edges, partial: sent.partial })
}

fn node(sent: SentNode) -> Result<NewNode, Refusal> {
    Ok(NewNode {
        key: sent.node_key.into(),
        kind: sent.node_type.map(NodeType::kind).transpose()?,
        properties_hash: sent.properties_hash,
        output_hash: sent.output_hash,
        message: sent.validation_message,
        metadata: sent.metadata.map(Arc::new),
        state: sent.validation_state,
    })
}

pub async fn put(
    State(app): State<App>,
    Here(products): Here,
    caller: Caller,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>> {
    items::find(&products, &part).await?;
    let sent: Sent = raw.parse(&app).await?;
    let revision = sent.revision_number;
    // The protocol lets any runner do this without a job to name; what is written for a job goes the way below.
    let writer = if caller.role == Role::Worker { Writer::Runner } else { Writer::User };
    Ok(ok(synced(&change::write(&products, &part, &wanted(sent, revision)?, writer, None).await?)))
}

pub async fn put_for_job(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    raw: Raw,
) -> Result<Json<Value>> {
    let job = show::find(&app, &id).await?;
    let sent: Sent = raw.parse(&app).await?;
    let extra = show::extra(&job)?;
    let body = app.engine.store().body(&job.key).await?.unwrap_or_default();
    let items = show::detail(&body.payload)?.items;
    let own = extra.part_number.as_deref();
    let part = match (sent.part_number.as_deref(), own) {
        (None, None) => return Err(HttpError::invalid("the job has no item; name one of its scope by part_number")),
        (None, Some(own)) => own.to_owned(),
        (Some(named), _) if items.iter().any(|item| item.part_number == named) => named.to_owned(),
        (Some(named), _) => {
            return Err(HttpError::invalid(format!("part_number: {named} is not among the job's items")));
        }
    };
    let snapshot = items.iter().find(|item| item.part_number == part).map(|item| item.revision_number);
    let revision = sent.revision_number.or(snapshot);
    let wanted = wanted(sent, revision)?;
    wanted.check()?;
    work::held(&app, &caller, &id).await?;
    let holds = Some(work::holds(&caller, &job));
    Ok(ok(synced(&change::write(&products(&app), &part, &wanted, Writer::Runner, holds).await?)))
}

fn keys(graph: &Graph, nodes: impl IntoIterator<Item = u32>) -> Vec<Arc<str>> {
    nodes.into_iter().map(|at| graph.node(at).key.clone()).collect()
}

fn cross_dirty(spread: &Spread) -> Vec<Value> {
    spread.dirty.iter().map(|(part, key)| json!({"part_number": part, "node_key": key})).collect()
}

fn synced(done: &Synced) -> Value {
    json!({
        "synced": true,
        "item_id": done.item.id,
        "part_number": done.item.part_number,
        "revision_number": done.revision,
        "node_count": done.graph.count(),
        "edge_count": done.graph.edges().len(),
        "added": done.diff.added,
        "changed": done.diff.changed,
        "removed": done.diff.removed,
        "dirty": done.dirty(),
        "released": done.diff.released,
        "cross_dirty": cross_dirty(&done.spread),
    })
}

/// The live one, or that of the revision the query names.
async fn asked(products: &Products, part: &str, params: &Params) -> Result<ItemGraph> {
    // An item that is not there is told before a number that is none.
    items::find(products, part).await?;
    let revision = params.number("revision", 1, u32::MAX.into())?.map(|number| number as u32);
    Ok(ItemGraph::find(products, part, revision).await?)
}

fn show_node(asked: &ItemGraph, at: u32) -> Value {
    let node = asked.graph.node(at);
    let name = format!("{}/{}/{}", asked.item.value.id, asked.revision, node.key);
    json!({
        "id": derived("node", &name),
        "node_key": node.key,
        "node_type": node.kind,
        "properties_hash": node.properties_hash,
        "output_hash": node.output_hash,
        "validation_state": node.state,
        "validation_message": node.message,
        "metadata": *node.metadata,
        "input_hash": node.input_hash,
        "updated_at": time(node.updated_at),
    })
}

fn show_edge(graph: &Graph, edge: &Edge) -> Value {
    let (source, target) = (&graph.node(edge.source).key, &graph.node(edge.target).key);
    json!({"source_key": source, "target_key": target, "edge_type": edge.kind})
}

fn show_cross(graph: &Graph, edge: &CrossEdge) -> Value {
    json!({
        "source_part_number": edge.part,
        "source_key": edge.source,
        "target_key": graph.node(edge.target).key,
        "edge_type": edge.kind,
    })
}

/// Some of a graph's nodes, with the edges between them.
fn part_of(asked: &ItemGraph, nodes: &[u32]) -> Value {
    let graph = &asked.graph;
    let edges: Vec<Value> =
        graph.edges_within(nodes.iter().copied()).iter().map(|edge| show_edge(graph, edge)).collect();
    json!({
        "item_id": asked.item.value.id,
        "part_number": asked.item.value.part_number,
        "revision_number": asked.revision,
        "nodes": nodes.iter().map(|at| show_node(asked, *at)).collect::<Vec<_>>(),
        "edges": edges,
    })
}

pub async fn whole(Here(products): Here, Path(part): Path<String>, params: Params) -> Result<Json<Value>> {
    let asked = asked(&products, &part, &params).await?;
    let all: Vec<u32> = (0..asked.graph.count() as u32).collect();
    let mut shown = part_of(&asked, &all);
    shown["cross_edges"] = asked.graph.cross().iter().map(|edge| show_cross(&asked.graph, edge)).collect();
    Ok(ok(shown))
}

pub async fn forward(
    Here(products): Here,
    Path((part, key)): Path<(String, String)>,
    params: Params,
) -> Result<Json<Value>> {
    cone(&products, &part, &key, &params, Direction::Forward).await
}

pub async fn backward(
    Here(products): Here,
    Path((part, key)): Path<(String, String)>,
    params: Params,
) -> Result<Json<Value>> {
    cone(&products, &part, &key, &params, Direction::Backward).await
}

async fn cone(
    products: &Products,
    part: &str,
    key: &str,
    params: &Params,
    direction: Direction,
) -> Result<Json<Value>> {
    let asked = asked(products, part, params).await?;
    asked.key(key)?;
    let max = params.number("max_depth", 1, u32::MAX.into())?.map(|max| max as u32);
    let cone = asked.cone(products, key, direction, max).await?;
    let own: Vec<u32> = cone.near.iter().map(|(at, _)| *at).collect();
    let mut shown = part_of(&asked, &own);
    for (at, (_, depth)) in cone.near.iter().enumerate() {
        shown["nodes"][at]["depth"] = json!(depth);
    }
    let cross = cone.far.iter().map(
        |far| json!({"part_number": far.part, "node_key": far.key, "validation_state": far.state, "depth": far.depth}),
    );
    shown["cross_nodes"] = cross.collect();
    shown["node_key"] = json!(key);
    shown["direction"] = json!(if direction == Direction::Forward { "forward" } else { "backward" });
    shown["keys"] = json!(keys(&asked.graph, own));
    Ok(ok(shown))
}

pub async fn dirty(Here(products): Here, Path(part): Path<String>, params: Params) -> Result<Json<Value>> {
    let asked = asked(&products, &part, &params).await?;
    let states = graph::states(params.get("state"))?;
    Ok(ok(part_of(&asked, &asked.graph.in_states(&states))))
}

/// What a validation of an item has to rebuild, sources first.
pub async fn dirty_of(products: &Products, part: &str) -> Result<Value> {
    let Some(asked) = ItemGraph::live(products, part).await? else { return Ok(Value::Null) };
    Ok(part_of(&asked, &asked.graph.in_states(&NOT_CLEAN)))
}

pub async fn mark_dirty(Here(products): Here, Path((part, key)): Path<(String, String)>) -> Result<Json<Value>> {
    let done = change::mark_dirty(&products, &part, &key).await?;
    let dirty = done.dirty();
    Ok(ok(json!({
        "marked": key,
        "dirty_count": dirty.len(),
        "dirty": dirty,
        "cross_dirty": cross_dirty(&done.spread),
    })))
}

pub async fn compare(Here(products): Here, Path(part): Path<String>, params: Params) -> Result<Json<Value>> {
    let asked = asked(&products, &part, &params).await?;
    let one =
        |name: &str| params.get(name).ok_or_else(|| HttpError::invalid(format!("{name}: name two nodes, a and b")));
    let found = asked.compare(one("a")?, one("b")?)?;
    Ok(ok(json!({
        "shared_upstream": keys(&asked.graph, found.upstream),
        "shared_downstream": keys(&asked.graph, found.downstream),
        "auto_merge_safe": found.safe,
    })))
}
