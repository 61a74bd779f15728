//! The `windlass` program: the one place where stores, server, worker and client meet.
#![forbid(unsafe_code)]

mod bench;
mod cli;
mod commands;
mod config_show;
mod context;
mod demo;
mod dialects;
mod fail;
mod ids;
mod output;
mod pages;
mod parent;
mod profile;
mod remote;
mod serve;
mod settings;
mod store;
mod table;
mod times;
mod top;
mod up;
mod worker;

/// Jobs are made on one thread and freed on another all the time, which the system's allocator takes locks for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::Parser;
use std::{io, process::ExitCode};

fn main() -> ExitCode {
    if let Some(code) = worker::run_if_asked() {
        return code;
    }
    let cli = cli::Cli::parse();
    let remote = cli.remote.clone();
    match cli.run() {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format!("windlass: {error:#}"));
            if let Some(advice) = fail::advice(&error, &remote) {
                output::note(advice);
            }
            ExitCode::from(fail::code::ERROR)
        }
    }
}

/// Whoever read our output has seen enough, as in `windlass jobs | head`.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let of_io = |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<io::Error>().map(io::Error::kind);
    error.chain().filter_map(of_io).any(|kind| kind == io::ErrorKind::BrokenPipe)
}
