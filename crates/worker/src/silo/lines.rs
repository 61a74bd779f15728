//! What a command prints, line by line: progress, log entries, and the last thing it complained about.

use crate::process::OutputSink;
use tokio::sync::mpsc;

/// The server takes 64 KiB in an entry; a longer line becomes several.
const LINE_BYTES_MAX: usize = 60 << 10;
const COMPLAINT_BYTES_MAX: usize = 4 << 10;
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Without a text the last one stays.
    Progress(u8, Option<String>),
    Log(&'static str, String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    Errors,
}

/// Takes one stream apart. Lines wait here where the server is slow, and the command waits with them.
pub struct Lines {
    stream: Stream,
    said: mpsc::Sender<Said>,
    line: Vec<u8>,
    /// The last line of standard error that is not empty.
    pub complaint: Option<String>,
}

impl Lines {
    pub fn new(stream: Stream, said: mpsc::Sender<Said>) -> Self {
        Self { stream, said, line: Vec::new(), complaint: None }
    }

    async fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.trim().is_empty() {
            return;
        }
        if self.stream == Stream::Errors {
            let trimmed = line.trim();
            self.complaint = Some(trimmed[..trimmed.floor_char_boundary(COMPLAINT_BYTES_MAX)].to_owned());
        }
        let said = match self.stream {
            Stream::Output => said(line),
            Stream::Errors => Said::Log("warn", line.to_owned()),
        };
        // Whoever takes them is gone where the job is lost; the command still has to be read to its end.
        drop(self.said.send(said).await);
    }
}

impl OutputSink for Lines {
    async fn hear(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in part.chunks(LINE_BYTES_MAX) {
                if self.line.len() + piece.len() > LINE_BYTES_MAX {
                    self.end_line().await;
                }
                self.line.extend_from_slice(piece);
            }
            if part.ends_with(b"\n") {
                self.end_line().await;
            }
        }
    }

    async fn end(&mut self) {
        self.end_line().await;
    }
}

/// `::progress 42 text`, `::log warn text`, or a line for the log.
fn said(line: &str) -> Said {
    let progress = line.strip_prefix("::progress ").and_then(progress);
    let log = || line.strip_prefix("::log ").and_then(log);
    progress.or_else(log).unwrap_or_else(|| Said::Log("info", line.to_owned()))
}

fn split(rest: &str) -> (&str, &str) {
    let rest = rest.trim();
    rest.split_once(char::is_whitespace).map_or((rest, ""), |(first, text)| (first, text.trim()))
}

fn progress(rest: &str) -> Option<Said> {
    let (percent, text) = split(rest);
    let percent: f64 = percent.trim_end_matches('%').parse().ok()?;
    let text = Some(text.to_owned()).filter(|text| !text.is_empty());
    (0.0..=100.0).contains(&percent).then_some(Said::Progress(percent as u8, text))
}

fn log(rest: &str) -> Option<Said> {
    let (level, text) = split(rest);
    let level = LEVELS.into_iter().find(|known| *known == level)?;
    (!text.is_empty()).then(|| Said::Log(level, text.to_owned()))
}
