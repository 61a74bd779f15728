//! All of the `windlass` program: the one place where stores, server, worker and client meet.
#![forbid(unsafe_code)]

/// Like the standard ones, except that an output which was closed early (`windlass bench idle | head`) is no reason to panic.
macro_rules! println {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(writeln!(std::io::stdout(), $($text)*));
    }};
}
macro_rules! print {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(write!(std::io::stdout(), $($text)*));
    }};
}
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(writeln!(std::io::stderr(), $($text)*));
    }};
}

pub mod bench;
pub mod cli;
pub mod commands;
mod complete;
mod config_show;
mod context;
mod demo;
pub mod dialects;
pub mod fail;
mod files;
mod ids;
pub mod output;
mod pages;
mod parent;
mod profile;
pub mod remote;
mod serve;
mod settings;
pub mod store;
pub mod table;
pub mod times;
pub mod top;
mod up;
mod worker;

use clap::{CommandFactory, Parser, error::ErrorKind};
use std::{io, process::ExitCode};

/// Does what the command line says.
pub fn main() -> ExitCode {
    complete::answer_if_asked(cli::Cli::command);
    let mut cli = cli::Cli::parse();
    cli.remote = match cli.remote.or_variables(|name| std::env::var_os(name)) {
        Ok(remote) => remote,
        Err(error) => cli::Cli::command().error(ErrorKind::ArgumentConflict, error).exit(),
    };
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
