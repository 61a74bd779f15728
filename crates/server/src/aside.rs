//! Work that takes the processor for longer than a moment, beside what answers requests: reading large bodies and
//! definitions, compiling and checking schemas, deciding turns.

use crate::problem::{Code, Problem, Result};
use std::thread;
use windlass_core::Namespace;
pub use windlass_engine::aside::Large;
use windlass_engine::aside::{Aside as Threads, Pool, Undone, Yields};

/// What a namespace may have waiting. Each holds a request, or a turn of a run.
const WAITING_MAX: usize = 1_000;

pub struct Aside(Threads);

impl Default for Aside {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        let threads = (cores / 2).clamp(2, 8);
        Self(Threads::new(Pool { name: "aside", threads, yields: Yields::ToAll, waiting_max: WAITING_MAX }))
    }
}

impl Aside {
    /// What the work comes to. A fault in it is told as an error and ends nothing else.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: &Namespace,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.0.run(Some(namespace), work).await.map_err(told)
    }

    /// What the work makes, which is dropped aside as well: of a workflow of ten thousand steps that takes milliseconds.
    pub async fn run_large<T: Send + 'static>(
        &self,
        namespace: &Namespace,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Large<T>> {
        self.0.run_large(Some(namespace), work).await.map_err(told)?
    }
}

fn told(undone: Undone) -> Problem {
    match undone {
        Undone::TooMany(_) => Problem::new(Code::Unavailable, undone.to_string()).retry_after(500),
        Undone::Failed => Problem::new(Code::Internal, undone.to_string()),
    }
}
