//! A runner for Silo's protocol: heartbeats, claims, runs the command a job names, reports.
//!
//! `config` is what an operator says, `calls` what is said to the server, `job` one job from claim to report, `lines` what its
//! command prints, `report` who passes that on, `files` what it reads and leaves, `stop` why it may have to end early.

pub mod calls;
pub mod config;
pub mod files;
mod job;
pub mod lines;
pub mod report;
pub mod stop;

use crate::{Exit, Guard, args, connect::Endpoint, place, terminal};
use calls::{Backoff, Call, Claimed, Server, Trouble};
use clap::Parser;
use config::Config;
use serde_json::json;
use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::Arc,
    time::Duration,
};
use stop::Orders;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;

/// Runs compute jobs of Silo's protocol as child processes.
#[derive(Parser)]
#[command(name = "silorunner", version, max_term_width = 100)]
pub struct Cli {
    /// The runner's configuration (YAML). Variables SILO_RUNNER_* come before it, and it is not needed where they say enough.
    #[arg(long, value_name = "FILE", default_value = config::FILE)]
    config: PathBuf,
    /// Trust this certificate authority as well (PEM).
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// Seconds between asking a job's processes to end (TERM) and ending them (KILL).
    #[arg(long, default_value = "10", value_parser = args::seconds, value_name = "SECONDS")]
    grace: Duration,
    #[arg(long, value_enum, default_value_t = args::LogFormat::Text)]
    pub log_format: args::LogFormat,
    /// For the runner's own use.
    #[arg(long, hide = true)]
    pub guard: bool,
}

impl Cli {
    /// What `windlass-worker --dialect silo` was told.
    pub fn of(args: &args::Args, endpoint: Endpoint) -> Self {
        Self {
            config: args.config.clone().unwrap_or_else(|| config::FILE.into()),
            ca_cert: endpoint.ca_cert,
            grace: args.grace,
            log_format: args.log_format,
            guard: args.guard,
        }
    }
}

/// How a runner ends, as a status.
#[derive(Debug)]
enum End {
    Asked,
    AtOnce,
    /// Settings that cannot be worked with; the text names the key.
    Settings(String),
    Denied(String),
    Broken(String),
}

/// Works until told to stop.
pub fn run(cli: &Cli, guard: Option<Command>) -> ExitCode {
    let end = match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let end = runtime.block_on(until_end(cli, guard));
            // A call that hangs must not keep the program.
            runtime.shutdown_timeout(Duration::from_millis(100));
            end
        }
        Err(error) => End::Broken(format!("no threads to work with: {error}")),
    };
    let (text, code) = match end {
        End::Asked => return ExitCode::SUCCESS,
        End::AtOnce => return ExitCode::from(Exit::HARD_STOPPED),
        End::Settings(why) => (why, Exit::USAGE),
        End::Denied(why) => {
            (format!("the server does not take this runner's token: {why}; register the runner again"), Exit::DENIED)
        }
        End::Broken(why) => (why, Exit::ERROR),
    };
    eprintln!("{}", terminal::lines(&format!("silorunner: {text}")));
    ExitCode::from(code)
}

async fn until_end(cli: &Cli, guard: Option<Command>) -> End {
    let runner = match Runner::new(cli) {
        Ok(runner) => runner,
        Err(end) => return end,
    };
    let guard = guard.and_then(|command| {
        let guard = Guard::start(command);
        guard.inspect_err(|error| tracing::warn!(%error, "the guard process could not be started; if this runner is killed, its jobs keep running")).ok()
    });
    let runner = Arc::new(Runner { guard, ..runner });
    if let Err(why) = listen(runner.orders.clone()) {
        return End::Broken(why);
    }
    tokio::select! {
        biased;
        () = runner.orders.at_once.cancelled() => End::AtOnce,
        end = runner.work() => end,
    }
}

/// Tags that are configured and not registered.
pub fn missing_tags<'a>(wanted: &'a [String], known: &[serde_json::Value]) -> Vec<&'a str> {
    let is_known = |tag: &str| known.iter().any(|known| known.as_str() == Some(tag));
    wanted.iter().map(String::as_str).filter(|tag| !is_known(tag)).collect()
}

/// The first signal ends what runs and reports it, the second ends at once.
fn listen(orders: Orders) -> Result<(), String> {
    let heard = |kind| signal(kind).map_err(|error| format!("signals cannot be heard: {error}"));
    let (mut terminate, mut interrupt) = (heard(SignalKind::terminate())?, heard(SignalKind::interrupt())?);
    tokio::spawn(async move {
        for (token, what) in [
            (orders.shutdown, "ending what runs, and reporting it; once more to stop at once"),
            (orders.at_once, "stopping at once"),
        ] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("{what}");
            token.cancel();
        }
    });
    Ok(())
}

/// What all jobs of a runner have in common.
struct Runner {
    config: Config,
    server: Server,
    /// Absolute, and the user's own.
    work_dir: PathBuf,
    grace: Duration,
    env: Vec<(OsString, OsString)>,
    guard: Option<Guard>,
    orders: Orders,
}

