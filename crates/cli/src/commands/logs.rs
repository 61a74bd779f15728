//! `windlass logs`: what a job wrote, so far or as it is written.

use super::{Context, Done, wait};
use crate::{
    fail::code,
    ids,
    output::{Format, Shown, say},
};
use clap::Args;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};
use windlass_api::{
    Uuid,
    log::{LogPage, LogPiece, SearchLog},
};
use windlass_sdk::Client;

const PIECE: Duration = Duration::from_secs(20);
const TRIES: u32 = 10;
/// Of `--tail`.
const LINES_MAX: i64 = 100_000;

/// Show the log of a job.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass logs last
  windlass logs 0190c0de -f           live, until the job ends
  windlass logs last --tail 5         the last five lines; with -f, what comes after them too
  windlass logs last --grep error     only lines that contain this text, with their numbers
  windlass logs last -o jsonl         as JSON, with times and attempts

With --follow the exit code tells how the job ended: 0 completed, 3 failed or skipped, 4 cancelled.")]
pub struct Logs {
    /// The job's id, the beginning of it, or `last`.
    #[arg(value_name = "ID")]
    id: String,
    /// Show the log live until the job has ended.
    #[arg(short, long)]
    follow: bool,
    /// Show only lines that contain this text; upper and lower case are the same. The server searches. Exit code 1: there is none.
    #[arg(long, value_name = "TEXT", conflicts_with = "follow")]
    grep: Option<String>,
    /// Start with the last N lines of what is there. With -o json or jsonl: with the pieces these lines are in.
    #[arg(long, value_name = "N", conflicts_with = "grep", value_parser = clap::value_parser!(u32).range(1..=LINES_MAX))]
    tail: Option<u32>,
}

impl Logs {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        let id = ids::job(&client, &self.id).await.map_err(|error| self.with_hint(error, context))?;
        if let Some(text) = self.grep {
            return grep(&client, id, text, context.format).await;
        }
        let (mut after, mut shown) = (0, Shown::default());
        if let Some(lines) = self.tail {
            let page = tail(&client, id, lines as usize, context.format).await?;
            print(&page, context.format, &mut shown)?;
            after = page.next;
        }
        if self.follow {
            follow_from(&client, id, context.format, None, (after, shown)).await?;
            let (job, _) = wait::until_done(&client, id, Some(Duration::ZERO)).await?;
            return Ok(if job.state.is_final() { wait::exit_code(job.state) } else { code::OK });
        }
        while self.tail.is_none() {
            let page = client.log(id, after, Duration::ZERO).await?;
            print(&page, context.format, &mut shown)?;
            if page.pieces.is_empty() || page.ended {
                break;
            }
            after = page.next;
        }
        shown.finish()?;
        Ok(code::OK)
    }

    /// Other programs take `-n` for a number of lines.
    fn with_hint(&self, error: anyhow::Error, context: &Context) -> anyhow::Error {
        match context.remote.options.namespace.as_deref().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        {
            Some(number) => {
                error.context(format!("-n {number} names a namespace; the last {number} lines: --tail {number}"))
            }
            None => error,
        }
    }
}

/// The last lines of what is there, as one page. Holds no more than these lines and a page of the log.
async fn tail(client: &Client, id: Uuid, lines: usize, format: Format) -> anyhow::Result<LogPage> {
    let (mut last, mut after) = (LastLines::new(lines), 0);
    loop {
        let mut page = client.log(id, after, Duration::ZERO).await?;
        let done = page.pieces.is_empty() || page.ended;
        page.pieces.drain(..).for_each(|piece| last.push(piece));
        if done {
            page.pieces = if format.is_table() { last.cut() } else { last.pieces.into() };
            return Ok(page);
        }
        after = page.next;
    }
}

/// The last pieces of a log: as many as the wanted lines need.
pub struct LastLines {
    wanted: usize,
    pieces: VecDeque<LogPiece>,
    breaks: usize,
}

fn breaks(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

impl LastLines {
    pub fn new(wanted: usize) -> Self {
        Self { wanted, pieces: VecDeque::new(), breaks: 0 }
    }

    pub fn push(&mut self, piece: LogPiece) {
        self.breaks += breaks(&piece.data);
        self.pieces.push_back(piece);
        // One break before the lines, and one after each.
        while let Some(first) = self.pieces.front().map(|piece| breaks(&piece.data)) {
            if self.breaks - first <= self.wanted {
                break;
            }
            self.breaks -= first;
            self.pieces.pop_front();
        }
    }

    /// Without what is before the lines in their first piece.
    pub fn cut(mut self) -> Vec<LogPiece> {
        let ended = self.pieces.back().is_some_and(|piece| piece.data.ends_with('\n'));
        let mut before = (self.breaks + usize::from(!ended)).saturating_sub(self.wanted);
        for piece in &mut self.pieces {
            while before > 0 {
                let Some(at) = piece.data.find('\n') else {
                    piece.data.clear();
                    break;
                };
                piece.data.drain(..=at);
                before -= 1;
            }
        }
        self.pieces.into()
    }
}

async fn grep(client: &Client, id: Uuid, text: String, format: Format) -> Done {
    let mut search = SearchLog { text, limit: Some(1_000), ..SearchLog::default() };
    let (mut count, mut shown) = (0, Shown::default());
    loop {
        let found = client.search_log(id, &search).await?;
        for line in &found.lines {
            match format {
                Format::Table => shown.write(&format!("{:>6}  {}\n", line.line, line.text))?,
                Format::Json | Format::Jsonl => say(serde_json::to_string(line)?)?,
            }
        }
        count += found.lines.len();
        search.cursor = found.next;
        if search.cursor.is_none() {
            shown.finish()?;
            return Ok(if count > 0 { code::OK } else { code::ERROR });
        }
    }
}

/// Prints what is written until the job has ended, or the time is up. A server that is away for a moment is waited for.
pub async fn follow(client: &Client, id: Uuid, format: Format, timeout: Option<Duration>) -> anyhow::Result<()> {
    follow_from(client, id, format, timeout, (0, Shown::default())).await
}

async fn follow_from(
    client: &Client,
    id: Uuid,
    format: Format,
    timeout: Option<Duration>,
    (mut after, mut shown): (u64, Shown),
) -> anyhow::Result<()> {
    let begun = Instant::now();
    // The first answer comes at once: where there is none, there is nothing to wait for.
    let (mut failures, mut reached) = (0, false);
    loop {
        let left = timeout.map_or(PIECE, |timeout| timeout.saturating_sub(begun.elapsed()).min(PIECE));
        let left = if reached { left } else { Duration::ZERO };
        let page = match client.log(id, after, left).await {
            Ok(page) => page,
            Err(error) if error.is_temporary() && reached && failures < TRIES => {
                failures += 1;
                tokio::time::sleep(Duration::from_millis(100 << failures.min(5))).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        (failures, reached) = (0, true);
        print(&page, format, &mut shown)?;
        after = page.next;
        if page.ended || timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
            shown.finish()?;
            return Ok(());
        }
    }
}

fn print(page: &LogPage, format: Format, shown: &mut Shown) -> anyhow::Result<()> {
    for piece in &page.pieces {
        match format {
            Format::Table => shown.write(&piece.data)?,
            Format::Json | Format::Jsonl => say(serde_json::to_string(piece)?)?,
        }
    }
    Ok(())
}
