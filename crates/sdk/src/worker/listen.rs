//! A call that is kept open, so that the worker hears at once what somebody else decided about it: a job was cancelled or taken
//! away, or it may claim no more, or again. It only says that there is something; the keeper asks what.

use super::{backoff::worth_repeating, outage::WorkerCall, shared::Shared};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use windlass_api::worker::WatchWorker;

const WAIT: Duration = Duration::from_secs(30);
/// Between two calls that were answered at once and without news, as a server does that is about to stop.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs until it is aborted, or until the server says that it has no such call: an older one does not. Renewals then tell.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut watch =
        WatchWorker { worker: shared.settings.name.clone(), seen: None, wait_ms: Some(WAIT.as_millis() as u64) };
    let (mut backoff, mut recovery) = (shared.backoff(), shared.outage.recovery());
    loop {
        let asked = Instant::now();
        recovery.begin();
        let Some(answer) = shared.protocol.watch(&watch).await else { return };
        match answer {
            Ok(heard) => {
                shared.outage.answered(WorkerCall::Watch);
                backoff.reset();
                watch.wait_ms = Some(WAIT.as_millis() as u64);
                watch.seen = Some(heard.seen);
                if heard.news {
                    shared.ask.notify_one();
                } else if asked.elapsed() < PAUSE {
                    sleep(PAUSE).await;
                }
            }
            // Whoever listens at the wrong place hears nothing anywhere; the other calls say what is wrong.
            Err(error) if !worth_repeating(&error) => {
                shared.outage.answered(WorkerCall::Watch);
                return tracing::debug!(%error, "no news are to be had");
            }
            Err(error) => {
                shared.outage.failed(WorkerCall::Watch, &error);
                // Answered at once, so that the worker knows when the server is back.
                watch.wait_ms = None;
                recovery.wait(&mut backoff, &error).await;
            }
        }
    }
}
