//! The dependency graph over HTTP.

use super::{
    body::{Json, Params, Path, Raw, Who, ok, time, told},
    derived,
    error::No,
    graphs::{self, Region},
    items, show,
    store::{self, Change, Kept},
    work,
};
use crate::{app::App, auth::Caller};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};
use windlass_core::{
    features::{
        EdgeKind, NODES_MAX, NodeKind, Validation,
        graph::{CrossEdge, Direction, Edge, Graph},
        sync::{self, NewEdge, NewNode, Report, Writer},
        world::Spread,
    },
    principal::Role,
    product::item::Item,
};

const METADATA_BYTES_MAX: usize = 8 << 10;
const MESSAGE_BYTES_MAX: usize = 4 << 10;

#[derive(Deserialize)]
struct SentNode {
    node_key: String,
    node_type: Option<NodeKind>,
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

/// A body as the rules take it.
struct Wanted {
    nodes: Vec<NewNode>,
    edges: Vec<NewEdge>,
    partial: bool,
}

impl Wanted {
    fn new(sent: Sent) -> Result<Self, No> {
        if sent.nodes.len() > NODES_MAX {
            return Err(No::invalid(format!("nodes: {} of them; a graph may have {NODES_MAX}", sent.nodes.len())));
        }
        if sent.partial && !(sent.edges.is_empty() && sent.cross_edges.is_empty()) {
            return Err(No::invalid("edges: a partial update has none"));
        }
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
        let nodes = sent.nodes.into_iter().map(node).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { nodes, edges, partial: sent.partial })
    }

    fn foreign(&self) -> BTreeSet<String> {
        self.edges.iter().filter_map(|edge| edge.part.as_ref()).map(|part| part.to_string()).collect()
    }
}

fn node(sent: SentNode) -> Result<NewNode, No> {
    let too_long = sent.validation_message.iter().flatten().any(|text| text.len() > MESSAGE_BYTES_MAX);
    let too_large = sent.metadata.as_ref().is_some_and(|data| json!(data).to_string().len() > METADATA_BYTES_MAX);
    if too_long || too_large {
        let why = format!(
            "{}: validation_message may have {MESSAGE_BYTES_MAX} bytes, metadata {METADATA_BYTES_MAX}",
            sent.node_key
        );
        return Err(No::invalid(why));
    }
    Ok(NewNode {
        key: sent.node_key.into(),
        kind: sent.node_type,
        properties_hash: sent.properties_hash,
        output_hash: sent.output_hash,
        message: sent.validation_message,
        metadata: sent.metadata.map(Arc::new),
        state: sent.validation_state,
    })
}

