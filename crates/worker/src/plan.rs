//! Which command a job is. Pure: what the operator set up and what the job says, in; a command, or why there is none, out.

use crate::{
    args::{Config, Dialect, Entry},
    graph,
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    path::{Component, PathBuf},
    time::Duration,
};
use windlass_sdk::{
    api::{Json, lease::Leased},
    worker::Failure,
};

const REST_FIRST_MS: u64 = 250;
const REST_MAX: Duration = Duration::from_secs(30);

/// What the operator set up.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub config: Config,
    pub exec: Vec<String>,
    pub allow_commands: bool,
    pub give_back: bool,
    pub dialect: Dialect,
}

/// Why there is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPlan {
    /// The job is for this worker, and wrong.
    Wrong(Failure),
    /// Another worker may know what to do with it.
    NotMine(String),
}

impl From<Failure> for NoPlan {
    fn from(failure: Failure) -> Self {
        NoPlan::Wrong(failure)
    }
}

/// A command to run for one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Never empty.
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub stdin: Vec<u8>,
    /// Below the working folder.
    pub cwd: PathBuf,
}

/// A payload that says itself what to run.
#[derive(Debug, Deserialize)]
struct CommandPayload {
    command: Option<Vec<String>>,
    shell: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, Json>,
    stdin: Option<Json>,
    #[serde(default)]
    cwd: PathBuf,
}

impl Rules {
    /// The definition's program before `--exec` before what the payload says.
    pub fn plan(&self, leased: &Leased) -> Result<Plan, NoPlan> {
        let payload = leased.payload.as_ref().map_or("null", |json| json.get());
        if let Some(entry) = leased.definition.as_deref().and_then(|name| self.entry(name)) {
            let argv = argv(entry.command.clone(), entry.shell.clone());
            return Ok(own(argv?, entry.env.clone(), payload));
        }
        if !self.exec.is_empty() {
            return Ok(own(self.exec.clone(), BTreeMap::new(), payload));
        }
        if self.dialect == Dialect::WorkflowGraph {
            let job = graph::Job::parse(payload)?;
            return Ok(Plan { stdin: Vec::new(), ..own(argv(None, Some(job.command))?, BTreeMap::new(), "") });
        }
        if !self.allow_commands {
            let what = leased.definition.as_ref().map_or("this job".into(), |name| format!("jobs of {name}"));
            let why = format!("this worker has no program for {what}, and was not started with --allow-commands");
            return Err(self.not_mine(Failure::new(why)));
        }
        if self.give_back && !is_command(payload) {
            return Err(NoPlan::NotMine("the payload is not a command".into()));
        }
        Ok(from_payload(payload)?)
    }

    fn not_mine(&self, failure: Failure) -> NoPlan {
        if self.give_back { NoPlan::NotMine(failure.message) } else { NoPlan::Wrong(failure) }
    }

    fn entry(&self, definition: &str) -> Option<&Entry> {
        let entries = &self.config.definitions;
        entries.get(definition).or_else(|| entries.get(definition.rsplit_once('@')?.0))
    }
}

fn own(argv: Vec<String>, env: BTreeMap<String, String>, payload: &str) -> Plan {
    Plan { argv, env, stdin: payload.as_bytes().to_vec(), cwd: PathBuf::new() }
}

fn argv(command: Option<Vec<String>>, shell: Option<String>) -> Result<Vec<String>, Failure> {
    match (command, shell) {
        (Some(command), None) if !command.is_empty() => Ok(command),
        (None, Some(text)) => Ok(vec!["/bin/sh".into(), "-c".into(), text]),
        _ => {
            Err(Failure::permanent("the payload needs either \"command\": [program, argument…] or \"shell\": \"text\""))
        }
    }
}

/// Whether the payload means to be a command, right or wrong.
fn is_command(text: &str) -> bool {
    let payload: Option<BTreeMap<String, serde::de::IgnoredAny>> = serde_json::from_str(text).ok();
    payload.is_some_and(|payload| payload.contains_key("command") || payload.contains_key("shell"))
}

/// How long a job that is given back is offered to nobody: short at first, so that a worker that can run it gets it soon;
/// then longer, so that a job nobody can run costs little. It never waits much longer than it has waited already.
pub fn rest(attempt: u32) -> Duration {
    Duration::from_millis(REST_FIRST_MS << attempt.saturating_sub(1).min(7)).min(REST_MAX)
}

fn from_payload(text: &str) -> Result<Plan, Failure> {
    let payload: CommandPayload = serde_json::from_str(text).map_err(|error| {
        Failure::permanent(format!(
            "the payload is not a command ({error}); write {{\"command\": [\"program\", \"argument\"]}}"
        ))
    })?;
    let value = |(name, json): (String, Json)| (name, plain(&json));
    let env: BTreeMap<String, String> = payload.env.into_iter().map(value).collect();
    let argv = argv(payload.command, payload.shell)?;
    let nul = argv.iter().chain(env.keys()).chain(env.values()).any(|text| text.contains('\0'));
    let name = env.keys().find(|name| name.is_empty() || name.contains('=') || name.starts_with("WINDLASS_"));
    if nul || name.is_some() {
        let what = name.map_or("a zero byte".into(), |name| format!("the variable name {name:?}"));
        return Err(Failure::permanent(format!("the payload's command cannot be run: {what} is not possible")));
    }
    if !payload.cwd.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(Failure::permanent("\"cwd\" must stay below the working folder: no / at its start, no .."));
    }
    let stdin = payload.stdin.map_or_else(|| text.as_bytes().to_vec(), |json| plain(&json).into_bytes());
    Ok(Plan { argv, env, stdin, cwd: payload.cwd })
}

/// A string is taken as it is, anything else as JSON.
fn plain(json: &Json) -> String {
    serde_json::from_str::<String>(json.get()).unwrap_or_else(|_| json.get().to_owned())
}
