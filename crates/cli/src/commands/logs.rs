//! `windlass logs`: what a job wrote, so far or as it is written.

use super::{Context, Done, wait};
use crate::{
    fail::code,
    ids,
    output::{Format, Shown, say},
};
use clap::Args;
use std::time::{Duration, Instant};
use windlass_api::{
    Uuid,
    log::{LogPage, SearchLog},
};
use windlass_sdk::Client;

const PIECE: Duration = Duration::from_secs(20);
const TRIES: u32 = 10;

/// Show the log of a job.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass logs last
  windlass logs 0190c0de -f           live, until the job ends
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
}

impl Logs {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        let id = ids::job(&client, &self.id).await?;
        if let Some(text) = self.grep {
            return grep(&client, id, text, context.format).await;
        }
        if self.follow {
            follow(&client, id, context.format, None).await?;
            let (job, _) = wait::until_done(&client, id, Some(Duration::ZERO)).await?;
            return Ok(if job.state.is_final() { wait::exit_code(job.state) } else { code::OK });
        }
        let (mut after, mut shown) = (0, Shown::default());
        loop {
            let page = client.log(id, after, Duration::ZERO).await?;
            print(&page, context.format, &mut shown)?;
            if page.pieces.is_empty() || page.ended {
                shown.finish()?;
                return Ok(code::OK);
            }
            after = page.next;
        }
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
    let begun = Instant::now();
    // The first answer comes at once: where there is none, there is nothing to wait for.
    let (mut after, mut failures, mut reached, mut shown) = (0, 0, false, Shown::default());
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
