//! One job: from its claim to its report.

use super::{
    Claimed, Runner,
    calls::{Call, Trouble},
    files::{self, Input, Output},
    lines::{Lines, Said, Stream},
    report::report,
    stop::{Stop, Why},
};
use crate::{
    folder::{Folder, read_written},
    process::{self, Broken, Start},
};
use serde_json::{Value, json};
use std::{
    io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};
use tokio::{process::Command, sync::mpsc, time::Instant};

/// Lines that may wait for the server; behind them waits the command.
const WAITING_MAX: usize = 1_000;
const ERROR_BYTES_MAX: usize = 60 << 10;
pub const SHUTTING_DOWN: &str = "runner shutting down";

/// What to tell the server at the end.
enum Outcome {
    Completed(Value),
    Failed(String),
}

type Ended = Result<Value, Trouble>;

pub async fn run(runner: &Arc<Runner>, claimed: Claimed) {
    let job = &claimed.job;
    // `expires_at` is so long after the claim; counted from here, because clocks of hosts do not agree.
    let stop = Stop::new(&runner.orders, Instant::now() + Duration::from_secs(job.timeout_seconds));
    tracing::info!(job = job.id, command = job.compute_command, part = job.part_number, "started");
    let outcome = attempt(runner, &claimed, &stop).await;
    let outcome = match stop.why() {
        Some(Why::ShuttingDown) => Outcome::Failed(SHUTTING_DOWN.into()),
        // Somebody else decided how it ended.
        Some(why) => return tracing::info!(job = job.id, ?why, "ended, with nothing to report"),
        None => outcome,
    };
    match deliver(runner, &claimed, outcome).await {
        Ok(job) => tracing::info!(job = claimed.job.id, status = job["status"].as_str(), "reported"),
        Err(Trouble::Denied(_)) => runner.orders.denied.cancel(),
        Err(trouble) => tracing::warn!(job = claimed.job.id, why = trouble.text(), "result rejected"),
    }
}

async fn deliver(runner: &Runner, claimed: &Claimed, outcome: Outcome) -> Ended {
    let job = &claimed.job;
    let fail = |text: &str| {
        let text = &text[..text.floor_char_boundary(ERROR_BYTES_MAX)];
        Call::post(job.path("fail"), json!({ "error_message": text }))
    };
    let give_up = &runner.orders.at_once;
    match outcome {
        Outcome::Failed(text) => runner.server.insist(&fail(&text), give_up).await,
        Outcome::Completed(result) => {
            let complete = Call::post(job.path("complete"), json!({ "result": result }));
            match runner.server.insist(&complete, give_up).await {
                // Too large, most likely. Nobody should have to wait for a timeout to hear it.
                Err(Trouble::Refused(400 | 413, why)) => {
                    runner.server.insist(&fail(&format!("the result was refused: {why}")), give_up).await
                }
                answer => answer,
            }
        }
    }
}

/// Runs its command. What comes out counts unless the job had to be stopped.
async fn attempt(runner: &Arc<Runner>, claimed: &Claimed, stop: &Stop) -> Outcome {
    let Some(argv) = runner.config.commands.get(&claimed.job.compute_command) else {
        return Outcome::Failed(format!("unknown command: {}", claimed.job.compute_command));
    };
    // With this the job is running, whether or not its command ever says something.
    let running = Call::put(claimed.job.path("progress"), json!({"progress": 0}));
    let answer = tokio::select! {
        answer = runner.server.insist(&running, stop.giving_up()) => answer,
        why = stop.needed() => return Outcome::Failed(format!("stopped: {why:?}")),
    };
    match answer {
        Err(trouble) if trouble.ends_the_job() || matches!(trouble, Trouble::Denied(_)) => {
            return Outcome::Failed(lost(stop, &trouble));
        }
        _ => {}
    }
    let (said, heard) = mpsc::channel(WAITING_MAX);
    let (server, every) = (runner.server.clone(), runner.config.heartbeat_interval);
    let reporter = tokio::spawn(report(server, claimed.job.clone(), heard, every, stop.clone()));
    let outcome = match work(runner, claimed, argv, &said, stop).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(error),
    };
    drop(said);
    // The log is whole before the job's end is.
    drop(reporter.await);
    outcome
}

async fn work(
    runner: &Arc<Runner>,
    claimed: &Claimed,
    argv: &[String],
    said: &mpsc::Sender<Said>,
    stop: &Stop,
) -> Result<Outcome, String> {
    let below = &runner.work_dir;
    let name = format!("job-{}", claimed.job.id);
    let unmade = |error: io::Error| format!("the working folder in {} cannot be made: {error}", below.display());
    let folder = Folder::create(below, &name, &claimed.whole.to_string(), Path::new("")).map_err(unmade)?;
    let outcome = in_folder(runner, claimed, argv, &folder, said, stop).await;
    // Large folders take their time.
    drop(tokio::task::spawn_blocking(move || drop(folder)).await);
    outcome
}

