//! The `windlass` program. So far: measuring the engine.
#![forbid(unsafe_code)]

mod bench;

/// Jobs are made on one thread and freed on another all the time, which the system's allocator takes locks for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A job server for workers in any language: they pull, it keeps the promises.
#[derive(Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure how fast this machine runs jobs, and how much of that is the store's own limit.
    Bench {
        #[command(subcommand)]
        what: bench::Bench,
    },
}

fn main() -> ExitCode {
    let Command::Bench { what } = Cli::parse().command;
    match what.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("windlass: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
