//! `windlass graph`: what an item is built from, and what a change reaches.

use super::{Context, Done};
use crate::{
    fail::code,
    output::{Rows, cell, clean, cut, say},
};
use clap::{Args, Subcommand, ValueEnum};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use windlass_api::{
    count_of,
    graph::{AskCone, AskDirty, AskGraph, Direction, Edge, Graph, Node, NodeState},
};

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass graph show P-100                       every node and its state, as a tree
  windlass graph cone P-100 Sketch001             what depends on the node, also in other items
  windlass graph cone P-100 Fillet005 --backward  what the node depends on
  windlass graph dirty P-100                      nodes to validate, sources first
  windlass graph show P-100 --as dot | dot -Tsvg > graph.svg")]
pub enum GraphCommand {
    Show(Show),
    Cone(Cone),
    Dirty(Dirty),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Drawing {
    Tree,
    Dot,
}

/// Show the graph of an item, or one node with its neighbours.
#[derive(Args)]
pub struct Show {
    #[arg(value_name = "PART_NUMBER")]
    part: String,
    /// Only this node, its direct dependencies and its direct dependents.
    node: Option<String>,
    /// The revision. Default: the current one.
    #[arg(short, long, value_name = "N")]
    revision: Option<u32>,
    #[arg(long = "as", value_enum, default_value_t = Drawing::Tree)]
    drawing: Drawing,
}

/// Show everything that depends on a node; with --backward, everything the node depends on.
#[derive(Args)]
pub struct Cone {
    #[arg(value_name = "PART_NUMBER")]
    part: String,
    /// The node's key.
    node: String,
    /// Show what the node depends on.
    #[arg(short, long)]
    backward: bool,
    /// Follow at most this many edges.
    #[arg(long, value_name = "N")]
    max_depth: Option<u32>,
    /// The revision. Default: the current one.
    #[arg(short, long, value_name = "N")]
    revision: Option<u32>,
    #[arg(long = "as", value_enum, default_value_t = Drawing::Tree)]
    drawing: Drawing,
}

/// List the nodes that have to be validated, sources first.
#[derive(Args)]
#[command(after_help = "Example:
  windlass graph dirty P-100 --state failed")]
pub struct Dirty {
    #[arg(value_name = "PART_NUMBER")]
    part: String,
    /// List nodes in these states instead, separated by commas: clean, dirty, validating, failed.
    #[arg(short, long, value_name = "STATES")]
    state: Option<String>,
    /// The revision. Default: the current one.
    #[arg(short, long, value_name = "N")]
    revision: Option<u32>,
}

impl GraphCommand {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        match self {
            GraphCommand::Show(show) => {
                let mut graph = client.graph(&show.part, &AskGraph { revision: show.revision }).await?;
                if let Some(key) = &show.node {
                    graph = around(graph, key)?;
                }
                draw(context, &graph, show.drawing, Direction::Forward)?;
            }
            GraphCommand::Cone(cone) => {
                let direction = if cone.backward { Direction::Backward } else { Direction::Forward };
                let ask =
                    AskCone { node: cone.node.clone(), direction, max_depth: cone.max_depth, revision: cone.revision };
                draw(context, &client.cone(&cone.part, &ask).await?, cone.drawing, direction)?;
            }
            GraphCommand::Dirty(dirty) => {
                let ask = AskDirty { state: dirty.state.clone(), revision: dirty.revision };
                let graph = client.dirty(&dirty.part, &ask).await?;
                match context.format.is_table() {
                    true => say(table(&graph.nodes).text())?,
                    false => context.format.one(&graph, String::new)?,
                }
            }
        }
        Ok(code::OK)
    }
}

/// A node with its neighbours.
fn around(mut graph: Graph, key: &str) -> anyhow::Result<Graph> {
    anyhow::ensure!(
        graph.nodes.iter().any(|node| node.key == key),
        "{} has no node {key:?} at revision {}; `windlass graph show {}` lists them",
        graph.part_number,
        graph.revision,
        graph.part_number
    );
    graph.edges.retain(|edge| (edge.source == key && edge.item.is_none()) || edge.target == key);
    let near: BTreeSet<&String> = graph.edges.iter().flat_map(|edge| [&edge.source, &edge.target]).collect();
    graph.nodes.retain(|node| node.key == key || near.contains(&node.key));
    Ok(graph)
}

