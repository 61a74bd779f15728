//! Runs Windlass jobs as child processes on a host: the library behind `windlass-worker` and `windlass worker`.
//!
//! [`Args`] are what an operator says, `plan` makes a command out of a job, `child` runs it, `output` reads what it prints,
//! `graph` is what jobs of workflow-graph have beyond ours,
//! `group` ends everything it started, `guard` does so when the worker itself is killed. The worker loop is the SDK's.
#![forbid(unsafe_code)]

pub mod args;
mod child;
mod folder;
mod graph;
mod group;
mod guard;
mod output;
mod plan;
mod work;

pub use args::Args;
pub use guard::Guard;
pub use work::{Exit, work};

use clap::{CommandFactory, FromArgMatches};
use std::{
    ffi::OsString,
    process::{Command, ExitCode},
};

/// Parses the command line, the program's name first, and works.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    main_as("windlass-worker", &[], args)
}

/// The same for a program that has this one as a subcommand: its whole name for help texts, and what comes before this
/// program's own flags when the executable is called again.
pub fn main_as(name: &'static str, subcommand: &[&str], args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = args::Cli::command().bin_name(name).try_get_matches_from(args);
    match parsed.and_then(|matches| args::Cli::from_arg_matches(&matches)) {
        Ok(cli) => run(cli.args, subcommand),
        Err(error) => {
            drop(error.print());
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::USAGE))
        }
    }
}

/// Works until told to stop.
fn run(args: Args, subcommand: &[&str]) -> ExitCode {
    if args.guard {
        return guard::watch();
    }
    args.start_logging();
    let guard = std::env::current_exe().map(|program| {
        let mut command = Command::new(program);
        command.args(subcommand).arg("--guard");
        command
    });
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("windlass-worker: no threads to work with: {error}");
            return ExitCode::from(Exit::ERROR);
        }
    };
    match runtime.block_on(work::until_signal(&args, guard.ok())) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            eprintln!("windlass-worker: {error:#}");
            ExitCode::from(Exit::of_error(&error))
        }
    }
}
