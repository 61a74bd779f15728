//! `windlass worker`: the program `windlass-worker`, for hosts that have only this one.

use crate::remote::Remote;
use std::process::ExitCode;

/// Pull jobs from a server and run them as child processes.
#[derive(clap::Args)]
pub struct Worker {
    #[command(flatten)]
    args: windlass_worker::Args,
}

impl Worker {
    pub fn run(self, remote: &Remote) -> ExitCode {
        crate::parent::watch();
        windlass_worker::run(self.args, remote.find().map(|found| found.endpoint), &["worker"])
    }
}
