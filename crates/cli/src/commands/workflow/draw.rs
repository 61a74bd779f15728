//! Draws a laid out run: as text, for Graphviz, and as a picture made by ourselves.

use super::layout::{Layout, Node};
use crate::{output::clean, times};
use std::fmt::Write;
use windlass_api::job::State;

const WIDTH: usize = 180;
const HEIGHT: usize = 44;
const GAP_X: usize = 70;
const GAP_Y: usize = 18;
const MARGIN: usize = 20;
const LETTERS: usize = 22;

/// One step a line, in an order they could run in, with what each waits for.
pub fn text(layout: &Layout) -> String {
    if layout.nodes.is_empty() {
        return "The run has no steps yet.".into();
    }
    let width = layout.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (depth, layer) in layout.layers.iter().enumerate() {
        for &at in layer {
            let node = &layout.nodes[at];
            let mut parents: Vec<String> = layout.parents(at).map(|from| clean(&layout.nodes[from].name)).collect();
            parents.sort();
            let after = if parents.is_empty() { String::new() } else { format!("  after {}", parents.join(", ")) };
            let line =
                format!("{:>3}  {} {:width$}  {}{after}", depth + 1, sign(node.state), clean(&node.name), told(node));
            out += line.trim_end();
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}

/// A state in one letter's room.
pub fn sign(state: State) -> char {
    match state {
        State::Completed => '✓',
        State::Failed => '✗',
        State::Cancelled | State::Skipped => '-',
        State::Running | State::Claimed => '●',
        State::Blocked | State::Scheduled | State::Pending => '○',
    }
}

fn told(node: &Node) -> String {
    let took = node.duration_ms.map(|millis| format!(" {}", times::short(millis))).unwrap_or_default();
    let tries = if node.attempt > 1 { format!(" (attempt {})", node.attempt) } else { String::new() };
    format!("{}{took}{tries}", node.state.name())
}

pub fn dot(layout: &Layout) -> String {
    let quote = |text: &str| format!("\"{}\"", clean(text).replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = String::from(
        "digraph run {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n",
    );
    for (at, node) in layout.nodes.iter().enumerate() {
        let (fill, line) = colours(node.state);
        let label = quote(&node.name);
        let tooltip = quote(&told(node));
        let _ = writeln!(out, "  n{at} [label={label}, tooltip={tooltip}, fillcolor=\"{fill}\", color=\"{line}\"];");
    }
    for (from, to) in &layout.edges {
        let _ = writeln!(out, "  n{from} -> n{to};");
    }
    out + "}"
}

/// Fill and line.
fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Completed => ("#d9f2e1", "#2e8b57"),
        State::Failed => ("#fadbd8", "#c0392b"),
        State::Cancelled | State::Skipped => ("#eceff1", "#90a4ae"),
        State::Running | State::Claimed => ("#dbe9fb", "#2f6fc4"),
        State::Blocked | State::Scheduled => ("#fdf3d6", "#c99a2e"),
        State::Pending => ("#ffffff", "#607d8b"),
    }
}

/// A picture with nothing in it but shapes and escaped text: no script, no style sheet, nothing from elsewhere.
pub fn svg(layout: &Layout) -> String {
    let tallest = layout.layers.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let (width, height) = (
        2 * MARGIN + layout.layers.len().max(1) * (WIDTH + GAP_X) - GAP_X,
        2 * MARGIN + tallest * (HEIGHT + GAP_Y) - GAP_Y,
    );
    let mut places = vec![(0, 0); layout.nodes.len()];
    for (column, layer) in layout.layers.iter().enumerate() {
        // Each layer is in the middle.
        let top = MARGIN + (tallest - layer.len()) * (HEIGHT + GAP_Y) / 2;
        for (row, &node) in layer.iter().enumerate() {
            places[node] = (MARGIN + column * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y));
        }
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for &(from, to) in &layout.edges {
        let ((x, y), (to_x, to_y)) = (places[from], places[to]);
        let (x, y, to_y) = (x + WIDTH, y + HEIGHT / 2, to_y + HEIGHT / 2);
        let bend = to_x.saturating_sub(x) / 2;
        let (near, far) = (x + bend, to_x.saturating_sub(bend));
        let _ = writeln!(
            out,
            "<path d=\"M{x} {y} C{near} {y} {far} {to_y} {to_x} {to_y}\" fill=\"none\" stroke=\"#90a4ae\" stroke-width=\"1.5\"/>"
        );
    }
    for (node, &(x, y)) in layout.nodes.iter().zip(&places) {
        box_of(&mut out, node, x, y);
    }
    out + "</svg>"
}

fn box_of(out: &mut String, node: &Node, x: usize, y: usize) {
    let (fill, line) = colours(node.state);
    let (name, state) = (escape(&shortened(&node.name)), escape(&told(node)));
    let title = escape(&format!("{}: {}", node.name, told(node)));
    let (left, first, second) = (x + 12, y + 19, y + 35);
    let _ = writeln!(
        out,
        "<g><title>{title}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"{fill}\" \
         stroke=\"{line}\" stroke-width=\"1.5\"/><text x=\"{left}\" y=\"{first}\" font-weight=\"600\" fill=\"#263238\">{name}</text>\
         <text x=\"{left}\" y=\"{second}\" font-size=\"11\" fill=\"#546e7a\">{state}</text></g>"
    );
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.to_owned();
    }
    let kept: String = name.chars().take(LETTERS - 1).collect();
    format!("{kept}…")
}

/// Names come from elsewhere; characters that XML cannot hold at all are marked.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
    out
}