fn draw(context: &Context, graph: &Graph, drawing: Drawing, direction: Direction) -> anyhow::Result<()> {
    match (context.format.is_table(), drawing) {
        (_, Drawing::Dot) => say(dot(graph)),
        (true, Drawing::Tree) => say(tree(graph, direction)),
        (false, Drawing::Tree) => context.format.one(graph, String::new),
    }
}

fn sign(state: NodeState) -> char {
    match state {
        NodeState::Clean => '✓',
        NodeState::Dirty => '○',
        NodeState::Validating => '●',
        NodeState::Failed => '✗',
    }
}

fn line(node: &Node) -> String {
    let message = node.message.as_ref().map(|text| format!("  {}", clean(&cut(text, 80)))).unwrap_or_default();
    format!("{} {}  {} {}{message}", sign(node.state), clean(&node.key), clean(&node.kind), node.state.name())
}

/// From the roots down; a node that is reached again is named, not drawn again.
fn tree(graph: &Graph, direction: Direction) -> String {
    if graph.nodes.is_empty() {
        return format!("{} has no graph at revision {}.", clean(&graph.part_number), graph.revision);
    }
    let nodes: BTreeMap<&str, &Node> = graph.nodes.iter().map(|node| (&*node.key, node)).collect();
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    for edge in graph.edges.iter().filter(|edge| edge.item.is_none()) {
        let (from, to) = match direction {
            Direction::Forward => (&*edge.source, &*edge.target),
            Direction::Backward => (&*edge.target, &*edge.source),
        };
        next.entry(from).or_default().push(to);
        reached.insert(to);
    }
    let mut out =
        format!("{} revision {}, {}", clean(&graph.part_number), graph.revision, count_of(graph.nodes.len(), "node"));
    let mut drawn: BTreeSet<&str> = BTreeSet::new();
    let roots = graph.nodes.iter().map(|node| &*node.key).filter(|key| !reached.contains(key));
    let mut open: Vec<(&str, usize)> = roots.map(|key| (key, 1)).collect();
    open.reverse();
    while let Some((key, depth)) = open.pop() {
        let Some(node) = nodes.get(key) else { continue };
        let again = !drawn.insert(key);
        let more = next.get(key).filter(|_| !again);
        let note = if again && next.contains_key(key) { "  (see above)" } else { "" };
        let _ = write!(out, "\n{}{}{note}", "  ".repeat(depth), line(node));
        open.extend(more.into_iter().flatten().rev().map(|key| (*key, depth + 1)));
    }
    elsewhere(graph, &mut out);
    out
}

fn elsewhere(graph: &Graph, out: &mut String) {
    let cross = graph.edges.iter().filter_map(|edge| edge.item.as_ref().map(|item| (item, edge)));
    for (item, edge) in cross {
        let _ = write!(out, "\n  {} <- {}/{}", clean(&edge.target), clean(item), clean(&edge.source));
    }
    if !graph.elsewhere.is_empty() {
        out.push_str("\nIn other items:");
    }
    for far in &graph.elsewhere {
        let (state, depth) = (far.state.unwrap_or(NodeState::Clean), far.depth.unwrap_or_default());
        let place = format!("{}/{}", clean(&far.item), clean(&far.key));
        let _ = write!(out, "\n  {} {place}  {}, {} away", sign(state), state.name(), count_of(depth as usize, "edge"));
    }
}

fn table(nodes: &[Node]) -> Rows {
    let mut rows = Rows::new(&["NODE", "KIND", "STATE", "MESSAGE…"], "Everything is clean.");
    for node in nodes {
        let message = cut(node.message.as_deref().unwrap_or_default(), 80);
        rows.add(vec![cell(&node.key), cell(&node.kind), cell(node.state.name()), cell(message)]);
    }
    rows
}

fn dot(graph: &Graph) -> String {
    let quote = |text: &str| format!("\"{}\"", clean(text).replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = String::from("digraph features {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\"];\n");
    for node in &graph.nodes {
        let fill = match node.state {
            NodeState::Clean => "#d9f2e1",
            NodeState::Dirty => "#fdf3d6",
            NodeState::Validating => "#dbe9fb",
            NodeState::Failed => "#fadbd8",
        };
        let _ = writeln!(out, "  {} [tooltip={}, fillcolor=\"{fill}\"];", quote(&node.key), quote(node.state.name()));
    }
    for Edge { item, source, target, .. } in &graph.edges {
        let source = item.as_ref().map_or_else(|| source.clone(), |item| format!("{item}/{source}"));
        let _ = writeln!(out, "  {} -> {};", quote(&source), quote(target));
    }
    out + "}"
}
