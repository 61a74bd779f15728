//! What a job is made of, as options: shared by `submit` and `schedules set`.

use crate::times;
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use std::{io::Read, path::Path};
use windlass_api::{
    JobSettings, Json, RawValue, Uuid,
    job::{CancelMode, Concurrency, Retry, SubmitJob, WhenParentFails},
};

/// More than a server takes anyway.
const PAYLOAD_MAX: u64 = 64 << 20;

#[derive(Args, Clone, Default)]
#[command(next_help_heading = "The job")]
pub struct JobOptions {
    /// The payload: JSON, @FILE to read it from a file, or - for standard input.
    #[arg(short, long, value_name = "JSON", conflicts_with_all = ["command", "shell"], allow_hyphen_values = true)]
    pub payload: Option<String>,
    /// Run a program on a worker that accepts commands. Everything after `--` is the program and its arguments.
    #[arg(short, long, requires = "words", conflicts_with = "shell")]
    pub command: bool,
    /// Run this text with `sh -c` on a worker that accepts commands.
    #[arg(short, long, value_name = "TEXT")]
    pub shell: Option<String>,
    /// Set an environment variable for --command or --shell (repeatable).
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// The program and its arguments, with --command.
    #[arg(last = true, value_name = "PROGRAM", requires = "command")]
    pub words: Vec<String>,
    /// Create the job from a definition: NAME for the latest version, NAME@3 for version 3.
    #[arg(short, long, value_name = "NAME")]
    pub definition: Option<String>,
    /// Start no earlier than this long from now: 90s, 5m, 2h, 1d.
    #[arg(long, value_name = "TIME", value_parser = times::length, conflicts_with = "at")]
    pub delay: Option<u64>,
    /// Start no earlier than this time: 2026-01-31T12:00:00Z, or without the Z for local time.
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    pub at: Option<String>,
    /// A job that must complete first (repeatable).
    #[arg(long, value_name = "ID")]
    pub after: Vec<String>,
    /// What to do if one of those jobs does not complete [default: skip].
    #[arg(long, value_name = "WHAT", value_parser = ["skip", "run", "cancel"])]
    pub when_parent_fails: Option<String>,
    /// NAME=VALUE to filter lists by; at most six.
    #[arg(short, long = "facet", value_name = "NAME=VALUE", value_parser = pair)]
    pub facets: Vec<(String, String)>,
    /// How to cancel the job while it runs: `drain` asks the worker to stop and waits, `revoke` ends the job at once.
    #[arg(long, value_name = "HOW", value_parser = ["drain", "revoke"])]
    pub cancel: Option<String>,
    #[command(flatten)]
    pub settings: SettingsOptions,
}

/// What a job may ask for. Options that a job has in the API too are called alike there.
#[derive(Args, Clone, Default)]
pub struct SettingsOptions {
    /// What to call the job: 1 to 200 characters. `windlass jobs --name` finds it.
    #[arg(long = "name", value_name = "TEXT")]
    pub job_name: Option<String>,
    /// A tag the worker must offer (repeatable).
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Priority: lower numbers go first [default: 100].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// Concurrency key: run at most LIMIT jobs with the same KEY at a time.
    #[arg(long, value_name = "KEY=LIMIT", value_parser = pair)]
    pub concurrency: Option<(String, String)>,
    /// Time limit for an attempt, from its claim. By default an attempt that takes longer is retried like one that fails: see --retries,
    /// --on-timeout and --deadline.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    pub timeout: Option<u64>,
    /// What to do with an attempt that exceeds --timeout: retry it, or fail the job [default: retry].
    #[arg(long, value_name = "WHAT", value_parser = ["retry", "fail"])]
    pub on_timeout: Option<String>,
    /// How many times the job is retried after a timeout; --retries counts as well [default: as often as --retries allows].
    #[arg(long, value_name = "N")]
    pub timeout_retries: Option<u32>,
    /// Fail the job if it has not ended within this time, all attempts and the waits between them included. Counted from when it could
    /// first start: after its delay and the jobs it waits for.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    pub deadline: Option<u64>,
    /// Fail the job if it is not claimed within this time.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    pub pending_timeout: Option<u64>,
    /// How many times the job is retried after a failure [default: 2].
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Wait this long before the first retry, and twice as long before each next one [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    pub backoff: Option<u64>,
    /// How long to keep the job after it has ended.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    pub keep: Option<u64>,
}

impl SettingsOptions {
    fn settings(&self) -> anyhow::Result<JobSettings> {
        Ok(JobSettings {
            name: self.job_name.clone(),
            tags: (!self.tags.is_empty()).then(|| self.tags.clone()),
            priority: self.priority,
            concurrency: self.concurrency()?,
            retry: self.retry(),
            timeout_ms: self.timeout,
            deadline_ms: self.deadline,
            pending_timeout_ms: self.pending_timeout,
            lease_ms: None,
            retention_ms: self.keep,
        })
    }

