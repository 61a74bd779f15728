//! Threads of their own for requests that read, and for those that work on whole graphs: what they find may be thousands of
//! rows, and putting these into an answer takes the processor for longer than a moment. Whoever submits, claims or reports
//! is answered meanwhile.

use crate::problem::{Code, Problem};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;
use windlass_engine::aside::{leave_a_processor, yield_to_others};

/// One that is long at work leaves another to the others.
const THREADS: usize = 2;
/// Less than work that is known to be long (`aside`): most reads are short.
const YIELDS: i32 = 5;

/// Started when it is first needed. None: it could not be.
#[derive(Default)]
pub struct Behind(OnceLock<Option<Runtime>>);

impl Behind {
    /// Ends with whoever waits for it. A fault in it is told as an error.
    pub async fn run(&self, work: BoxFuture<'static, Response>) -> Response {
        let Some(runtime) = self.0.get_or_init(start) else { return work.await };
        AbortOnDropHandle::new(runtime.spawn(work)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a request failed");
            Problem::new(Code::Internal, "answering this failed; the server's log has the details").into_response()
        })
    }
}

fn start() -> Option<Runtime> {
    let threads = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("behind")
        .on_thread_start(|| {
            leave_a_processor();
            yield_to_others(YIELDS);
        })
        .enable_all()
        .build();
    threads.inspect_err(|error| tracing::warn!(%error, "threads for reads could not be started")).ok()
}

/// Where this ends there may be others at work that must not wait.
impl Drop for Behind {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
