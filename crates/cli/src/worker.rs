//! `windlass worker`: the program `windlass-worker`, for hosts that have only this one.

use std::{ffi::OsString, process::ExitCode};

/// Pull jobs from a server and run them as child processes; see `windlass worker --help`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Worker {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    args: Vec<OsString>,
}

/// Its flags are its own, and some are called like flags of this program: so it is asked before anybody reads them.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    (args.next()? == "worker").then(|| Worker { args: args.collect() }.run())
}

impl Worker {
    pub fn run(self) -> ExitCode {
        crate::parent::watch();
        let args = std::iter::once("windlass worker".into()).chain(self.args);
        windlass_worker::main_as("windlass worker", &["worker"], args)
    }
}