    fn concurrency(&self) -> anyhow::Result<Option<Concurrency>> {
        let Some((key, limit)) = &self.concurrency else { return Ok(None) };
        let limit =
            limit.parse().with_context(|| format!("--concurrency {key}={limit}: the limit must be a number"))?;
        Ok(Some(Concurrency { key: key.clone(), limit }))
    }

    fn retry(&self) -> Option<Retry> {
        let retry = Retry {
            attempts: self.retries.map(|retries| retries.saturating_add(1)),
            backoff_ms: self.backoff,
            on_timeout: self.on_timeout.as_deref().map(|what| what == "retry"),
            timeout_retries: self.timeout_retries,
            ..Retry::default()
        };
        (retry != Retry::default()).then_some(retry)
    }
}

/// `name=value`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} has no '='; write it as name=value"))?;
    Ok((name.to_owned(), value.to_owned()))
}

impl JobOptions {
    /// Whether there is more to the job than that there is one: something to do, or somebody it is meant for.
    pub fn says_what(&self) -> bool {
        let something = self.payload.is_some() || self.command || self.shell.is_some() || self.definition.is_some();
        something || !self.settings.tags.is_empty()
    }

    /// The job these options describe. `after` was looked up before, since ids may be abbreviated.
    pub fn job(&self, after: Vec<Uuid>) -> anyhow::Result<SubmitJob> {
        Ok(SubmitJob {
            definition: self.definition.clone(),
            payload: self.payload()?,
            run_at: self.at.clone(),
            delay_ms: self.delay,
            after,
            when_parent_fails: self.when_parent_fails.as_deref().map(|what| match what {
                "run" => WhenParentFails::Run,
                "cancel" => WhenParentFails::Cancel,
                _ => WhenParentFails::Skip,
            }),
            facets: self.facets.iter().cloned().collect(),
            cancel: self
                .cancel
                .as_deref()
                .map(|how| if how == "drain" { CancelMode::Drain } else { CancelMode::Revoke }),
            settings: self.settings.settings()?,
            ..SubmitJob::default()
        })
    }

    fn payload(&self) -> anyhow::Result<Option<Json>> {
        if let Some(text) = &self.payload {
            return json(text).map(Some);
        }
        let mut payload = if self.command {
            serde_json::json!({ "command": self.words })
        } else if let Some(text) = &self.shell {
            serde_json::json!({ "shell": text })
        } else {
            ensure!(self.env.is_empty(), "--env goes with --command or --shell");
            return Ok(None);
        };
        if !self.env.is_empty() {
            payload["env"] =
                self.env.iter().cloned().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect();
        }
        Ok(Some(serde_json::value::to_raw_value(&payload)?))
    }
}

/// JSON as given: a text, `@file`, or `-`.
pub fn json(text: &str) -> anyhow::Result<Json> {
    let (text, place) = match text.strip_prefix('@') {
        Some(file) => (read(Some(Path::new(file)))?, file.to_owned()),
        None if text == "-" => (read(None)?, "standard input".to_owned()),
        None => (text.to_owned(), "the payload".to_owned()),
    };
    let error = match RawValue::from_string(text.trim().to_owned()) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let word = text.trim();
    if place == "the payload" && !word.starts_with(['{', '[', '"']) {
        bail!(
            "{word} is not valid JSON. A text needs quotes of its own: -p '\"{word}\"'; to read a file: -p @FILE; to run a command: --shell '{word}'"
        );
    }
    bail!("{place} is not valid JSON: {error}")
}

/// A whole file, or standard input.
pub fn read(file: Option<&Path>) -> anyhow::Result<String> {
    let mut text = String::new();
    match file {
        Some(file) => {
            let opened = std::fs::File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
            opened
                .take(PAYLOAD_MAX)
                .read_to_string(&mut text)
                .with_context(|| format!("{} cannot be read", file.display()))?;
        }
        None => {
            std::io::stdin()
                .lock()
                .take(PAYLOAD_MAX)
                .read_to_string(&mut text)
                .context("standard input cannot be read")?;
        }
    }
    Ok(text)
}
