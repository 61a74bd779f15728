//! What an operator says: flags, environment, configuration file.

use crate::connect::ConnectOptions;
use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Pulls jobs from a Windlass server and runs them as child processes.
#[derive(Parser)]
#[command(name = "windlass-worker", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub connect: ConnectOptions,
    #[command(flatten)]
    pub args: Args,
}

#[derive(clap::Args, Clone)]
pub struct Args {
    /// The worker's name, unique in the namespace. Default: host name and process id.
    #[arg(long, env = "WINDLASS_WORKER_NAME")]
    pub name: Option<String>,
    /// A tag this worker offers (repeatable).
    #[arg(long = "tag", env = "WINDLASS_TAGS", value_delimiter = ',', value_name = "TAG")]
    pub tags: Vec<String>,
    /// The protocol. With workflow-graph (Windlass or the original server) every job is a shell command: anybody who may create
    /// workflows there can run programs here, as this user. Tags are the labels. With silo, --config is a runner's configuration
    /// (YAML), and of the other flags only --ca-cert, --grace and --log-format apply.
    #[arg(long, value_enum, default_value_t = Dialect::Native)]
    pub dialect: Dialect,
    /// How many jobs to run at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slots: u32,
    /// Folder in which working folders are created. It must belong to the user who runs the worker and not be a link
    /// [default: ~/.cache/windlass/windlass-work].
    #[arg(long, env = "WINDLASS_WORK_DIR", value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,
    /// Keep the working folders of failed attempts.
    #[arg(long)]
    pub keep_failed: bool,
    /// Lease duration for jobs that set none. Default: the server's.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(100..))]
    pub lease_ms: Option<u64>,
    /// Seconds between TERM and KILL when a job's processes are stopped.
    #[arg(long, default_value = "10", value_parser = seconds, value_name = "SECONDS")]
    pub grace: Duration,
    /// Run one job, then exit.
    #[arg(long)]
    pub once: bool,
    /// Exit when there is nothing to do.
    #[arg(long)]
    pub exit_when_idle: bool,
    /// Run commands from job payloads. Anybody who may submit jobs can then run programs here, as this user.
    #[arg(long)]
    pub allow_commands: bool,
    /// Give back jobs that this worker has no command for, so that another worker can run them. No attempt is used. Without this
    /// option, such jobs fail.
    #[arg(long)]
    pub give_back: bool,
    /// Configuration file (TOML): which program runs the jobs of which definition.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Pass this variable of the worker's environment to jobs (repeatable). `*` passes all except WINDLASS_*.
    #[arg(long, value_name = "NAME")]
    pub pass_env: Vec<String>,
    /// Pass the worker's token to jobs as WINDLASS_TOKEN.
    #[arg(long)]
    pub pass_token: bool,
    /// Stop a job whose lease may have expired because the server was unreachable. Default: continue and let the server
    /// decide.
    #[arg(long)]
    pub abandon_unrenewed: bool,
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Run this command for every job, with the payload on standard input. Takes the rest of the line.
    #[arg(long, num_args = 1.., allow_hyphen_values = true, value_name = "CMD")]
    pub exec: Vec<String>,
    /// Kill the process groups named on standard input when it closes. For the worker's own use.
    #[arg(long, hide = true)]
    pub(crate) guard: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    #[default]
    Native,
    WorkflowGraph,
    Silo,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// The configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// By definition: `name`, or `name@3` for that version only.
    #[serde(default)]
    pub definitions: BTreeMap<String, Entry>,
}

/// What runs the jobs of one definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub command: Option<Vec<String>>,
    pub shell: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl Config {
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let config: Config =
            toml::from_str(&text).with_context(|| format!("{} is not a configuration", file.display()))?;
        for (name, entry) in &config.definitions {
            if entry.command.is_some() == entry.shell.is_some() {
                bail!("{}: {name} needs either a command or a shell text", file.display());
            }
        }
        Ok(config)
    }
}

impl Args {
    pub fn config(&self) -> Result<Config> {
        let config = self.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        let commands = self.allow_commands || self.dialect == Dialect::WorkflowGraph;
        if !commands && self.exec.is_empty() && config.definitions.is_empty() {
            bail!(
                "nothing to run jobs with: give --exec CMD, or a --config file, or --allow-commands to run what the jobs \
                 themselves say"
            );
        }
        Ok(config)
    }

    pub fn worker_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}-{}", host(), std::process::id()))
    }
}

/// To standard error, as the environment's WINDLASS_LOG says: `info`, `debug`, `windlass_sdk=trace`.
pub fn start_logging(format: LogFormat) {
    use tracing_subscriber::{EnvFilter, fmt};
    let filter = EnvFilter::try_from_env("WINDLASS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A closed standard error must not end the worker.
    let builder = builder.log_internal_errors(false);
    // Fails only where logging was started before, which is as good.
    drop(match format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => builder.json().try_init(),
    });
}

pub(crate) fn host() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "host".into())
}

impl Args {
    /// What `--exec` names. A path is meant from here, while each job runs in a folder of its own.
    pub fn program(&self) -> anyhow::Result<Vec<String>> {
        let mut exec = self.exec.clone();
        if let Some(program) = exec.first_mut().filter(|program| program.contains('/')) {
            let path = std::path::absolute(&*program)?;
            *program = path.to_str().context("--exec: the path of the program is not UTF-8")?.to_owned();
        }
        Ok(exec)
    }
}
