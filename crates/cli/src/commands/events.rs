//! `windlass events`: what happened, and what happens.

use super::{Context, Done};
use crate::{
    fail::code,
    ids,
    output::{Format, clean, say},
    times,
};
use clap::Args;
use std::time::Duration;
use windlass_api::event::{Event, ListenEvents};

const TRIES: u32 = 10;

/// Show events in order; with --follow, also new ones.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass events -f                              new events as they happen
  windlass events --after 0                       all events that are kept
  windlass events -f --type failed,cancelled      only failures and cancellations
  windlass events --job last --after 0 -o jsonl   the events of one job

Events have growing numbers, shared by all namespaces. A follower that loses its connection goes on where it was.")]
pub struct Events {
    /// Keep showing new events until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Only events of these types, separated by commas: submitted, claimed, completed, failed, worker_online and so on.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only events of this job.
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Only events after this number. Default: with --follow only new events, otherwise all events that are kept.
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// Stop after this many events.
    #[arg(short, long, value_name = "N")]
    limit: Option<u64>,
}

impl Events {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        let job = match &self.job {
            Some(text) => Some(ids::job(&client, text).await?),
            None => None,
        };
        let after = self.after.or((!self.follow).then_some(0));
        let mut query =
            ListenEvents { namespace: None, kind: self.kind.clone(), job, run: None, after, follow: Some(self.follow) };
        let (mut left, mut failures) = (self.limit.unwrap_or(u64::MAX), 0);
        while left > 0 {
            let mut stream = match client.events(&query).await {
                Ok(stream) => stream,
                Err(error) if error.is_temporary() && self.follow && query.after.is_some() && failures < TRIES => {
                    failures += 1;
                    tokio::time::sleep(Duration::from_millis(100 << failures.min(6))).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            while left > 0 {
                let event = match stream.next().await {
                    Ok(Some(event)) => event,
                    Err(error) if !self.follow => return Err(error.into()),
                    // A stream that broke is taken up again behind the last event seen.
                    Ok(None) | Err(_) => break,
                };
                failures = 0;
                query.after = Some(event.id);
                print(&event, context.format)?;
                left -= 1;
            }
            if !self.follow {
                break;
            }
        }
        Ok(code::OK)
    }
}

/// Events are a stream: also `-o json` prints one a line.
fn print(event: &Event, format: Format) -> anyhow::Result<()> {
    if !format.is_table() {
        return say(serde_json::to_string(event)?);
    }
    let about = event.job.map(|job| job.to_string()).or(event.worker.clone()).or(event.run.map(|run| run.to_string()));
    let rest: Vec<String> = event.rest.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let worker = if event.job.is_some() { event.worker.as_deref().unwrap_or_default() } else { "" };
    let line = format!(
        "{:>8}  {}  {:18} {}  {} {}",
        event.id,
        event.at.parse().map_or_else(|_| event.at.clone(), times::local),
        event.kind,
        about.unwrap_or_default(),
        worker,
        rest.join(" ")
    );
    say(clean(line.trim_end()))
}
