//! `windlass workflow`: runs of many steps, started, watched, answered and drawn.

pub mod draw;
pub mod file;
pub mod input;
pub mod layout;
pub mod show;
pub mod watch;

use super::{Context, Done};
use crate::{fail::code, ids, output::say, times};
use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use std::time::Duration;
use windlass_api::{
    RawValue, Uuid, count_of,
    page::Paging,
    workflow::{Decide, InlineRun, ListRuns, Run, RunState, Signal, StartRun, StartedRun},
};
use windlass_sdk::Client;

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass workflow run build.yml --watch            run a file and show its steps live
  windlass workflow run release --input version=1.2  run a stored workflow
  windlass workflow list                             the newest runs
  windlass workflow show last                        the last run, step by step
  windlass workflow approve last release             approve the step that waits
  windlass workflow graph last --as svg > run.svg    draw it
  windlass workflow retry last                       run again what did not complete

A file is in the native format (`steps:`) or in the format of a dialect, which is converted. Name a run by its id, the beginning of
its id, or `last`.")]
pub enum WorkflowCommand {
    Run(Box<RunArgs>),
    List(List),
    /// Show a run and its steps.
    Show(Which),
    /// Show a run's steps live until the run has ended.
    #[command(after_help = "Exit codes: 0 completed, 3 failed, 4 cancelled.")]
    Watch(Which),
    /// Cancel runs. Waiting steps end at once; the workers of running steps are told to stop.
    Cancel(Several),
    /// Run again what did not complete, as a new run that reuses the results of completed steps.
    Retry(Which),
    /// Approve a step that waits for approval.
    Approve(Approval),
    /// Reject a step that waits for approval. The step fails.
    Reject(Approval),
    Signal(SignalArgs),
    Graph(DrawRun),
    /// Store a workflow, so that it can be run by name. An unchanged workflow gets no new version.
    #[command(after_help = "Example:
  windlass workflow apply release.yml
  windlass workflow apply release.yml --name release --check    only check the file")]
    Apply(Apply),
    /// List stored workflows.
    Stored,
}

/// Run a workflow from a file, or a stored one by its name.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass workflow run build.yml --watch
  windlass workflow run build.yml --input version=1.2 --input 'targets=[\"a\", \"b\"]'
  windlass workflow run release --input '{\"version\": \"1.2\"}'
  windlass workflow run ci.yml -o json | jq -r .id         a file in another program's format; prints the run's id

Exit codes: 0 started (with --watch: completed), 1 error, with --watch: 3 failed, 4 cancelled.")]
pub struct RunArgs {
    /// A file, - for standard input, or the name of a stored workflow.
    #[arg(value_name = "FILE|NAME")]
    what: String,
    /// Show the steps live and wait until the run has ended.
    #[arg(short, long)]
    watch: bool,
    /// The run's input: a JSON object, or name=value (repeatable). The value is read as the workflow's `input_schema` says: a string
    /// as it is, anything else as JSON. If the schema does not say, it is JSON, or a string if it is not JSON.
    #[arg(short, long, value_name = "JSON|NAME=VALUE")]
    input: Vec<String>,
    /// The version of the stored workflow. Default: the latest.
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// Idempotency key: if the command is repeated with the same key, it returns the first run.
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
}

