//! `windlass job`: one job.

use super::{Context, Done, logs::Logs, wait::Wait};
use crate::{
    fail::code,
    ids,
    output::{Facts, Format, clean, clean_lines, note, say},
    times,
};
use clap::{Args, Subcommand};
use windlass_api::{
    job::{CancelMode, Job, State, Submitted},
    why::Why,
};
use windlass_sdk::Error;

#[derive(Subcommand)]
#[command(after_help = "Ids may be abbreviated as long as they are unique; `last` is the job submitted last from here.

Examples:
  windlass job show last
  windlass job wait 0190c0de --timeout 5m && echo done
  windlass job result last | jq .")]
pub enum JobCommand {
    /// Show a job.
    Show(One),
    Wait(Wait),
    /// Cancel jobs. The worker of a running job is told to stop, and the job ends with the worker's report.
    Cancel(Cancel),
    /// Run finished jobs again, each as a new job.
    Retry(RetryArgs),
    /// Why is a job not running?
    Why(One),
    /// Print the job's result as JSON.
    Result(One),
    /// Print the job's payload as JSON.
    Payload(One),
    Logs(Logs),
}

#[derive(Args)]
pub struct One {
    /// The job's id, the beginning of it, or `last`.
    #[arg(value_name = "ID")]
    pub id: String,
}

#[derive(Args)]
pub struct Several {
    /// Job ids, beginnings of ids, or `last`.
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
}

#[derive(Args)]
pub struct RetryArgs {
    #[command(flatten)]
    several: Several,
    /// Also retry jobs that were retried before.
    #[arg(long)]
    again: bool,
}

#[derive(Args)]
pub struct Cancel {
    #[command(flatten)]
    several: Several,
    /// How to cancel a running job: `drain` asks its worker to stop and waits, `revoke` ends the job at once.
    /// Default: what the job sets, else `drain`.
    #[arg(long, value_name = "HOW", value_parser = ["drain", "revoke"])]
    mode: Option<String>,
}

impl JobCommand {
    pub async fn run(self, context: &Context) -> Done {
        match self {
            JobCommand::Show(one) => show(context, &one).await,
            JobCommand::Wait(wait) => wait.run(context).await,
            JobCommand::Cancel(wanted) => cancel(context, &wanted).await,
            JobCommand::Retry(wanted) => retry(context, &wanted).await,
            JobCommand::Why(one) => why(context, &one).await,
            JobCommand::Result(one) => {
                body(context, &one, "result", |job| job.result.map(|json| json.get().to_owned())).await
            }
            JobCommand::Payload(one) => {
                body(context, &one, "payload", |job| job.payload.map(|json| json.get().to_owned())).await
            }
            JobCommand::Logs(logs) => logs.run(context).await,
        }
    }
}

async fn show(context: &Context, one: &One) -> Done {
    let client = context.client()?;
    let job = client.job(ids::job(&client, &one.id).await?).await?;
    context.format.one(&job, || text(&job))?;
    Ok(code::OK)
}

