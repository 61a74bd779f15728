//! Runs one attempt: starts its command, passes on what it prints, ends it when it has to end, says what came of it.

use crate::{
    args::Dialect,
    folder::Folder,
    graph, group,
    guard::Guard,
    output::{Output, Piece},
    plan::{Plan, Rules},
};
use nix::{sys::signal::Signal, unistd::Pid};
use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    process::{Child, Command},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use windlass_sdk::{
    api::RawValue,
    worker::{Failure, JobContext, Outcome, StopReason},
};

/// A command that exits with this says that trying again would not help.
pub const PERMANENT: i32 = 100;
/// Whatever still holds the pipe after the command and its group are gone gets so long to say something.
const LAST_WORDS: Duration = Duration::from_millis(500);
const READ_BYTES: usize = 64 << 10;
/// No pipe holds more.
const PIPE_BYTES_MAX: usize = 1 << 20;

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
        Err(failure) => return Outcome::Fail(failure),
    };
    let mut folder = match Folder::create(&setup.work_dir, job.leased(), &plan.cwd) {
        Ok(folder) => folder,
        Err(error) => {
            return fail(format!("the working folder in {} cannot be made: {error}", setup.work_dir.display()));
        }
    };
    let node = job.leased().node.as_deref().unwrap_or_default();
    tracing::info!(job = %job.id(), node, attempt = job.attempt(), program = plan.argv[0], "started");
    let outcome = match attempt(&setup, &job, plan, &folder).await {
        Ok((status, output)) => outcome(&setup, &job, status, &output, &folder),
        Err(failure) => Outcome::Fail(failure),
    };
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

fn fail(message: String) -> Outcome {
    Outcome::Fail(Failure::new(message))
}

async fn attempt(
    setup: &Setup,
    job: &JobContext,
    plan: Plan,
    folder: &Folder,
) -> Result<(ExitStatus, Output), Failure> {
    let (mut child, reader) = start(setup, job, &plan, folder)
        .map_err(|error| Failure::new(format!("{} cannot be started: {error}", plan.argv[0])))?;
    let group = Pid::from_raw(child.id().and_then(|id| i32::try_from(id).ok()).expect("it was not waited for yet"));
    let lease = &job.leased().lease;
    if let Some(guard) = &setup.guard {
        guard.begins(group, lease);
    }
    feed(&mut child, plan.stdin);
    let over = CancellationToken::new();
    let output = match setup.rules.dialect {
        Dialect::Native => Output::default(),
        Dialect::WorkflowGraph => Output::with_outputs(),
    };
    let mut printed = tokio::spawn(pass_on(job.clone(), reader, over.clone(), output));
    let status = follow(setup, job, &mut child, group).await;
    let lease = lease.clone();
    drop(tokio::task::spawn_blocking(move || group::kill_rest(group, &lease)).await);
    let output = match timeout(LAST_WORDS, &mut printed).await {
        Ok(output) => output,
        Err(_) => {
            over.cancel();
            printed.await
        }
    };
    if let Some(guard) = &setup.guard {
        guard.ended(group);
    }
    let unseen = |error: &dyn std::fmt::Display| Failure::new(format!("the command's end cannot be seen: {error}"));
    Ok((status.map_err(|error| unseen(&error))?, output.map_err(|error| unseen(&error))?))
}

fn start(setup: &Setup, job: &JobContext, plan: &Plan, folder: &Folder) -> io::Result<(Child, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(&plan.argv[0]);
    command
        .args(&plan.argv[1..])
        .current_dir(folder.files().join(&plan.cwd))
        .stdin(Stdio::piped())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .kill_on_drop(true)
        .env_clear()
        .envs(setup.env.iter().map(|(name, value)| (name, value)))
        .envs(&plan.env)
        .envs(about(job, folder));
    if setup.rules.dialect == Dialect::WorkflowGraph {
        command.envs(graph::about(job.payload(), folder)?);
    }
    let child = command.spawn()?;
    // The command holds the other ends of the pipe; they must close with it.
    drop(command);
    Ok((child, pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?))
}

/// What every command is told about its job.
fn about(job: &JobContext, folder: &Folder) -> Vec<(&'static str, OsString)> {
    let leased = job.leased();
    let mut about: Vec<(&'static str, OsString)> = vec![
        ("WINDLASS_JOB_ID", leased.job.to_string().into()),
        ("WINDLASS_ATTEMPT", leased.attempt.to_string().into()),
        ("WINDLASS_LEASE", leased.lease.clone().into()),
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

/// A command that does not read its input is none of our business.
fn feed(child: &mut Child, input: Vec<u8>) {
    if let Some(mut stdin) = child.stdin.take() {
        tokio::spawn(async move { drop(stdin.write_all(&input).await) });
    }
}

/// Waits until the command has ended, and sees to it that it does.
async fn follow(setup: &Setup, job: &JobContext, child: &mut Child, group: Pid) -> io::Result<ExitStatus> {
    let why = tokio::select! {
        status = child.wait() => return status,
        why = job.cancelled() => why,
    };
    tracing::info!(job = %job.id(), ?why, "ending its processes");
    let grace = if why == StopReason::Stopped { Duration::ZERO } else { setup.grace };
    group::signal(group, Signal::SIGTERM);
    if let Ok(status) = timeout(grace, child.wait()).await {
        return status;
    }
    group::signal(group, Signal::SIGKILL);
    child.wait().await
}

/// Reads until nobody can write any more. A task of its own: what was read is also said, however long the server takes.
async fn pass_on(job: JobContext, mut reader: pipe::Receiver, over: CancellationToken, mut output: Output) -> Output {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = tokio::select! {
            biased;
            read = reader.read(&mut buffer) => read.unwrap_or(0),
            () = over.cancelled() => break,
        };
        if count == 0 {
            break;
        }
        for piece in output.feed(&buffer[..count]) {
            say(&job, piece).await;
        }
        if over.is_cancelled() {
            // Somebody who got away still writes; what the command itself left in the pipe is read, and no more.
            for _ in 0..PIPE_BYTES_MAX / READ_BYTES {
                let Ok(count @ 1..) = reader.try_read(&mut buffer) else { break };
                for piece in output.feed(&buffer[..count]) {
                    say(&job, piece).await;
                }
            }
            break;
        }
    }
    for piece in output.finish() {
        say(&job, piece).await;
    }
    output
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
            Dialect::Native => result(output, folder),
            Dialect::WorkflowGraph => graph::outputs(output, folder).map(Some),
        };
        return result.map_or_else(Outcome::Fail, Outcome::Complete);
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by {}", Signal::try_from(signal).map_or("a signal", Signal::as_str)),
        (None, None) => "ended in an unknown way".into(),
    };
    let tail = output.tail();
    let message = if tail.is_empty() { how } else { format!("{how}\n{tail}") };
    Outcome::Fail(Failure { message, permanent: status.code() == Some(PERMANENT) })
}

/// What it wrote into its result file, else the last line it printed if that is a JSON document, else nothing.
fn result(output: &Output, folder: &Folder) -> Result<Option<Box<RawValue>>, Failure> {
    let written =
        folder.read_result().map_err(|error| Failure::permanent(format!("the result file cannot be read: {error}")))?;
    if let Some(text) = written {
        let json = RawValue::from_string(text.trim().to_owned());
        return json.map(Some).map_err(|error| Failure::permanent(format!("the result file is no JSON: {error}")));
    }
    Ok(output.last_document().and_then(|line| RawValue::from_string(line.to_owned()).ok()))
}
