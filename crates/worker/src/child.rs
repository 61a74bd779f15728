//! Runs one attempt: what its command is, where it runs, what it is told, and what came of it.

use crate::{
    args::Dialect,
    artifacts,
    folder::Folder,
    graph,
    guard::Guard,
    output::{Output, Piece},
    plan::{self, NoPlan, Plan, Rules},
    process::{self, Broken, OutputSink, Start},
};
use nix::sys::signal::Signal;
use std::{
    ffi::OsString, io, os::unix::process::ExitStatusExt, path::PathBuf, process::ExitStatus, sync::Arc, time::Duration,
};
use tokio::process::Command;
use windlass_sdk::{
    api::RawValue,
    worker::{Failure, JobContext, Outcome, StopReason},
};

/// A command that exits with this says that trying again would not help.
pub const PERMANENT: i32 = 100;

/// What all attempts of a worker have in common.
pub struct Setup {
    pub rules: Rules,
    pub work_dir: PathBuf,
    pub keep_failed: bool,
    pub grace: Duration,
    /// Of the worker's own environment, for jobs.
    pub env: Vec<(OsString, OsString)>,
    pub guard: Option<Guard>,
}

pub async fn run(setup: Arc<Setup>, job: JobContext) -> Outcome {
    let plan = match setup.rules.plan(job.leased()) {
        Ok(plan) => plan,
        Err(NoPlan::Wrong(failure)) => return Outcome::Fail(failure),
        Err(NoPlan::NotMine(why)) => return Outcome::PassOn { why, delay: plan::rest(job.attempt()) },
    };
    let name = format!("{}-{}", job.id(), job.attempt());
    let payload = job.payload().map_or("null", |json| json.get());
    let mut folder = match Folder::create(&setup.work_dir, &name, payload, &plan.cwd) {
        Ok(folder) => folder,
        Err(error) => {
            return fail(format!("the working folder in {} cannot be made: {error}", setup.work_dir.display()));
        }
    };
    let node = job.leased().node.as_deref();
    tracing::info!(job = %job.id(), node, attempt = job.attempt(), program = plan.argv[0], "started");
    let outcome = match attempt(&setup, &job, plan, &folder).await {
        Ok((status, output)) => outcome(&setup, &job, status, &output, &folder),
        Err(failure) => Outcome::Fail(failure),
    };
    let outcome = keep_artifacts(&setup, &job, &folder, outcome).await;
    let failed = matches!(outcome, Outcome::Fail(_));
    if failed && setup.keep_failed {
        folder.keep();
        let kept = format!("windlass-worker: the working folder is kept: {}\n", folder.path().display());
        job.log(&kept).await;
    }
    tracing::info!(job = %job.id(), attempt = job.attempt(), failed, "ended");
    // Large folders take their time.
    drop(tokio::task::spawn_blocking(move || drop(folder)).await);
    outcome
}

/// What the command left is the job's, also where it failed: files often say why. A job is not complete without them.
async fn keep_artifacts(setup: &Setup, job: &JobContext, folder: &Folder, outcome: Outcome) -> Outcome {
    // A command that could not even be started has no such folder.
    let none = setup.rules.dialect != Dialect::Native || !folder.artifacts().exists();
    if none || job.stop_reason().is_some() {
        return outcome;
    }
    match (artifacts::upload(job, folder).await, outcome) {
        (Err(why), Outcome::Complete(_)) => fail(why),
        (Err(why), outcome) => {
            job.log(&format!("windlass-worker: {why}\n")).await;
            outcome
        }
        (Ok(()), outcome) => outcome,
    }
}

fn fail(message: String) -> Outcome {
    Outcome::Fail(Failure::new(message))
}

async fn attempt(
    setup: &Setup,
    job: &JobContext,
    plan: Plan,
    folder: &Folder,
) -> Result<(ExitStatus, Output), Failure> {
    let program = plan.argv[0].clone();
    let broken = |broken: Broken| match broken {
        Broken::NotStarted(_) => Failure::new(format!("{program} {broken}")),
        Broken::Unseen(_) => Failure::new(broken.to_string()),
    };
    let command = command(setup, job, &plan, folder).map_err(|error| broken(Broken::NotStarted(error)))?;
    let start = Start { command, stdin: plan.stdin, mark: &job.leased().lease, guard: setup.guard.as_ref() };
    let output = match setup.rules.dialect {
        Dialect::WorkflowGraph => Output::with_outputs(),
        Dialect::Native | Dialect::Silo => Output::default(),
    };
    let sink = PrintedOutput { job: job.clone(), output };
    let (status, mut ears) = process::run(start, vec![sink], stop(setup, job)).await.map_err(broken)?;
    Ok((status, ears.pop().map(|sink| sink.output).unwrap_or_default()))
}

