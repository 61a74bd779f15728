//! The `windlass` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Jobs are made on one thread and freed on another all the time, which the system's allocator takes locks for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    windlass_cli::main()
}