impl Runner {
    fn new(cli: &Cli) -> Result<Self, End> {
        let config = Config::read(&cli.config, |name| std::env::var(name).ok()).map_err(End::Settings)?;
        let mut builder = Client::builder(&config.server_url).token(&config.token);
        if let Some(file) = &cli.ca_cert {
            let pem = std::fs::read(file);
            builder = builder.root_certificate(
                pem.map_err(|error| End::Settings(format!("--ca-cert: {}: {error}", file.display())))?,
            );
        }
        let client = builder.build().map_err(|error| End::Settings(format!("server_url: {error}")))?;
        let env = environment(&config.token, std::env::vars_os());
        let work_dir = place::prepare(config.work_dir.as_deref(), "silorunner")
            .map_err(|error| End::Settings(format!("work_dir: {error:#}")))?;
        let (server, orders) = (Server::new(client), Orders::default());
        Ok(Self { config, server, work_dir, grace: cli.grace, env, guard: None, orders })
    }

    async fn work(self: &Arc<Self>) -> End {
        let sign = Call::post("/api/runner/heartbeat", json!({}));
        match self.server.insist(&sign, &self.orders.shutdown).await {
            Ok(answer) => self.greet(&answer),
            Err(Trouble::Denied(why)) => return End::Denied(why),
            Err(Trouble::Later(_)) if self.orders.shutdown.is_cancelled() => return End::Asked,
            Err(trouble) => return End::Broken(trouble.text().to_owned()),
        }
        let (quiet, runner) = (CancellationToken::new(), self.clone());
        let (stop, beat) = (quiet.clone(), sign);
        let signs = tokio::spawn(async move { runner.beat(&beat, &stop).await });
        let end = self.claim_and_run().await;
        quiet.cancel();
        drop(signs.await);
        end
    }

    fn greet(&self, answer: &serde_json::Value) {
        let (name, known) = (&self.config.name, answer["name"].as_str().unwrap_or_default());
        let tags = self.config.tags.as_deref().map_or_else(|| "all".into(), |tags| tags.join(","));
        tracing::info!(server = self.server.client.base(), name, tags, "connected");
        if known != name {
            tracing::warn!(configured = name, registered = known, "the server knows this token by another name");
        }
        self.check_tags(answer);
    }

    /// Jobs for tags that only this configuration names would wait without a word.
    fn check_tags(&self, answer: &serde_json::Value) {
        let (Some(wanted), Some(known)) = (&self.config.tags, answer["tags"].as_array()) else { return };
        let missing = missing_tags(wanted, known);
        if !missing.is_empty() {
            let registered = known.iter().filter_map(serde_json::Value::as_str).collect::<Vec<_>>().join(",");
            tracing::warn!(
                missing = missing.join(","),
                registered,
                "the configuration names tags this runner is not registered for: it gets no jobs that need them; register the runner again with these tags, or remove them from `tags`"
            );
        }
    }

    /// Signs of life, also while a job runs.
    async fn beat(&self, sign: &Call, stop: &CancellationToken) {
        let mut backoff = Backoff::default();
        let mut wait = self.config.heartbeat_interval;
        loop {
            tokio::select! {
                () = sleep(wait) => {}
                () = stop.cancelled() => return,
            }
            wait = self.config.heartbeat_interval;
            match self.server.call(sign).await {
                Ok(_) => backoff = Backoff::default(),
                Err(Trouble::Denied(_)) => return self.orders.denied.cancel(),
                Err(trouble) => {
                    wait = backoff.wait().min(wait);
                    warn_of(&trouble, "heartbeat not acknowledged");
                }
            }
        }
    }

    async fn claim_and_run(self: &Arc<Self>) -> End {
        let mut backoff = Backoff::default();
        let mut request = request_id();
        while !self.orders.shutdown.is_cancelled() && !self.orders.denied.is_cancelled() {
            // Never given up on its way, and asked again under the same name: a job whose claim nobody heard would wait for
            // its timeout.
            let answer = self.server.claim(self.config.tags.as_deref(), &request).await;
            if answer.is_ok() {
                (backoff, request) = (Backoff::default(), request_id());
            }
            let wait = match answer {
                Ok(Some(claimed)) => {
                    job::run(self, claimed).await;
                    continue;
                }
                Ok(None) => self.config.poll_interval,
                Err(Trouble::Denied(why)) => return End::Denied(why),
                Err(trouble) => {
                    warn_of(&trouble, "claim failed, retrying");
                    backoff.wait()
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.orders.shutdown.cancelled() => {}
                () = self.orders.denied.cancelled() => {}
            }
        }
        match self.orders.denied.is_cancelled() {
            true => End::Denied("it was refused while working".into()),
            false => End::Asked,
        }
    }
}

/// Of a server that is away [`Server`] tells, once.
fn warn_of(trouble: &Trouble, what: &str) {
    if !matches!(trouble, Trouble::Later(_)) {
        tracing::warn!(why = trouble.text(), "{what}");
    }
}

/// CAD programs want displays, libraries and licences, so they get all but what is the runner's own. Which programs run is
/// the operator's choice, not a job's.
fn environment(token: &str, own: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let is_own = |name: &OsString, value: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("SILO_RUNNER_") || name.starts_with("WINDLASS_") || value.to_string_lossy().contains(token)
    };
    own.filter(|(name, value)| !is_own(name, value)).collect()
}

fn request_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
