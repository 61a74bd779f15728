//! The `silorunner` program: the worker as users of Silo configure it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_worker::silorunner(std::env::args_os())
}