pub async fn cancel(context: &Context, wanted: &Cancel) -> Done {
    let (client, several) = (context.client()?, &wanted.several);
    let mode = wanted.mode.as_deref().map(|how| if how == "drain" { CancelMode::Drain } else { CancelMode::Revoke });
    let mut failed = false;
    for id in ids::jobs(&client, &several.ids).await? {
        match client.cancel_as(id, mode).await {
            Ok(job) => context.format.one(&job, || {
                let more = if job.state.is_final() { "" } else { "; its worker was asked to stop" };
                format!("{id}  {}{more}", job.state.name())
            })?,
            Err(error) if several.ids.len() > 1 && error.status().is_some() => {
                failed = true;
                note(format!("{id}: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(if failed { code::ERROR } else { code::OK })
}

pub async fn retry(context: &Context, wanted: &RetryArgs) -> Done {
    let (client, several) = (context.client()?, &wanted.several);
    let mut failed = false;
    for id in ids::jobs(&client, &several.ids).await? {
        let made: Submitted = match client.retry_as(id, wanted.again).await {
            Ok(made) => made,
            Err(error) => {
                let before = matches!(&error, Error::Problem(problem) if problem.field.as_deref() == Some("again"));
                let error = if before { anyhow::anyhow!("{error} (--again)") } else { error.into() };
                if several.ids.len() == 1 {
                    return Err(error);
                }
                failed = true;
                note(format!("{id}: {error:#}"));
                continue;
            }
        };
        ids::remember(&client, made.id);
        context.format.one(&made, || format!("{}  {} (retry of {id})", made.id, made.state.name()))?;
    }
    Ok(if failed { code::ERROR } else { code::OK })
}

pub async fn why(context: &Context, one: &One) -> Done {
    let client = context.client()?;
    let why = client.why(ids::job(&client, &one.id).await?).await?;
    context.format.one(&why, || why_text(&why))?;
    Ok(code::OK)
}

pub fn why_text(why: &Why) -> String {
    let told = |text: &str| clean(&times::localised(text));
    let mut lines = vec![format!("{} is {}: {}", why.job, why.state.name(), told(&why.summary))];
    for reason in &why.reasons {
        if reason.text != why.summary {
            lines.push(format!("  - {}", told(&reason.text)));
        }
        lines.extend(reason.help.iter().map(|help| format!("    {}", told(help))));
        lines.extend(reason.jobs.iter().map(|job| format!("      job {job}")));
        lines.extend(reason.workers.iter().map(|worker| format!("      worker {}", clean(worker))));
    }
    lines.join("\n")
}

/// As it was written: what a worker left is handed on, not reformatted.
async fn body(context: &Context, one: &One, what: &str, part: impl FnOnce(Job) -> Option<String>) -> Done {
    let client = context.client()?;
    let job = client.job(ids::job(&client, &one.id).await?).await?;
    let (id, state) = (job.id, job.state.name());
    let Some(text) = part(job) else { anyhow::bail!("job {id} has no {what}; it is {state}") };
    match context.format {
        Format::Table | Format::Jsonl => say(text)?,
        Format::Json => say(serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&text)?)?)?,
    }
    Ok(code::OK)
}

/// How it ended, in a line or two.
pub fn ending(job: &Job) -> String {
    let took = match (&job.claimed_at, &job.finished_at) {
        (Some(from), Some(to)) => times::between(from, to).map(|took| format!(" in {took}")).unwrap_or_default(),
        _ => String::new(),
    };
    let mut text = format!("{}  {}{took}", job.id, job.state.name());
    if let (Some(error), true) = (&job.error, job.state != State::Completed) {
        text += &format!("\n{}: {}", clean(&error.reason), clean_lines(error.message.trim_end()));
    }
    if let (Some(result), State::Completed) = (&job.result, job.state) {
        text += &format!("\n{}", clean_lines(result.get()));
    }
    text
}

fn text(job: &Job) -> String {
    let now = times::now();
    let when = |time: &Option<String>| times::maybe_both(time.as_deref(), now);
    let list = |ids: &[windlass_api::Uuid]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let facets: Vec<String> = job.facets.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut facts = Facts::default();
    facts.add("Job", job.id.to_string()).add("Namespace", &job.namespace);
    facts.add("Name", job.name.as_deref().unwrap_or_default());
    facts.add("State", format!("{}{}", job.state.name(), if job.cancel_requested { ", being cancelled" } else { "" }));
    if let Some(error) = &job.error {
        facts.add("Error", format!("{}: {}", error.reason, error.message));
    }
    if let Some(progress) = &job.progress {
        facts.add("Progress", format!("{:.0}% {}", progress.percent, progress.message));
    }
    facts.add("Attempt", format!("{} of {}", job.attempt, job.attempts_max));
    facts.add("Worker", job.worker.as_deref().unwrap_or_default());
    facts.add("Definition", job.definition.as_deref().unwrap_or_default());
    facts.add("Tags", job.tags.join(", ")).add("Facets", facets.join(", "));
    facts.add("Priority", job.priority.to_string());
    facts.add("Owner", job.owner.as_deref().unwrap_or_default());
    if let Some(run) = job.run {
        facts.add("Run", format!("{run} ({})", job.node.as_deref().unwrap_or_default()));
    }
    if let Some(key) = &job.concurrency {
        facts.add("Concurrency", format!("{} (at most {})", key.key, key.limit));
    }
    facts.add("Waits for", list(&job.after)).add("Waited for by", list(&job.before));
    facts.add("Trace", job.trace_url.as_deref().or(job.trace.as_deref()).unwrap_or_default());
    facts.add("Retry of", job.retry_of.map(|id| id.to_string()).unwrap_or_default());
    facts.add("Retried as", job.retried_as.map(|id| id.to_string()).unwrap_or_default());
    facts.add("Retried by", job.retried_by.map(|id| id.to_string()).unwrap_or_default());
    facts.add("Submitted", when(&Some(job.created_at.clone()))).add("Not before", when(&job.run_at));
    facts.add("Claimed", when(&job.claimed_at)).add("Started", when(&job.started_at));
    facts.add("Finished", when(&job.finished_at)).add("Lease until", when(&job.lease_until));
    facts.add("Deadline", when(&job.deadline_at));
    facts.add(
        "Log",
        if job.log_bytes > 0 {
            format!("{} (windlass logs {})", times::bytes(job.log_bytes), job.id)
        } else {
            String::new()
        },
    );
    facts.add("Payload", job.payload.as_ref().map(|json| json.get()).unwrap_or_default());
    facts.add("Result", job.result.as_ref().map(|json| json.get()).unwrap_or_default());
    let mut text = facts.text();
    for attempt in &job.attempts {
        let message = clean(attempt.error.message.trim_end());
        let ended = times::both(&attempt.ended_at, now);
        text += &format!(
            "\nAttempt {} by {} ended {ended}: {} {message}",
            attempt.number,
            clean(&attempt.worker),
            clean(&attempt.error.reason)
        );
    }
    text
}
