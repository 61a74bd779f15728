//! Whether the server answers a worker's calls. An outage is one warning when it begins and one when it is over, however many
//! calls fail in between; and the first call that succeeds lets all others try at once. It decides nothing about jobs. Runners of
//! other protocols note their calls here too.

use super::backoff::Backoff;
use crate::Error;
use std::{
    collections::BTreeSet,
    fmt::Display,
    sync::{Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The calls of a worker that are repeated until they succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerCall {
    Register,
    Claim,
    Renew,
    Report,
    Watch,
}

/// The calls that wait for a server do not come back to it in the same instant.
const SPREAD: Duration = Duration::from_millis(200);

#[derive(Default)]
pub struct Outage {
    now: Mutex<Option<Since>>,
    /// Counts the calls that succeeded after they had failed.
    recovered: watch::Sender<u64>,
}

struct Since {
    began: Instant,
    /// What failed the last time it was tried.
    failing: BTreeSet<WorkerCall>,
}

impl Outage {
    fn now(&self) -> MutexGuard<'_, Option<Since>> {
        self.now.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// This call failed and will be repeated.
    pub fn failed(&self, call: WorkerCall, error: &dyn Display) {
        let mut now = self.now();
        if now.is_none() {
            tracing::warn!(%error, ?call, "calls to the server fail; retrying until they succeed");
        } else {
            tracing::debug!(%error, ?call, "another try failed");
        }
        now.get_or_insert_with(|| Since { began: Instant::now(), failing: BTreeSet::new() }).failing.insert(call);
    }

    /// The server answered this call, also where it said no for good.
    pub fn answered(&self, call: WorkerCall) {
        let mut now = self.now();
        let Some(since) = now.as_mut() else { return };
        if since.failing.remove(&call) {
            self.recovered.send_modify(|count| *count += 1);
        }
        if since.failing.is_empty() {
            let ms = since.began.elapsed().as_millis() as u64;
            tracing::warn!("the server answers again after {}.{} s", ms / 1_000, ms % 1_000 / 100);
            *now = None;
        }
    }

    /// This call will not be repeated, although it failed: the outage ends with the next answer to any other.
    pub fn gave_up(&self, call: WorkerCall) {
        if let Some(since) = self.now().as_mut() {
            since.failing.remove(&call);
        }
    }

    pub(crate) fn recovery(&self) -> Recovery {
        Recovery { recovered: self.recovered.subscribe() }
    }
}

/// Waits between the tries of one call.
pub(crate) struct Recovery {
    recovered: watch::Receiver<u64>,
}

impl Recovery {
    /// What recovers from now on ends the next wait early. Before each try, so that nothing is missed.
    pub fn begin(&mut self) {
        self.recovered.mark_unchanged();
    }

    /// When another call succeeds. Never before what the server asked for is over.
    pub async fn wait(&mut self, backoff: &mut Backoff, error: &Error) {
        let least = error.retry_after().unwrap_or_default();
        let most = backoff.after(error);
        self.wait_between(least, most).await;
    }

    pub async fn wait_between(&mut self, least: Duration, most: Duration) {
        let early = async {
            sleep(least).await;
            // The sender lives as long as the worker.
            drop(self.recovered.changed().await);
            sleep(SPREAD.mul_f64(rand::random_range(0.0..=1.0))).await;
        };
        tokio::select! {
            () = sleep(most) => {}
            () = early => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use windlass_api::Problem;

    fn gone() -> Error {
        Error::Unreachable { url: String::new(), why: String::new() }
    }

    async fn waited(outage: &Arc<Outage>, error: Error, mut recovery: Recovery) -> Duration {
        let begun = Instant::now();
        outage.failed(WorkerCall::Report, &error);
        let mut backoff = Backoff::new(Duration::from_secs(3_600));
        for _ in 0..20 {
            backoff.after(&gone());
        }
        recovery.wait(&mut backoff, &error).await;
        begun.elapsed()
    }

    #[tokio::test]
    async fn when_one_call_succeeds_all_others_try_at_once() {
        let outage = Arc::new(Outage::default());
        let mut recovery = outage.recovery();
        recovery.begin();
        outage.failed(WorkerCall::Claim, &gone());
        // Also where it succeeds before the wait has begun.
        outage.answered(WorkerCall::Claim);
        assert!(waited(&outage, gone(), recovery).await <= Duration::from_secs(10));
    }

    #[tokio::test]
    async fn what_the_server_asks_for_is_waited_for_all_the_same() {
        let outage = Arc::new(Outage::default());
        let mut recovery = outage.recovery();
        recovery.begin();
        outage.failed(WorkerCall::Claim, &gone());
        outage.answered(WorkerCall::Claim);
        let busy = Problem { status: 503, retry_after_ms: Some(500), ..Problem::default() };
        let waited = waited(&outage, Error::Problem(Box::new(busy)), recovery).await;
        assert!((500..10_000).contains(&waited.as_millis()), "{waited:?}");
    }

    #[test]
    fn an_outage_is_over_when_all_that_failed_is_answered() {
        let outage = Outage::default();
        for call in [WorkerCall::Renew, WorkerCall::Claim, WorkerCall::Renew] {
            outage.failed(call, &gone());
        }
        outage.answered(WorkerCall::Watch);
        outage.answered(WorkerCall::Renew);
        assert!(outage.now().is_some());
        outage.answered(WorkerCall::Claim);
        assert!(outage.now().is_none());
    }

    #[test]
    fn a_call_that_is_given_up_does_not_end_the_outage_and_does_not_prolong_it() {
        let outage = Outage::default();
        outage.failed(WorkerCall::Claim, &gone());
        outage.gave_up(WorkerCall::Claim);
        assert!(outage.now().is_some(), "the server has not answered");
        outage.answered(WorkerCall::Renew);
        assert!(outage.now().is_none());
    }
}
