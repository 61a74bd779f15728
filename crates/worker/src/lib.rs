//! Runs Windlass jobs as child processes on a host: the library behind `windlass-worker` and `windlass worker`.
//!
//! [`Args`] are what an operator says, `connect` how to reach the server, `plan` makes a command out of a job, `child` runs it, `output` reads what it prints, `artifacts` takes
//! the files it leaves,
//! `place` is where it may run, `graph` is what jobs of workflow-graph have beyond ours, `silo` a runner for Silo's protocol, `process` is one command,
//! `group` ends everything it started, `guard` does so when the worker itself is killed. `terminal` is how text from elsewhere is
//! shown. The worker loop is the SDK's.
#![forbid(unsafe_code)]

pub mod args;
mod artifacts;
mod child;
pub mod connect;
mod digest;
mod explanation;
mod folder;
pub mod graph;
mod group;
pub mod guard;
pub mod output;
pub mod place;
pub mod plan;
pub mod process;
pub mod silo;
pub mod terminal;
pub mod work;

pub use args::Args;
pub use guard::Guard;
pub use work::{Exit, work};

use args::Dialect;
use clap::Parser;
use connect::Endpoint;
use std::{
    ffi::OsString,
    process::{Command, ExitCode},
};

/// Parses the command line, the program's name first, and works.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match args::Cli::try_parse_from(args) {
        Ok(cli) => {
            let endpoint =
                cli.connect.or_variables(|name| std::env::var_os(name)).and_then(connect::ConnectOptions::endpoint);
            run(cli.args, endpoint, &[])
        }
        Err(error) => misused(&error),
    }
}

/// The same worker under the name `silorunner`: a runner for Silo's protocol, with its configuration.
pub fn silorunner(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match silo::Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    if cli.guard {
        return guard::watch();
    }
    args::start_logging(cli.log_format);
    silo::run(&cli, guard_command(&[]))
}

fn misused(error: &clap::Error) -> ExitCode {
    drop(error.print());
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::USAGE))
}

/// This program once more, to watch over the processes of the first.
fn guard_command(subcommand: &[&str]) -> Option<Command> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    command.args(subcommand).arg("--guard");
    Some(command)
}

/// Works until told to stop. For a program that has this one as a subcommand: `subcommand` is what comes before this program's own
/// options when the executable is called again.
pub fn run(args: Args, endpoint: anyhow::Result<Endpoint>, subcommand: &[&str]) -> ExitCode {
    if args.guard {
        return guard::watch();
    }
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(error) => return failed(&error),
    };
    args::start_logging(args.log_format);
    let guard = guard_command(subcommand);
    if args.dialect == Dialect::Silo {
        return silo::run(&silo::Cli::of(&args, endpoint), guard);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("windlass-worker: no threads to work with: {error}");
            return ExitCode::from(Exit::ERROR);
        }
    };
    match runtime.block_on(work::until_signal(&args, &endpoint, guard)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("{}", terminal::lines(&format!("windlass-worker: {error:#}")));
    ExitCode::from(Exit::of_error(error))
}
