//! The command line as a whole: which commands there are, and what they share.

use crate::{
    bench,
    commands::{
        Context, Done, about, artifacts::ArtifactCommand, audit::Audit, definitions::DefinitionsCommand,
        events::Events, graph::GraphCommand, history::History, item::ItemCommand, jobs::Jobs, logs::Logs, overview,
        principals::PrincipalCommand, schedules::SchedulesCommand, shell, show, stats, submit::Submit,
        tokens::TokenCommand, workers::WorkersCommand, workflow::WorkflowCommand,
    },
    config_show,
    dialects::Nouns,
    fail::code,
    output::Format,
    profile::ProfileCommand,
    remote::Remote,
    serve,
    store::StoreCommand,
    top, up, worker,
};
use clap::{CommandFactory, Parser, Subcommand};
use std::{future::Future, path::PathBuf, process::ExitCode};

/// A durable job server. Workers in any language pull jobs over HTTP.
#[derive(Parser)]
#[command(
    name = "windlass",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Examples:
  windlass up                                       start a server and a worker on this machine
  windlass submit --shell 'echo hello' --follow     run a command and show its log
  windlass jobs                                     list jobs
  windlass why last                                 why the last job is not running
  windlass COMMAND --help                           more about a command, with examples

Exit codes: 0 done, 1 error, 2 wrong usage; waiting for a job: 3 failed or skipped, 4 cancelled, 5 not done in time."
)]
pub struct Cli {
    /// Output format: table for people; json or jsonl, with the API's types, for programs [default: table].
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        env = "WINDLASS_OUTPUT",
        hide_env_values = true,
        hide_possible_values = true
    )]
    pub output: Option<Format>,
    #[command(flatten)]
    pub remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Up(up::Up),
    /// Run the server.
    ///
    /// Exit codes: 0 stopped on request, 2 the configuration is wrong, 3 the store cannot be opened, 4 the store failed while
    /// running, 1 any other error.
    Serve(Box<serve::Serve>),
    Worker(Box<worker::Worker>),
    /// Show the server's configuration.
    Config {
        #[command(subcommand)]
        what: config_show::ConfigCommand,
    },
    /// Submit a job, or many from a file.
    Submit(Box<Submit>),
    /// List jobs, newest first.
    Jobs(Jobs),
    /// One job: show, wait, cancel, retry, why, result, payload, logs.
    #[command(subcommand)]
    Job(show::JobCommand),
    Logs(Logs),
    /// Cancel jobs; short for `job cancel`.
    Cancel(show::Cancel),
    /// Run finished jobs again, as new jobs; short for `job retry`.
    Retry(show::RetryArgs),
    /// Why is a job not running? Short for `job why`.
    Why(show::One),
    /// Workers: list, show, drain, undrain, delete.
    Workers {
        #[command(subcommand)]
        verb: Option<WorkersCommand>,
    },
    /// Definitions: list, show, apply, delete, versions, check.
    #[command(alias = "definition")]
    Definitions {
        #[command(subcommand)]
        verb: Option<DefinitionsCommand>,
    },
    /// Schedules: list, show, set, run, delete, pause, resume.
    #[command(alias = "schedule")]
    Schedules {
        #[command(subcommand)]
        verb: Option<SchedulesCommand>,
    },
    /// Workflows: run, list, show, watch, cancel, retry, approve, reject, signal, graph, apply, stored.
    #[command(subcommand, alias = "workflows")]
    Workflow(WorkflowCommand),
    Events(Events),
    /// Items: list, show, create, revise, bom, where-used.
    #[command(subcommand, alias = "items")]
    Item(ItemCommand),
    /// Feature graphs of items: show, cone, dirty.
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Artifacts, the files of jobs: put, get, list, delete.
    #[command(subcommand, alias = "artifacts")]
    Artifact(ArtifactCommand),
    /// Tokens: create, list, revoke, me.
    #[command(subcommand, alias = "tokens")]
    Token(TokenCommand),
    /// Principals, the owners of tokens: list, change, disable, enable, delete.
    #[command(subcommand, alias = "principals")]
    Principal(PrincipalCommand),
    Audit(Audit),
    /// Count jobs and workers by state.
    Stats(stats::Stats),
    /// What needs attention: what waits longest and why, what fails, which workers are lost.
    Overview,
    History(History),
    /// List the namespaces you may see.
    Namespaces,
    /// The protocols the server serves, and who called last in each.
    Dialects,
    /// The settings in effect on the server and where each comes from. For admins.
    Settings,
    Top(top::Top),
    #[command(flatten)]
    Store(StoreCommand),
    #[command(flatten)]
    Dialect(Nouns),
    /// Saved connections: list, set, use, delete.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Measure how fast this machine runs jobs, compared with the limit of the store.
    Bench {
        #[command(subcommand)]
        what: bench::Bench,
    },
    /// Print a completion script for your shell.
    ///
    /// It completes commands and options, states, and the ids and names that the server knows: of jobs, runs, workers, definitions, schedules and
    /// namespaces. If the server does not answer within a second, these are left out.
    #[command(after_help = "Examples:
  windlass completions bash > /etc/bash_completion.d/windlass
  windlass completions zsh > ~/.zfunc/_windlass
  windlass completions fish > ~/.config/fish/completions/windlass.fish")]
    Completions {
        shell: clap_complete::Shell,
    },
    /// Write manual pages into a folder.
    Man {
        folder: PathBuf,
    },
}