pub async fn put(
    State(app): State<App>,
    Who(caller): Who,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>, No> {
    items::find(&app, &part).await?;
    let sent: Sent = raw.parse()?;
    let revision = sent.revision_number;
    let writer = if caller.role == Role::Worker { Writer::Runner } else { Writer::User };
    write(&app, &part, revision, &Wanted::new(sent)?, writer).await
}

pub async fn put_for_job(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
    raw: Raw,
) -> Result<Json<Value>, No> {
    let job = show::find(&app, &id).await?;
    let sent: Sent = raw.parse()?;
    let extra = show::extra(&job)?;
    let body = app.engine.store().body(&job.key).await?.unwrap_or_default();
    let items = show::detail(&body.payload)?.items;
    let own = extra.part_number.as_deref();
    let part = match (sent.part_number.as_deref(), own) {
        (None, None) => return Err(No::invalid("the job has no item; name one of its scope by part_number")),
        (None, Some(own)) => own.to_owned(),
        (Some(named), _) if items.iter().any(|item| item.part_number == named) => named.to_owned(),
        (Some(named), _) => return Err(No::invalid(format!("part_number: {named} is not among the job's items"))),
    };
    let snapshot = items.iter().find(|item| item.part_number == part).map(|item| item.revision_number);
    let revision = sent.revision_number.or(snapshot);
    let wanted = Wanted::new(sent)?;
    held(&app, &caller, &id).await?;
    write(&app, &part, revision, &wanted, Writer::Runner).await
}

async fn held(app: &App, caller: &Caller, id: &str) -> Result<(), No> {
    work::held(app, caller, id).await.map(drop)
}

async fn revision_of(app: &App, item: &Item, asked: Option<u32>) -> Result<u32, No> {
    match asked {
        Some(number) => Ok(super::revisions::find(app, item, number).await?.number),
        None => Ok(item.current_revision),
    }
}

async fn write(app: &App, part: &str, asked: Option<u32>, wanted: &Wanted, writer: Writer) -> Result<Json<Value>, No> {
    let answer = store::settle!(app, {
        let item = items::find(app, part).await?;
        let revision = revision_of(app, &item.value, asked).await?;
        let (own, base) = graphs::with_base(app, part, revision).await?;
        let now = app.engine.now().await?;
        let foreign = match (&own, wanted.partial) {
            (Some(own), true) => own.graph.foreign_parts().iter().map(|part| part.to_string()).collect(),
            _ => wanted.foreign(),
        };
        let mut region = Region::new();
        for source in &foreign {
            if source == part {
                return Err(No::invalid("cross_edges: a node of the same item is named in edges"));
            }
            if !wanted.partial {
                items::find(app, source).await?;
            }
        }
        region.add_sources(app, part, &foreign).await?;
        let outside = |part: &str, key: &str| region.world.seen(part, key);
        let (graph, report) = if wanted.partial {
            let own = own.as_ref().ok_or_else(|| No::missing("graph of revision", revision))?;
            let mut graph = (*own.graph).clone();
            let report = sync::update(&mut graph, &wanted.nodes, &outside, now)?;
            (graph, report)
        } else {
            sync::replace(base.as_deref(), &wanted.nodes, &wanted.edges, writer, &outside, now)?
        };
        let written = graphs::written(app, &item, revision, (graph, &report), own.as_ref(), region).await?;
        let answer = synced(&item.value, revision, &written.graph, &report, &written.spread);
        // The same again is nothing to write, unless this revision had no graph yet.
        let commands = if own.is_some() && !report.differs { Vec::new() } else { written.commands };
        Ok(Change { commands, answer })
    })?;
    Ok(ok(answer))
}

fn keys(graph: &Graph, nodes: impl IntoIterator<Item = u32>) -> Vec<Arc<str>> {
    nodes.into_iter().map(|at| graph.node(at).key.clone()).collect()
}

fn dirty_keys(graph: &Graph) -> Vec<Arc<str>> {
    let mut dirty = keys(graph, graph.in_states(&[Validation::Dirty]));
    dirty.sort_unstable();
    dirty
}

fn cross_dirty(spread: &Spread) -> Vec<Value> {
    spread.dirty.iter().map(|(part, key)| json!({"part_number": part, "node_key": key})).collect()
}

fn synced(item: &Item, revision: u32, graph: &Graph, report: &Report, spread: &Spread) -> Value {
    json!({
        "synced": true,
        "item_id": item.id,
        "part_number": item.part_number,
        "revision_number": revision,
        "node_count": graph.nodes().len(),
        "edge_count": graph.edges().len(),
        "added": report.added,
        "changed": report.changed,
        "removed": report.removed,
        "dirty": dirty_keys(graph),
        "released": report.released,
        "cross_dirty": cross_dirty(spread),
    })
}

/// A graph that was asked for, with the item and revision it is of.
struct Asked {
    item: Kept<Item>,
    revision: u32,
    graph: Arc<Graph>,
}

impl Asked {
    /// The live one, or that of the revision the query names.
    async fn find(app: &App, part: &str, params: &Params) -> Result<Self, No> {
        let item = items::find(app, part).await?;
        let named = params.number("revision", 1, u32::MAX.into())?;
        let found = match named {
            Some(number) => {
                let revision = revision_of(app, &item.value, Some(number as u32)).await?;
                graphs::load(app, part, revision).await?.map(|loaded| (revision, loaded))
            }
            None => graphs::live_graph(app, part).await?,
        };
        let revision = named.map_or(item.value.current_revision, |number| number as u32);
        let (revision, graph) = match found {
            Some((revision, loaded)) => (revision, loaded.graph),
            None => (revision, Arc::new(Graph::default())),
        };
        Ok(Self { item, revision, graph })
    }

    fn head(&self) -> Value {
        json!({
            "item_id": self.item.value.id,
            "part_number": self.item.value.part_number,
            "revision_number": self.revision,
        })
    }

    fn key(&self, key: &str) -> Result<u32, No> {
        self.graph.find(key).ok_or_else(|| No::missing("node", key))
    }

    fn node(&self, at: u32) -> Value {
        let node = self.graph.node(at);
        let name = format!("{}/{}/{}", self.item.value.id, self.revision, node.key);
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

    fn edge(&self, edge: &Edge) -> Value {
        let (source, target) = (&self.graph.node(edge.source).key, &self.graph.node(edge.target).key);
        json!({"source_key": source, "target_key": target, "edge_type": edge.kind})
    }

    fn cross_edge(&self, edge: &CrossEdge) -> Value {
        json!({
            "source_part_number": edge.part,
            "source_key": edge.source,
            "target_key": self.graph.node(edge.target).key,
            "edge_type": edge.kind,
        })
    }

    /// Some of its nodes, with the edges between them.
    fn part(&self, nodes: &[u32]) -> Value {
        let mut shown = self.head();
        shown["nodes"] = nodes.iter().map(|at| self.node(*at)).collect();
        shown["edges"] = self.graph.edges_within(nodes.iter().copied()).iter().map(|edge| self.edge(edge)).collect();
        shown
    }
}

pub async fn whole(State(app): State<App>, Path(part): Path<String>, params: Params) -> Result<Json<Value>, No> {
    let asked = Asked::find(&app, &part, &params).await?;
    let all: Vec<u32> = (0..asked.graph.nodes().len() as u32).collect();
    let mut shown = asked.part(&all);
    shown["cross_edges"] = asked.graph.cross().iter().map(|edge| asked.cross_edge(edge)).collect();
    Ok(ok(shown))
}

pub async fn forward(
    State(app): State<App>,
    Path((part, key)): Path<(String, String)>,
    params: Params,
) -> Result<Json<Value>, No> {
    cone(&app, &part, &key, &params, Direction::Forward).await
}

pub async fn backward(
    State(app): State<App>,
    Path((part, key)): Path<(String, String)>,
    params: Params,
) -> Result<Json<Value>, No> {
    cone(&app, &part, &key, &params, Direction::Backward).await
}

async fn cone(app: &App, part: &str, key: &str, params: &Params, direction: Direction) -> Result<Json<Value>, No> {
    let asked = Asked::find(app, part, params).await?;
    let start = asked.key(key)?;
    let max = params.number("max_depth", 1, u32::MAX.into())?.map(|max| max as u32);
    let mut region = Region::new();
    region.add_all(app, part, direction == Direction::Forward).await?;
    let name: Arc<str> = part.into();
    region.world.put(&name, asked.graph.clone());
    let (own, far): (Vec<_>, Vec<_>) =
        region.world.cone(&name, start, direction, max).into_iter().partition(|((part, _), _)| *part == name);
    let own_nodes: Vec<u32> = own.iter().map(|((_, at), _)| *at).collect();
    let mut shown = asked.part(&own_nodes);
    for (at, (_, depth)) in own.iter().enumerate() {
        shown["nodes"][at]["depth"] = json!(depth);
    }
    let cross = far.iter().filter_map(|((part, at), depth)| {
        let node = region.world.get(part)?.node(*at);
        let (key, state) = (&node.key, node.state);
        Some(json!({"part_number": part, "node_key": key, "validation_state": state, "depth": depth}))
    });
    shown["cross_nodes"] = cross.collect();
    shown["node_key"] = json!(key);
    shown["direction"] = json!(if direction == Direction::Forward { "forward" } else { "backward" });
    shown["keys"] = json!(keys(&asked.graph, own_nodes));
    Ok(ok(shown))
}

const NOT_CLEAN: [Validation; 3] = [Validation::Dirty, Validation::Validating, Validation::Failed];

pub async fn dirty(State(app): State<App>, Path(part): Path<String>, params: Params) -> Result<Json<Value>, No> {
    let asked = Asked::find(&app, &part, &params).await?;
    let states = match params.get("state") {
        None => NOT_CLEAN.to_vec(),
        Some(words) => {
            let find = |word: &str| Validation::ALL.into_iter().find(|state| state.name() == word);
            let unknown = |word: &str| No::invalid(format!("state: {word:?} is no validation state"));
            words.split(',').map(|word| find(word.trim()).ok_or_else(|| unknown(word))).collect::<Result<_, _>>()?
        }
    };
    Ok(ok(asked.part(&asked.graph.in_states(&states))))
}

/// What a validation of an item has to rebuild, sources first.
pub async fn dirty_of(app: &App, part: &str) -> Result<Value, No> {
    let Some(item) = store::get::<Item>(app, store::ITEM, part).await? else { return Ok(Value::Null) };
    let Some((revision, loaded)) = graphs::live_graph(app, part).await? else { return Ok(Value::Null) };
    let asked = Asked { item, revision, graph: loaded.graph };
    Ok(asked.part(&asked.graph.in_states(&NOT_CLEAN)))
}

pub async fn mark_dirty(State(app): State<App>, Path((part, key)): Path<(String, String)>) -> Result<Json<Value>, No> {
    let answer = store::settle!(&app, {
        let item = items::find(&app, &part).await?;
        let missing = || No::missing("node", &key);
        let (revision, own) = graphs::live_graph(&app, &part).await?.ok_or_else(missing)?;
        let at = own.graph.find(&key).ok_or_else(missing)?;
        let foreign = own.graph.foreign_parts().iter().map(|part| part.to_string()).collect();
        let (mut region, now) = (Region::new(), app.engine.now().await?);
        region.add_sources(&app, &part, &foreign).await?;
        let outside = |part: &str, key: &str| region.world.seen(part, key);
        let mut graph = (*own.graph).clone();
        let report = sync::mark_dirty(&mut graph, at, &outside, now);
        let written = graphs::written(&app, &item, revision, (graph, &report), Some(&own), region).await?;
        let dirty = dirty_keys(&written.graph);
        let answer = json!({
            "marked": key,
            "dirty_count": dirty.len(),
            "dirty": dirty,
            "cross_dirty": cross_dirty(&written.spread),
        });
        let commands = if report.differs { written.commands } else { Vec::new() };
        Ok(Change { commands, answer })
    })?;
    Ok(ok(answer))
}

pub async fn compare(State(app): State<App>, Path(part): Path<String>, params: Params) -> Result<Json<Value>, No> {
    let asked = Asked::find(&app, &part, &params).await?;
    let one = |name: &str| params.get(name).ok_or_else(|| No::invalid(format!("{name}: name two nodes, a and b")));
    let (a, b) = (asked.key(one("a")?)?, asked.key(one("b")?)?);
    let found = asked.graph.compare(a, b);
    Ok(ok(json!({
        "shared_upstream": keys(&asked.graph, found.upstream),
        "shared_downstream": keys(&asked.graph, found.downstream),
        "auto_merge_safe": found.safe,
    })))
}