async fn in_folder(
    runner: &Arc<Runner>,
    claimed: &Claimed,
    argv: &[String],
    folder: &Folder,
    said: &mpsc::Sender<Said>,
    stop: &Stop,
) -> Result<Outcome, String> {
    let output = files::output(&claimed.job, &folder.path().join("output"))?;
    let Some(inputs) = fetch(runner, claimed, folder, stop).await? else { return Err("stopped".into()) };
    describe(claimed, folder, &inputs, output.as_ref()).map_err(|error| format!("the job file: {error}"))?;
    let ears = [Stream::Output, Stream::Errors].map(|stream| Lines::new(stream, said.clone()));
    let command = command(runner, claimed, argv, folder, output.as_ref());
    let mark = format!("silo-{}", claimed.job.id);
    let start = Start { command, stdin: Vec::new(), mark: &mark, guard: runner.guard.as_ref() };
    let stopped = async {
        stop.needed().await;
        runner.grace
    };
    let ended = process::run(start, ears.into(), stopped).await;
    let (status, ears) = ended.map_err(|broken| match broken {
        Broken::NotStarted(_) => format!("{} {broken}", argv[0]),
        Broken::Unseen(_) => broken.to_string(),
    })?;
    if let Some(why) = stop.why() {
        return Err(format!("stopped: {why:?}"));
    }
    if !status.success() {
        let complaint = ears.into_iter().find_map(|ear| ear.complaint);
        return Ok(Outcome::Failed(how(status, complaint)));
    }
    tokio::select! {
        outcome = finish(runner, claimed, folder, output.as_ref(), said, stop) => outcome,
        why = stop.void() => Err(format!("stopped: {why:?}")),
    }
}

/// None: the job has to end.
async fn fetch(runner: &Runner, claimed: &Claimed, folder: &Folder, stop: &Stop) -> Result<Option<Vec<Input>>, String> {
    let fetched = tokio::select! {
        fetched = files::fetch(&runner.server, &claimed.job, runner.config.fetch, folder, stop) => fetched,
        _ = stop.needed() => return Ok(None),
    };
    match fetched {
        Ok(inputs) => Ok(Some(inputs)),
        Err(Trouble::Refused(_, why)) => Err(format!("the revision's files cannot be had: {why}")),
        Err(trouble) => Err(lost(stop, &trouble)),
    }
}

/// All that the claim said, what lies in the folder, and where the output belongs.
fn describe(claimed: &Claimed, folder: &Folder, inputs: &[Input], output: Option<&Output>) -> io::Result<()> {
    let mut whole = claimed.whole.clone();
    whole["files"] = json!(inputs);
    if let Some(output) = output {
        std::fs::create_dir_all(output.file.parent().unwrap_or(folder.path()))?;
        whole["output"] = json!({"key": output.key, "file": output.file});
    }
    std::fs::write(folder.payload(), whole.to_string())
}

fn dag_file(folder: &Folder) -> PathBuf {
    folder.path().join("dag.json")
}

fn command(runner: &Runner, claimed: &Claimed, argv: &[String], folder: &Folder, output: Option<&Output>) -> Command {
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .current_dir(folder.files())
        .env_clear()
        .envs(runner.env.iter().map(|(name, value)| (name, value)))
        .env("SILO_JOB_ID", &claimed.job.id)
        .env("SILO_JOB_FILE", folder.payload())
        .env("SILO_RESULT_FILE", folder.result())
        .env("SILO_DAG_FILE", dag_file(folder))
        .env("SILO_SERVER_URL", runner.server.client.base());
    if let Some(output) = output {
        command.env("SILO_OUTPUT_KEY", &output.key).env("SILO_OUTPUT_FILE", &output.file);
    }
    command
}

fn how(status: ExitStatus, complaint: Option<String>) -> String {
    match (status.code(), status.signal(), complaint) {
        (Some(code), _, Some(complaint)) => format!("exit status {code}: {complaint}"),
        (Some(code), _, None) => format!("exit status {code}"),
        (None, Some(signal), _) => format!("killed by signal {signal}"),
        (None, None, _) => "ended in an unknown way".into(),
    }
}

/// After a command that went well: what it wrote.
async fn finish(
    runner: &Runner,
    claimed: &Claimed,
    folder: &Folder,
    output: Option<&Output>,
    said: &mpsc::Sender<Said>,
    stop: &Stop,
) -> Result<Outcome, String> {
    let mut result = read_json("result", &folder.result())?.unwrap_or_else(|| json!({}));
    if let Some(graph) = read_json("graph", &dag_file(folder))? {
        let put = Call::put(claimed.job.path("dag"), graph);
        taken("graph", runner.server.insist(&put, stop.giving_up()).await, stop)?;
    }
    if let Some(output) = output {
        let left = files::leave(&runner.server, &claimed.job, output, stop).await;
        match taken("output", left, stop)? {
            Some(about) => {
                // A result that is no object has no room for it.
                if !result.is_object() {
                    result = json!({ "result": result });
                }
                result["artifacts"] = json!([about]);
            }
            None => {
                let text = format!("the command left nothing at SILO_OUTPUT_FILE for {}", output.key);
                drop(said.send(Said::Log("warn", text)).await);
            }
        }
    }
    Ok(Outcome::Completed(result))
}

fn taken<T>(what: &str, answer: Result<T, Trouble>, stop: &Stop) -> Result<T, String> {
    match answer {
        Ok(taken) => Ok(taken),
        Err(Trouble::Refused(_, why)) => Err(format!("the {what} was refused: {why}")),
        Err(trouble) => Err(lost(stop, &trouble)),
    }
}

/// A job that is gone: the reason is noted, and the text that comes out is never sent.
fn lost(stop: &Stop, trouble: &Trouble) -> String {
    let why = if matches!(trouble, Trouble::Denied(_)) { Why::Denied } else { Why::Lost };
    stop.because(why, trouble.text());
    trouble.text().to_owned()
}

fn read_json(what: &str, file: &Path) -> Result<Option<Value>, String> {
    let text = read_written(file).map_err(|error| format!("the {what} file cannot be read: {error}"))?;
    let Some(text) = text else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| format!("the {what} file is not valid JSON: {error}"))
}