fn command(setup: &Setup, job: &JobContext, plan: &Plan, folder: &Folder) -> io::Result<Command> {
    let mut command = Command::new(&plan.argv[0]);
    command
        .args(&plan.argv[1..])
        .current_dir(folder.files().join(&plan.cwd))
        .env_clear()
        .envs(setup.env.iter().map(|(name, value)| (name, value)))
        .envs(&plan.env)
        .envs(about(job, folder));
    match setup.rules.dialect {
        Dialect::WorkflowGraph => drop(command.envs(graph::about(job.payload(), folder)?)),
        Dialect::Native => {
            std::fs::create_dir(folder.artifacts())?;
            command.env(artifacts::VARIABLE, folder.artifacts());
        }
        Dialect::Silo => {}
    }
    Ok(command)
}

/// What every command is told about its job.
fn about(job: &JobContext, folder: &Folder) -> Vec<(&'static str, OsString)> {
    let leased = job.leased();
    let mut about: Vec<(&'static str, OsString)> = vec![
        ("WINDLASS_JOB_ID", leased.job.to_string().into()),
        ("WINDLASS_ATTEMPT", leased.attempt.to_string().into()),
        ("WINDLASS_SERVER", job.client().base().into()),
        ("WINDLASS_NAMESPACE", job.client().namespace().into()),
        ("WINDLASS_PAYLOAD", folder.payload().into()),
        ("WINDLASS_RESULT", folder.result().into()),
    ];
    about.extend(leased.definition.iter().map(|name| ("WINDLASS_DEFINITION", name.into())));
    if let Some(trace) = &leased.traceparent {
        about.extend([("WINDLASS_TRACEPARENT", trace.into()), ("TRACEPARENT", trace.into())]);
    }
    about
}

/// Comes when the command has to end, with how long it may take.
async fn stop(setup: &Setup, job: &JobContext) -> Duration {
    let why = job.cancelled().await;
    tracing::info!(job = %job.id(), ?why, "stopping its processes");
    if why == StopReason::Stopped { Duration::ZERO } else { setup.grace }
}

/// Passes on what a command prints.
struct PrintedOutput {
    job: JobContext,
    output: Output,
}

impl OutputSink for PrintedOutput {
    async fn hear(&mut self, bytes: &[u8]) {
        for piece in self.output.feed(bytes) {
            say(&self.job, piece).await;
        }
    }

    async fn end(&mut self) {
        for piece in self.output.finish() {
            say(&self.job, piece).await;
        }
    }
}

async fn say(job: &JobContext, piece: Piece) {
    match piece {
        Piece::Text(text) => job.log(&text).await,
        Piece::Progress(percent, message) => job.progress(percent, message),
    }
}

fn outcome(setup: &Setup, job: &JobContext, status: ExitStatus, output: &Output, folder: &Folder) -> Outcome {
    if let Some(why) = job.stop_reason() {
        return match why {
            StopReason::Stopped => Outcome::Release,
            StopReason::Cancelled => fail("stopped: the job was cancelled".into()),
            StopReason::DeadlinePassed => fail("stopped: the job's time was up".into()),
            StopReason::LeaseLost => fail("stopped: the lease was lost".into()),
        };
    }
    if status.success() {
        let result = match setup.rules.dialect {
            Dialect::WorkflowGraph => graph::outputs(output, folder).map(Some),
            Dialect::Native | Dialect::Silo => result(output, folder),
        };
        return result.map_or_else(Outcome::Fail, Outcome::Complete);
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by {}", Signal::try_from(signal).map_or("a signal", Signal::as_str)),
        (None, None) => "ended in an unknown way".into(),
    };
    Outcome::Fail(Failure { message: output.failure(&how), permanent: status.code() == Some(PERMANENT) })
}

/// What it wrote into its result file, else the last line it printed if that is a JSON document, else nothing.
fn result(output: &Output, folder: &Folder) -> Result<Option<Box<RawValue>>, Failure> {
    let written =
        folder.read_result().map_err(|error| Failure::permanent(format!("the result file cannot be read: {error}")))?;
    if let Some(text) = written {
        let json = RawValue::from_string(text.trim().to_owned());
        return json
            .map(Some)
            .map_err(|error| Failure::permanent(format!("the result file is not valid JSON: {error}")));
    }
    Ok(output.last_document().and_then(|line| RawValue::from_string(line.to_owned()).ok()))
}
