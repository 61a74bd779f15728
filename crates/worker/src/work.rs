//! From arguments to a worker at work, and back to an exit code.

use crate::{
    args::{Args, Dialect, host},
    child::{self, Setup},
    connect::Endpoint,
    guard::Guard,
    place,
    plan::Rules,
};
use anyhow::{Context, Result};
use std::{
    ffi::{OsStr, OsString},
    process::Command,
    sync::Arc,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windlass_sdk::{
    Error,
    worker::{JobContext, Summary, Worker},
};

/// Variables that jobs get from the worker's environment without being asked for.
const PASSED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything it held was finished and reported.
    Drained,
    /// A second signal: what ran was killed and given back.
    HardStopped,
}

impl Exit {
    pub const ERROR: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const DENIED: u8 = 3;
    pub const HARD_STOPPED: u8 = 4;

    pub fn code(self) -> u8 {
        match self {
            Exit::Drained => 0,
            Exit::HardStopped => Self::HARD_STOPPED,
        }
    }

    pub fn of_error(error: &anyhow::Error) -> u8 {
        match error.downcast_ref::<Error>().and_then(Error::known) {
            Some(windlass_sdk::api::Code::Unauthorized | windlass_sdk::api::Code::Forbidden) => Self::DENIED,
            _ => Self::ERROR,
        }
    }
}

/// Works until a signal says otherwise: the first drains, the second stops at once.
pub async fn until_signal(args: &Args, endpoint: &Endpoint, guard: Option<Command>) -> Result<Exit> {
    let (shutdown, hard_stop) = (CancellationToken::new(), CancellationToken::new());
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be heard")?;
    let (drain, stop) = (shutdown.clone(), hard_stop.clone());
    tokio::spawn(async move {
        for (token, what) in [(drain, "finishing what runs; once more to stop at once"), (stop, "stopping at once")] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("{what}");
            token.cancel();
        }
    });
    let guard = guard.and_then(|command| {
        let guard = Guard::start(command);
        guard.inspect_err(|error| tracing::warn!(%error, "the guard process could not be started; if this worker is killed, its jobs keep running")).ok()
    });
    let summary = work(args, endpoint, guard, shutdown, hard_stop.clone()).await?;
    let Summary { completed, failed, released, lost, unreported } = summary;
    // What seldom happens is named only when it did.
    let some = |count: u64| (count > 0).then_some(count);
    let (released, lost, unreported) = (some(released), some(lost), some(unreported));
    tracing::info!(completed, failed, released, lost, unreported, "done");
    Ok(if hard_stop.is_cancelled() { Exit::HardStopped } else { Exit::Drained })
}

/// Works until `shutdown` and everything held is done, or until `hard_stop`. For programs that run a worker within.
pub async fn work(
    args: &Args,
    endpoint: &Endpoint,
    guard: Option<Guard>,
    shutdown: CancellationToken,
    hard_stop: CancellationToken,
) -> Result<Summary> {
    let (exec, allow_commands, dialect) = (args.program()?, args.allow_commands, args.dialect);
    let rules = Rules { config: args.config()?, exec, allow_commands, give_back: args.give_back, dialect };
    let client = endpoint.client()?;
    let work_dir = place::prepare(args.work_dir.as_deref(), "windlass-work")?;
    let env = environment(args, endpoint.token.as_deref(), std::env::vars_os());
    let setup = Arc::new(Setup { rules, work_dir, keep_failed: args.keep_failed, grace: args.grace, env, guard });
    let info = serde_json::json!({"host": host(), "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION")});
    let mut worker = Worker::builder(client)
        .name(args.worker_name())
        .tags(&args.tags)
        .slots(if args.once { 1 } else { args.slots })
        .jobs_max(args.once.then_some(1))
        .exit_when_idle(args.exit_when_idle)
        .abandon_unrenewed(args.abandon_unrenewed)
        .info(info)
        .hard_stop(hard_stop);
    if let Some(lease_ms) = args.lease_ms {
        worker = worker.lease_ms(lease_ms);
    }
    if dialect == Dialect::WorkflowGraph {
        worker = worker.workflow_graph();
    }
    Ok(worker.run(move |job: JobContext| child::run(setup.clone(), job), shutdown).await?)
}

/// Little, because whatever is in the worker's environment may be a secret; never the worker's own settings.
pub fn environment(
    args: &Args,
    token: Option<&str>,
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let all = args.pass_env.iter().any(|name| name == "*");
    let passes = |name: &OsStr| {
        let text = name.to_string_lossy();
        let asked = args.pass_env.iter().any(|wanted| **wanted == *text);
        let ours = text.starts_with("WINDLASS_");
        !ours && (all || asked || PASSED.contains(&&*text) || text.starts_with("LC_"))
    };
    let mut env: Vec<_> = own.filter(|(name, _)| passes(name)).collect();
    if args.pass_token {
        env.extend(token.map(|token| ("WINDLASS_TOKEN".into(), token.into())));
    }
    env
}
