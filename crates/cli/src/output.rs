//! What commands print: tables and sentences for people, JSON for programs.

use clap::ValueEnum;
use serde::Serialize;
use std::io::{IsTerminal, Write, stdout};
use windlass_api::job::State;
use windlass_worker::terminal::Colours;

pub use crate::table::{Cell, Colour, Rows, cell, cut};

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
    if on_terminal() {
        // Whatever it is made of, a terminal gets nothing but colours.
        let mut colours = Colours::default();
        let shown = colours.feed(&text.to_string());
        writeln!(out, "{shown}{}", colours.finish())?;
    } else {
        writeln!(out, "{text}")?;
    }
    Ok(out.flush()?)
}

/// As it is, without a line break.
pub fn say_raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// What a job wrote, as it comes: to a terminal with colours and nothing else that a terminal would obey, elsewhere as it is.
#[derive(Default)]
pub struct Shown(Colours);

impl Shown {
    pub fn write(&mut self, text: &str) -> anyhow::Result<()> {
        match on_terminal() {
            true => say_raw(self.0.feed(text).as_bytes()),
            false => say_raw(text.as_bytes()),
        }
    }

    /// After the last piece.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        if on_terminal() { say_raw(self.0.finish().as_bytes()) } else { Ok(()) }
    }
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

/// Text from elsewhere, in one line and with nothing in it that a terminal would obey.
pub fn clean(text: &str) -> String {
    windlass_worker::terminal::line(text)
}

/// The same, with its line breaks.
pub fn clean_lines(text: &str) -> String {
    windlass_worker::terminal::lines(text)
}

/// A remark beside the output, on standard error. It may hold text from elsewhere.
pub fn note(text: impl std::fmt::Display) {
    eprintln!("{}", clean_lines(&text.to_string()));
}

pub fn state_cell(state: State) -> Cell {
    cell(state.name()).colour(match state {
        State::Completed => Some(Colour::Green),
        State::Failed => Some(Colour::Red),
        State::Cancelled | State::Skipped => Some(Colour::Grey),
        State::Running | State::Claimed => Some(Colour::Blue),
        State::Blocked | State::Scheduled => Some(Colour::Yellow),
        State::Pending => None,
    })
}

/// Names and values, one a line, the values in one column.
#[derive(Default)]
pub struct Facts(Vec<(String, String)>);

impl Facts {
    pub fn add(&mut self, name: &str, value: impl AsRef<str>) -> &mut Self {
        if !value.as_ref().is_empty() {
            self.0.push((name.to_owned(), clean_lines(value.as_ref().trim_end())));
        }
        self
    }

    pub fn text(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
        // What is below its first line is set in, so that no value looks like another name.
        let below = format!("\n{:width$}", "");
        let line = |(name, value): &(String, String)| format!("{name:width$}{}", value.replace('\n', &below));
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
