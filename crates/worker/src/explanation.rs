//! Which of the lines a command printed says why it failed. Seldom the last one: programs end with summaries, traces and hints.

/// Only so much of a line is looked at and kept.
const BYTES_MAX: usize = 400;

/// Names of what went wrong.
const NAMED: [&str; 6] = ["error", "exception", "fatal", "panic", "failure", "segfault"];
/// Sentences about it.
const TOLD: [&str; 12] = [
    "failed",
    "cannot",
    "can't",
    "could not",
    "unable to",
    "not found",
    "no such",
    "denied",
    "refused",
    "timed out",
    "invalid",
    "undefined",
];
/// What sounds like it and is none, or only says that there was one.
const OVERLOOKED: [&str; 13] = [
    "no error",
    "0 error",
    "0 failed",
    "0 failures",
    "without error",
    "aborting due to",
    "could not compile",
    "process didn't exit successfully",
    "complete log of this run",
    "elifecycle",
    "make: ***",
    "make[",
    "traceback (most recent",
];

/// The last line that names an error, else the last that tells of one. Lines that are set in belong to what is around them, and
/// count as telling.
#[derive(Debug, Default)]
pub struct Explanation {
    named: Option<String>,
    told: Option<String>,
    /// The line says that the next one explains.
    next: bool,
}

impl Explanation {
    /// A whole line, without its end.
    pub fn hear(&mut self, line: &str) {
        let line = plain(&line[..line.floor_char_boundary(BYTES_MAX)]);
        let (text, set_in) = (line.trim(), line.starts_with([' ', '\t']));
        if text.is_empty() {
            return;
        }
        let lower = text.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if std::mem::take(&mut self.next) {
            self.named = Some(text.to_owned());
        } else if lower.contains("panicked at") && text.ends_with(':') {
            self.next = true;
        } else if has(&OVERLOOKED) || lower.starts_with("at ") {
            // A frame of a trace, a summary, or good news.
        } else if has(&NAMED) && !set_in {
            self.named = Some(text.to_owned());
        } else if has(&NAMED) || has(&TOLD) {
            self.told = Some(text.to_owned());
        }
    }

    pub fn line(&self) -> Option<&str> {
        self.named.as_deref().or(self.told.as_deref())
    }
}

/// Without the sequences by which terminals are told of colours.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let parameters = &rest[at + 2..];
        let end = parameters.find(|char: char| ('@'..='~').contains(&char)).map_or(parameters.len(), |end| end + 1);
        rest = &parameters[end..];
    }
    plain + rest
}
