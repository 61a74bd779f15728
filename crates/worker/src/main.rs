//! The `windlass-worker` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_worker::main(std::env::args_os())
}