impl Cli {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let context = Context { remote: self.remote, format: self.output.unwrap_or_default() };
        let done = match self.command {
            Command::Serve(serve) => return Ok(serve.run()),
            Command::Worker(worker) => return Ok(worker.run(&context.remote)),
            Command::Config { what } => return Ok(what.run(context.format)),
            Command::Bench { what } => what.run().map(|()| code::OK),
            Command::Completions { shell } => shell::completions(shell),
            Command::Man { folder } => shell::man(Cli::command(), &folder),
            Command::Profile(command) => command.run(&context.remote, context.format).map(|()| code::OK),
            Command::Up(up) => on_runtime(up.run()),
            Command::Submit(submit) => on_runtime(submit.run(&context)),
            Command::Jobs(jobs) => on_runtime(jobs.run(&context)),
            Command::Job(command) => on_runtime(command.run(&context)),
            Command::Logs(logs) => on_runtime(logs.run(&context)),
            Command::Cancel(wanted) => on_runtime(show::cancel(&context, &wanted)),
            Command::Retry(wanted) => on_runtime(show::retry(&context, &wanted)),
            Command::Why(one) => on_runtime(show::why(&context, &one)),
            Command::Workers { verb } => on_runtime(verb.unwrap_or(WorkersCommand::List).run(&context)),
            Command::Definitions { verb } => on_runtime(verb.unwrap_or(DefinitionsCommand::List).run(&context)),
            Command::Schedules { verb } => on_runtime(verb.unwrap_or(SchedulesCommand::List).run(&context)),
            Command::Workflow(command) => on_runtime(command.run(&context)),
            Command::Events(events) => on_runtime(events.run(&context)),
            Command::Item(command) => on_runtime(command.run(&context)),
            Command::Graph(command) => on_runtime(command.run(&context)),
            Command::Artifact(command) => on_runtime(command.run(&context)),
            Command::Token(command) => on_runtime(command.run(&context)),
            Command::Principal(command) => on_runtime(command.run(&context)),
            Command::Audit(audit) => on_runtime(audit.run(&context)),
            Command::Stats(stats) => on_runtime(stats.run(&context)),
            Command::Overview => on_runtime(overview::run(&context)),
            Command::History(history) => on_runtime(history.run(&context)),
            Command::Namespaces => on_runtime(about::namespaces(&context)),
            Command::Dialects => on_runtime(about::dialects(&context)),
            Command::Settings => on_runtime(about::settings(&context)),
            Command::Top(top) => on_runtime(top.run(&context)),
            Command::Store(command) => on_runtime(command.run(&context)),
            Command::Dialect(noun) => on_runtime(noun.run(&context)),
        };
        done.map(ExitCode::from)
    }
}

fn on_runtime(work: impl Future<Output = Done>) -> Done {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(work)
}
