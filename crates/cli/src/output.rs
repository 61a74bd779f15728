//! What commands print: tables and sentences for people, JSON for programs.

use clap::ValueEnum;
use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{IsTerminal, Write, stdout};
use windlass_api::job::State;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people. May change between versions.
    #[default]
    #[value(alias = "text")]
    Table,
    /// One document, in the types of the API. Stable.
    Json,
    /// One document a line, as they come. Stable.
    Jsonl,
}

/// Writes to standard output. An output that is closed early is an error like any other, which `main` keeps quiet about.
pub fn say(text: impl std::fmt::Display) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// As it is, without a line break.
pub fn say_raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

pub fn on_terminal() -> bool {
    stdout().is_terminal()
}

pub fn colours() -> bool {
    on_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

impl Format {
    pub fn is_table(self) -> bool {
        self == Format::Table
    }

    /// One thing.
    pub fn one<T: Serialize>(self, value: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        match self {
            Format::Table => say(text().trim_end()),
            Format::Json => say(serde_json::to_string_pretty(value)?),
            Format::Jsonl => say(serde_json::to_string(value)?),
        }
    }

    /// A list.
    pub fn many<T: Serialize>(self, items: &[T], table: impl FnOnce() -> Rows) -> anyhow::Result<()> {
        match self {
            Format::Table => say(table().text()),
            Format::Json => say(serde_json::to_string_pretty(items)?),
            Format::Jsonl => items.iter().try_for_each(|item| say(serde_json::to_string(item)?)),
        }
    }

    /// Something was done; there is nothing to show but that.
    pub fn done(self, what: &str, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        self.one(&serde_json::json!({ "done": what }), text)
    }
}

/// A table in the making.
pub struct Rows {
    table: Table,
    empty: &'static str,
    count: usize,
}

impl Rows {
    /// `empty` is said where there are no rows, and should say what to do.
    pub fn new(heads: &[&str], empty: &'static str) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(heads.iter().map(Cell::new));
        if on_terminal() {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        if !colours() {
            table.force_no_tty();
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self { table, empty, count: 0 }
    }

    pub fn add(&mut self, cells: Vec<Cell>) {
        self.count += 1;
        self.table.add_row(cells);
    }

    pub fn text(&self) -> String {
        if self.count == 0 {
            return self.empty.to_owned();
        }
        let lines = self.table.lines().map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Text from elsewhere: control characters in it could move the cursor about or colour the screen.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

pub fn cell(text: impl AsRef<str>) -> Cell {
    Cell::new(clean(text.as_ref()))
}

/// At most so many characters, with a sign where something was cut off.
pub fn cut(text: &str, max: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    if first.chars().count() <= max && first.len() == text.trim_end().len() {
        return first.to_owned();
    }
    let kept: String = first.chars().take(max.saturating_sub(1)).collect();
    format!("{kept}…")
}

pub fn state_cell(state: State) -> Cell {
    Cell::new(state.name()).fg(state_colour(state))
}

pub fn state_colour(state: State) -> Color {
    match state {
        State::Completed => Color::Green,
        State::Failed => Color::Red,
        State::Cancelled | State::Skipped => Color::DarkGrey,
        State::Running | State::Claimed => Color::Blue,
        State::Blocked | State::Scheduled => Color::Yellow,
        State::Pending => Color::Reset,
    }
}

/// Names and values, one a line, the values in one column.
#[derive(Default)]
pub struct Facts(Vec<(String, String)>);

impl Facts {
    pub fn add(&mut self, name: &str, value: impl AsRef<str>) -> &mut Self {
        if !value.as_ref().is_empty() {
            self.0.push((name.to_owned(), clean(value.as_ref())));
        }
        self
    }

    pub fn text(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
        let line = |(name, value): &(String, String)| format!("{name:width$}{value}");
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A bar on standard error, where somebody can see it.
pub fn bar(total: Option<u64>, what: &str) -> indicatif::ProgressBar {
    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
    }
    let (bar, style) = match total {
        Some(total) => (ProgressBar::new(total), "{msg} [{bar:30}] {human_pos}/{human_len} ({per_sec}, {eta} left)"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg} {human_pos} ({per_sec})"),
    };
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_elsewhere_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!((cut("short", 10), cut("much too long", 5)), ("short".into(), "much…".into()));
        assert_eq!(cut("two\nlines", 10), "two…");
    }

    #[test]
    fn an_empty_list_says_so() {
        let mut rows = Rows::new(&["ID"], "No jobs.");
        assert_eq!(rows.text(), "No jobs.");
        rows.add(vec![cell("x")]);
        assert_eq!(rows.text(), "ID\nx");
    }
}
