//! What a command prints: text for the log, progress lines, the last line, the last few lines.
//!
//! Standard output and standard error share one pipe, because two would have to be put back in order by guessing.

use crate::explanation::Explanation;
use std::collections::{BTreeMap, VecDeque};

/// A line that begins so says how far the job is: `::progress 42 message`.
const PROGRESS: &str = "::progress ";
/// A longer line is no result.
pub const LINE_BYTES_MAX: usize = 1 << 20;
const SET_OUTPUT: &str = "::set-output ";
const OUTPUTS_MAX: usize = 1_000;
pub const TAIL_LINES: usize = 10;
const TAIL_LINE_BYTES: usize = 400;

#[derive(Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Progress(f64, String),
}

#[derive(Default)]
pub struct Output {
    /// The start of a character whose rest has not come yet.
    carry: Vec<u8>,
    /// The line so far, without what is beyond the limit.
    pub line: String,
    /// So much of it was passed on already.
    passed: usize,
    too_long: bool,
    last: Option<String>,
    tail: VecDeque<String>,
    explanation: Explanation,
    /// What lines handed on by name; none where lines mean nothing.
    outputs: Option<BTreeMap<String, String>>,
}

impl Output {
    /// For jobs of workflow-graph, whose pages say that a line `::set-output name=value` hands something on.
    pub fn with_outputs() -> Self {
        Self { outputs: Some(BTreeMap::new()), ..Self::default() }
    }

    pub fn outputs(&self) -> BTreeMap<String, String> {
        self.outputs.clone().unwrap_or_default()
    }

    /// Takes what was read and gives what to pass on, at once but for the beginnings of progress lines.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        self.carry.extend_from_slice(bytes);
        let whole = self.decode();
        let (mut text, mut pieces) = (String::new(), Vec::new());
        for part in whole.split_inclusive('\n') {
            self.take(part);
            if part.ends_with('\n') {
                self.end_line(&mut text, &mut pieces);
            }
        }
        if !may_be_progress(&self.line) {
            self.pass(&mut text);
        }
        flush(&mut text, &mut pieces);
        pieces
    }

    /// After the last byte: what was held back.
    pub fn finish(&mut self) -> Vec<Piece> {
        let carry = std::mem::take(&mut self.carry);
        let (mut text, mut pieces) = (String::new(), Vec::new());
        self.take(&String::from_utf8_lossy(&carry));
        if !self.line.is_empty() {
            self.end_line(&mut text, &mut pieces);
        }
        flush(&mut text, &mut pieces);
        pieces
    }

    /// The last line that is not empty, if it is a JSON document.
    pub fn last_document(&self) -> Option<&str> {
        let line = self.last.as_deref()?.trim();
        let document =
            line.starts_with(['{', '[']) && serde_json::from_str::<&serde_json::value::RawValue>(line).is_ok();
        document.then_some(line)
    }

    pub fn tail(&self) -> String {
        self.tail.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Why it failed: the line that says so, or the last one, and then the last few lines as they came.
    pub fn failure(&self, how: &str) -> String {
        let Some(last) = self.tail.back() else { return how.to_owned() };
        let why = self.explanation.line().unwrap_or(last);
        if self.tail.len() == 1 && why.trim() == last.trim() {
            return format!("{how}: {last}");
        }
        format!("{how}: {why}\n{}", self.tail())
    }

    /// Whole characters; what is none becomes the replacement character.
    fn decode(&mut self) -> String {
        let bytes = std::mem::take(&mut self.carry);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            if chunk.invalid().is_empty() {
                continue;
            }
            // At the end it may only be cut off.
            let cut_off = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && cut_off {
                self.carry = chunk.invalid().to_vec();
            } else {
                text.push('\u{fffd}');
            }
        }
        text
    }

    fn take(&mut self, part: &str) {
        self.line.push_str(part);
    }

    /// Passes on the part of the line that was not yet. A line beyond the limit is passed on and forgotten.
    fn pass(&mut self, text: &mut String) {
        text.push_str(&self.line[self.passed..]);
        if self.line.len() > LINE_BYTES_MAX {
            self.too_long = true;
            self.line.clear();
        }
        self.passed = self.line.len();
    }

    fn end_line(&mut self, text: &mut String, pieces: &mut Vec<Piece>) {
        let progress = (self.passed == 0 && !self.too_long).then(|| progress(&self.line)).flatten();
        match progress {
            Some(progress) => {
                flush(text, pieces);
                pieces.push(progress);
            }
            None => {
                self.pass(text);
                self.remember();
            }
        }
        self.line.clear();
        (self.passed, self.too_long) = (0, false);
    }

    fn remember(&mut self) {
        let line = self.line.trim_end();
        if self.too_long {
            self.last = None;
        } else if !line.is_empty() {
            if let (Some(outputs), Some((name, value))) = (&mut self.outputs, set_output(line))
                && outputs.len() < OUTPUTS_MAX
            {
                outputs.insert(name.to_owned(), value.to_owned());
            }
            self.last = Some(line.to_owned());
            if self.tail.len() == TAIL_LINES {
                self.tail.pop_front();
            }
            self.explanation.hear(line);
            let shown = &line[..line.floor_char_boundary(TAIL_LINE_BYTES)];
            self.tail.push_back(if shown.len() < line.len() { format!("{shown}…") } else { shown.to_owned() });
        }
    }
}

fn flush(text: &mut String, pieces: &mut Vec<Piece>) {
    if !text.is_empty() {
        pieces.push(Piece::Text(std::mem::take(text)));
    }
}

fn may_be_progress(line: &str) -> bool {
    !line.is_empty() && line.len() <= 1_024 && (line.starts_with(PROGRESS) || PROGRESS.starts_with(line))
}

fn progress(line: &str) -> Option<Piece> {
    let rest = line.strip_prefix(PROGRESS)?.trim();
    let (percent, message) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let percent: f64 = percent.trim_end_matches('%').parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| Piece::Progress(percent, message.trim().to_owned()))
}

/// `::set-output name=value`.
fn set_output(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix(SET_OUTPUT)?.split_once('=')?;
    Some((name.trim(), value)).filter(|(name, _)| !name.is_empty())
}
