//! `windlass jobs`: the list.

use super::{Context, Done, PAGE};
use crate::{
    fail::code,
    output::{Format, Rows, cell, cut, on_terminal, say, state_cell},
    times,
};
use clap::Args;
use std::time::Duration;
use windlass_api::{
    Uuid,
    job::{Job, ListJobs},
};
use windlass_sdk::Client;

const WATCH: Duration = Duration::from_secs(2);

#[derive(Args)]
#[command(after_help = "Examples:
  windlass jobs                                the newest jobs
  windlass jobs --state failed,cancelled       jobs that failed or were cancelled
  windlass jobs --facet shot=s010 --watch      refreshed every two seconds
  windlass jobs --name nightly                 jobs whose name begins with `nightly`
  windlass jobs --state pending -o jsonl --limit 100000 | wc -l

States: blocked, scheduled, pending, claimed, running, completed, failed, cancelled, skipped.")]
pub struct Jobs {
    /// Only jobs in these states, separated by commas.
    #[arg(short, long, value_name = "STATE")]
    state: Option<String>,
    /// Only jobs with this facet.
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = super::options::pair)]
    facet: Option<(String, String)>,
    /// Only jobs whose name begins with this text: sorted by name from Z to A; jobs of the same name newest first.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// Only jobs of this run.
    #[arg(long, value_name = "ID")]
    run: Option<Uuid>,
    /// Only jobs this worker holds now.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// Show at most this many.
    #[arg(short, long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Refresh the list every two seconds, until Ctrl-C.
    #[arg(long)]
    watch: bool,
}

impl Jobs {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        loop {
            let jobs = self.fetch(&client, context.format.is_table()).await?;
            if self.watch && context.format.is_table() && on_terminal() {
                // Home, and clear from there: less flicker than clearing first.
                crate::output::say_raw(b"\x1b[H\x1b[J")?;
            }
            context.format.many(&jobs, || table(&jobs))?;
            if jobs.len() == self.limit as usize && context.format == Format::Table && !self.watch {
                let which = if self.name.is_some() { "first" } else { "newest" };
                say(format!("(the {which} {}; --limit shows more)", self.limit))?;
            }
            if !self.watch {
                return Ok(code::OK);
            }
            tokio::time::sleep(WATCH).await;
        }
    }

    async fn fetch(&self, client: &Client, commands: bool) -> anyhow::Result<Vec<Job>> {
        let mut query = ListJobs {
            state: self.state.clone(),
            facet: self.facet.as_ref().map(|(name, value)| format!("{name}:{value}")),
            name: self.name.clone(),
            run: self.run,
            worker: self.worker.clone(),
            commands,
            ..ListJobs::default()
        };
        let mut jobs = Vec::new();
        loop {
            let open = self.limit.saturating_sub(jobs.len() as u32);
            query.limit = Some(open.clamp(1, PAGE));
            let page = client.jobs(&query).await?;
            jobs.extend(page.items);
            query.cursor = page.next;
            if query.cursor.is_none() || jobs.len() >= self.limit as usize {
                jobs.truncate(self.limit as usize);
                return Ok(jobs);
            }
        }
    }
}

pub fn table(jobs: &[Job]) -> Rows {
    let now = times::now();
    let heads = ["ID", "STATE", "AGE", "TOOK", "TRY", "WORKER…", "WHAT…", "ABOUT…"];
    let mut rows = Rows::new(&heads, "No jobs. Submit one: windlass submit --shell 'echo hello'");
    for job in jobs {
        rows.add(vec![
            cell(job.id.to_string()),
            state_cell(job.state),
            cell(times::relative(&job.created_at, now).trim_end_matches(" ago")),
            cell(took(job, now)),
            cell(if job.attempt > 1 { format!("{}/{}", job.attempt, job.attempts_max) } else { String::new() }),
            cell(job.worker.as_deref().unwrap_or_default()),
            cell(what(job)),
            cell(about(job)),
        ]);
    }
    rows
}

fn took(job: &Job, now: jiff::Timestamp) -> String {
    let Some(from) = &job.claimed_at else { return String::new() };
    let to = job.finished_at.clone().or((!job.state.is_final() && job.worker.is_some()).then(|| now.to_string()));
    to.and_then(|to| times::between(from, &to)).unwrap_or_default()
}

fn what(job: &Job) -> String {
    let named = job.name.clone().or(job.definition.clone()).or(job.node.clone());
    let command = || job.command.as_ref().map(|command| cut(command, 60));
    let facets = || job.facets.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
    named.or_else(command).unwrap_or_else(|| if job.facets.is_empty() { job.tags.join(",") } else { facets() })
}

/// Progress while it runs, the error where there is one.
pub fn about(job: &Job) -> String {
    if job.cancel_requested {
        return "being cancelled".into();
    }
    match (&job.progress, &job.error) {
        (Some(progress), _) if !job.state.is_final() => {
            cut(format!("{:.0}% {}", progress.percent, progress.message).trim(), 50)
        }
        (_, Some(error)) => {
            let text = if error.message.is_empty() { &error.reason } else { &error.message };
            cut(text, 50)
        }
        _ => String::new(),
    }
}