/// List runs, newest first.
#[derive(Args)]
pub struct List {
    /// Only runs of this workflow.
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only runs in this state: running, completed, failed, cancelled.
    #[arg(short, long, value_name = "STATE", value_parser = state)]
    state: Option<RunState>,
    /// Show at most this many.
    #[arg(short, long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

#[derive(Args)]
pub struct Which {
    /// The run's id, the beginning of it, or `last`.
    #[arg(value_name = "RUN")]
    id: String,
}

#[derive(Args)]
pub struct Several {
    /// Run ids, beginnings of ids, or `last`.
    #[arg(value_name = "RUN", required = true)]
    ids: Vec<String>,
}

#[derive(Args)]
#[command(after_help = "Example:
  windlass workflow approve last release --comment 'looks good' --payload '{\"tag\": \"1.2\"}'")]
pub struct Approval {
    /// The run's id, the beginning of it, or `last`.
    #[arg(value_name = "RUN")]
    id: String,
    /// The waiting step. Optional if only one step waits.
    step: Option<String>,
    #[arg(long, default_value = "")]
    comment: String,
    /// JSON that becomes part of the step's output.
    #[arg(short, long, value_name = "JSON")]
    payload: Option<String>,
}

/// Send an event to a run, for a step that waits for it.
#[derive(Args)]
#[command(after_help = "Example:
  windlass workflow signal last payment --payload '{\"amount\": 12}'")]
pub struct SignalArgs {
    /// The run's id, the beginning of it, or `last`.
    #[arg(value_name = "RUN")]
    id: String,
    /// The name of the event.
    name: String,
    /// JSON that becomes the output of the waiting step.
    #[arg(short, long, value_name = "JSON")]
    payload: Option<String>,
}

/// Draw the graph of a run with the state of each step.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass workflow graph last
  windlass workflow graph last --as svg > run.svg
  windlass workflow graph last --as dot | dot -Tpdf > run.pdf")]
pub struct DrawRun {
    /// The run's id, the beginning of it, or `last`.
    #[arg(value_name = "RUN")]
    id: String,
    #[arg(long = "as", value_enum, default_value_t = Drawing::Text)]
    drawing: Drawing,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    Text,
    Dot,
    Svg,
}

#[derive(Args)]
pub struct Apply {
    /// A file, or - for standard input.
    file: String,
    /// Store it under this name. Default: the name in the file.
    #[arg(long)]
    name: Option<String>,
    /// Only check the file; store nothing.
    #[arg(long)]
    check: bool,
}

fn state(text: &str) -> Result<RunState, String> {
    let all = [RunState::Running, RunState::Completed, RunState::Failed, RunState::Cancelled];
    all.into_iter()
        .find(|state| state.name() == text)
        .ok_or_else(|| format!("{text:?} is not a state of a run; it is running, completed, failed or cancelled"))
}

pub fn exit_code(state: RunState) -> u8 {
    match state {
        RunState::Completed => code::OK,
        RunState::Failed => code::FAILED,
        RunState::Cancelled => code::CANCELLED,
        RunState::Running => code::TIMEOUT,
    }
}

impl WorkflowCommand {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        match self {
            WorkflowCommand::Run(args) => args.run(context, &client).await,
            WorkflowCommand::List(list) => list.run(context, &client).await,
            WorkflowCommand::Show(which) => {
                let run = whole(&client, ids::run(&client, &which.id).await?).await?;
                context.format.one(&run, || show::run(&run, times::now())).map(|()| code::OK)
            }
            WorkflowCommand::Watch(which) => {
                let id = ids::run(&client, &which.id).await?;
                watch::until_done(&client, id, context.format).await
            }
            WorkflowCommand::Cancel(several) => several.cancel(context, &client).await,
            WorkflowCommand::Retry(which) => {
                let started = client.retry_run(ids::run(&client, &which.id).await?).await?;
                ids::remember_run(&client, started.id);
                context.format.one(&started, || told(&started)).map(|()| code::OK)
            }
            WorkflowCommand::Approve(answer) => answer.run(context, &client, true).await,
            WorkflowCommand::Reject(answer) => answer.run(context, &client, false).await,
            WorkflowCommand::Signal(signal) => signal.run(context, &client).await,
            WorkflowCommand::Graph(graph) => graph.run(context, &client).await,
            WorkflowCommand::Apply(apply) => apply.run(context, &client).await,
            WorkflowCommand::Stored => show::stored(context, &client).await,
        }
    }
}

/// With all of its steps.
async fn whole(client: &Client, id: Uuid) -> anyhow::Result<Run> {
    let mut run = client.run(id).await?;
    while let Some(cursor) = run.steps_next.take() {
        let paging = Paging { cursor: Some(cursor), ..Default::default() };
        let page = client.run_steps(id, &paging).await?;
        run.steps.extend(page.items);
        run.steps_next = page.next;
    }
    // As they were made, which is as they were written; lists have the newest first.
    run.steps.sort_by_key(|step| step.job);
    Ok(run)
}

fn told(started: &StartedRun) -> String {
    let note = if started.existing { " (started before with this key)" } else { "" };
    format!("{}  {}{note}", started.id, started.state.name())
}

impl RunArgs {
    async fn run(&self, context: &Context, client: &Client) -> Done {
        let file = file::read(&self.what)?;
        let schema = match &file {
            _ if !input::has_members(&self.input) => None,
            Some(definition) => definition.input_schema(),
            None => self.stored_schema(client).await,
        };
        let input = input::input(&self.input, schema.as_ref())?;
        let started = match file {
            Some(definition) => {
                ensure!(self.version.is_none(), "--version is for stored workflows; {} is a file", self.what);
                let (source, definition) = definition.parts();
                let run = InlineRun { source, definition, input, idempotency_key: self.key.clone() };
                client.start_run(&run).await?
            }
            None => {
                let start = StartRun { input, version: self.version, idempotency_key: self.key.clone() };
                client.start_workflow(&self.what, &start).await.with_context(|| {
                    format!("there is no file {}, and it could not be run as a stored workflow", self.what)
                })?
            }
        };
        ids::remember_run(client, started.id);
        if self.watch {
            return watch::until_done(client, started.id, context.format).await;
        }
        context.format.one(&started, || told(&started))?;
        Ok(code::OK)
    }

    /// None also where the workflow cannot be had: starting it says why.
    async fn stored_schema(&self, client: &Client) -> Option<serde_json::Value> {
        let stored = match self.version {
            Some(version) => client.workflow_version(&self.what, version).await,
            None => client.workflow(&self.what).await,
        };
        file::input_schema(stored.ok()?.source.as_deref()?)
    }
}

impl List {
    async fn run(&self, context: &Context, client: &Client) -> Done {
        let runs = super::some(self.limit, async |Paging { limit, cursor }| {
            let (workflow, state) = (self.workflow.clone(), self.state);
            client.runs(&ListRuns { workflow, state, limit, cursor, ..ListRuns::default() }).await
        });
        let runs = runs.await?;
        context.format.many(&runs, || show::list(&runs, times::now()))?;
        Ok(code::OK)
    }
}

/// What a cancel came to, in a line.
fn cancelled(run: &Run) -> String {
    match (run.state, run.open) {
        (RunState::Cancelled | RunState::Running, 0) => format!("{}  cancelled", run.id),
        (state, 0) => format!("{}  nothing to cancel: the run is already {}", run.id, state.name()),
        (_, 1) => format!("{}  cancelling: 1 step has not ended yet", run.id),
        (_, open) => format!("{}  cancelling: {open} steps have not ended yet", run.id),
    }
}

impl Several {
    async fn cancel(&self, context: &Context, client: &Client) -> Done {
        for id in &self.ids {
            let run = client.cancel_run(ids::run(client, id).await?).await?;
            context.format.one(&run, || cancelled(&run))?;
        }
        Ok(code::OK)
    }
}

impl Approval {
    async fn run(&self, context: &Context, client: &Client, yes: bool) -> Done {
        let id = ids::run(client, &self.id).await?;
        let step = match &self.step {
            Some(step) => step.clone(),
            None => only_waiting(&whole(client, id).await?)?,
        };
        let decide = Decide { comment: self.comment.clone(), payload: json(self.payload.as_deref())? };
        let step = match yes {
            true => client.approve_step(id, &step, &decide).await?,
            false => client.reject_step(id, &step, &decide).await?,
        };
        let what = if yes { "approved" } else { "rejected" };
        context.format.one(&step, || format!("{} is {what}", step.name))?;
        Ok(code::OK)
    }
}

/// The one step that waits for approval.
fn only_waiting(run: &Run) -> anyhow::Result<String> {
    let waiting: Vec<&str> =
        run.steps.iter().filter(|step| show::waits_for_approval(step)).map(|step| &*step.name).collect();
    match waiting[..] {
        [one] => Ok(one.to_owned()),
        [] => bail!("no step of this run waits for approval; `windlass workflow show {}` says how far it is", run.id),
        _ => bail!("several steps wait for approval, say which: {}", waiting.join(", ")),
    }
}

impl SignalArgs {
    async fn run(&self, context: &Context, client: &Client) -> Done {
        let id = ids::run(client, &self.id).await?;
        let signal = Signal { name: self.name.clone(), payload: json(self.payload.as_deref())? };
        let done = client.signal_run(id, &signal).await?;
        context.format.one(&done, || match done.steps {
            0 if done.kept => format!("no step waits for {:?} yet; the first that does will have it", self.name),
            0 => format!("no step waits for {:?}", self.name),
            1 => "one step goes on".into(),
            steps => format!("{steps} steps go on"),
        })?;
        Ok(code::OK)
    }
}

fn json(text: Option<&str>) -> anyhow::Result<Option<Box<RawValue>>> {
    let Some(text) = text else { return Ok(None) };
    let json = RawValue::from_string(text.to_owned());
    json.map(Some).with_context(|| format!("the payload {text:?} is not valid JSON; quote texts: '\"text\"'"))
}

impl DrawRun {
    async fn run(&self, context: &Context, client: &Client) -> Done {
        let run = whole(client, ids::run(client, &self.id).await?).await?;
        let layout = layout::Layout::of(&run);
        if !context.format.is_table() && self.drawing == Drawing::Text {
            return context.format.one(&layout, String::new).map(|()| code::OK);
        }
        say(match self.drawing {
            Drawing::Text => draw::text(&layout),
            Drawing::Dot => draw::dot(&layout),
            Drawing::Svg => draw::svg(&layout),
        })?;
        Ok(code::OK)
    }
}

impl Apply {
    async fn run(&self, context: &Context, client: &Client) -> Done {
        let Some(definition) = file::read(&self.file)? else { bail!("there is no file {}", self.file) };
        let source = definition.source();
        let stored = match &self.name {
            Some(name) => client.put_workflow(name, &source, self.check).await?,
            None => client.create_workflow(&source, self.check).await?,
        };
        context.format.one(&stored, || match self.check {
            true => format!("{}: valid, {}", stored.name, count_of(stored.steps as usize, "step")),
            false => format!("{}@{}: {}", stored.name, stored.version, count_of(stored.steps as usize, "step")),
        })?;
        Ok(code::OK)
    }
}

/// Between two looks at a run that is watched.
const LOOK: Duration = Duration::from_millis(500);
