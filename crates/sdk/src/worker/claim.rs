//! Claims jobs for free slots and runs each of them to its end.

use super::{
    JobContext, Outcome,
    backoff::worth_repeating,
    held::{Held, StopReason},
    outage::WorkerCall,
    outcome::Failure,
    report::report,
    shared::Shared,
};
use crate::Error;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
    time::{Instant, sleep_until},
};
use tokio_util::task::TaskTracker;
use windlass_api::{
    Code,
    lease::{Claim, Leased},
};

/// A handler that does not listen gets so long after a hard stop before it is dropped.
const HARD_STOP_GRACE: Duration = Duration::from_secs(10);
/// Before a claim is made anew that was refused for what the worker is.
const REMEDY_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Claimer<F> {
    pub shared: Arc<Shared>,
    pub handler: Arc<F>,
    pub jobs: TaskTracker,
}

impl<F, Fut> Claimer<F>
where
    F: Fn(JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Into<Outcome> + Send,
{
    /// Returns when it is time to claim no more. What was claimed is then still at work.
    pub async fn run(&self) -> Result<(), Error> {
        let settings = &self.shared.settings;
        let slots = Arc::new(Semaphore::new(settings.slots as usize));
        let mut left = settings.jobs_max.unwrap_or(u64::MAX);
        while left > 0 && !self.shared.ends() {
            let Some(mut free) = self.free(&slots, left).await else { return Ok(()) };
            let asked = Instant::now();
            let Some(leases) = self.claim(free.num_permits() as u32).await? else { return Ok(()) };
            left = left.saturating_sub(leases.len() as u64);
            let idle = leases.is_empty();
            for leased in leases {
                // Not more than asked for; if there were, they would run all the same.
                let slot = free.split(1);
                self.start(leased, asked, slot);
            }
            drop(free);
            if idle && settings.exit_when_idle && self.is_over(&slots).await {
                return Ok(());
            }
        }
        Ok(())
    }

    /// All slots that are free, as soon as there is one and claiming makes sense. None: it is time to end.
    async fn free(&self, slots: &Arc<Semaphore>, left: u64) -> Option<OwnedSemaphorePermit> {
        let mut draining = self.shared.draining.subscribe();
        let free = async {
            let mut free = slots.clone().acquire_owned().await.expect("nobody closes it");
            drop(draining.wait_for(|draining| !draining).await);
            let more = slots.available_permits().min(usize::try_from(left - 1).unwrap_or(usize::MAX));
            if let Ok(more) = slots.clone().try_acquire_many_owned(more as u32) {
                free.merge(more);
            }
            free
        };
        tokio::select! {
            biased;
            () = self.shared.shutdown.cancelled() => None,
            () = self.shared.hard_stop.cancelled() => None,
            free = free => Some(free),
        }
    }

    /// One claim, asked under one id until it is answered. None: it is time to end.
    async fn claim(&self, max: u32) -> Result<Option<Vec<Leased>>, Error> {
        let shared = &self.shared;
        let wait = if shared.settings.exit_when_idle { Duration::ZERO } else { shared.settings.wait };
        let mut claim = shared.claim(max, wait);
        let (mut backoff, mut recovery) = (shared.backoff(), shared.outage.recovery());
        loop {
            recovery.begin();
            let answer = tokio::select! {
                biased;
                () = shared.shutdown.cancelled() => None,
                () = shared.hard_stop.cancelled() => None,
                answer = shared.protocol.claim(&claim) => Some(answer),
            };
            let error = match answer {
                Some(Ok(claimed)) => {
                    shared.outage.answered(WorkerCall::Claim);
                    return Ok(Some(claimed.leases));
                }
                Some(Err(error)) => error,
                None => {
                    shared.outage.gave_up(WorkerCall::Claim);
                    let got = shared.protocol.undo_claim(&claim).await;
                    return Ok(Some(got).filter(|got| !got.is_empty()));
                }
            };
            if !self.survives(&claim, &error).await? {
                return Ok(Some(Vec::new()));
            }
            // Answered at once, so that the worker knows when the server is back; the next claim waits for jobs again.
            claim.wait_ms = None;
            if !shared.pause(WorkerCall::Claim, &mut backoff, &mut recovery, &error).await {
                let got = shared.protocol.undo_claim(&claim).await;
                return Ok(Some(got).filter(|got| !got.is_empty()));
            }
        }
    }

    /// Whether to ask the same again. What is not worth repeating and has no remedy ends the worker.
    async fn survives(&self, claim: &Claim, error: &Error) -> Result<bool, Error> {
        if worth_repeating(error) {
            return Ok(true);
        }
        self.shared.outage.answered(WorkerCall::Claim);
        match error.known() {
            Some(Code::WorkerDraining) => {
                tracing::info!(worker = claim.worker, "this worker is being drained: it does not claim");
                self.shared.draining.send_replace(true);
                // It may be over already.
                self.shared.ask.notify_one();
                tokio::time::sleep(REMEDY_PAUSE).await;
                Ok(false)
            }
            Some(Code::WorkerNotOnline) => self.register_again().await.map(|()| false),
            // The server forgot this worker, or it means something else that registering does not mend: hence the pause.
            Some(Code::NotFound) => {
                self.register_again().await?;
                tokio::time::sleep(REMEDY_PAUSE).await;
                Ok(false)
            }
            _ => Err(error.clone()),
        }
    }

    /// If the server is away by now, the next claim waits for it, and is refused again if the worker is still unknown then.
    async fn register_again(&self) -> Result<(), Error> {
        match self.shared.register().await {
            Err(error) if worth_repeating(&error) => Ok(()),
            answer => answer,
        }
    }

    /// Nothing to claim, nothing at work.
    async fn is_over(&self, slots: &Arc<Semaphore>) -> bool {
        if slots.available_permits() == self.shared.settings.slots as usize {
            return true;
        }
        // Jobs at work may leave others behind; the next to end may make room for a look.
        let ended = slots.available_permits() + 1;
        let wait = slots.clone().acquire_many_owned(ended as u32);
        drop(tokio::time::timeout(Duration::from_secs(1), wait).await);
        false
    }

    fn start(&self, leased: Leased, asked: Instant, slot: Option<OwnedSemaphorePermit>) {
        let (shared, handler) = (self.shared.clone(), self.handler.clone());
        self.jobs.spawn(async move {
            let mut next = Some((leased, asked));
            while let Some((leased, asked)) = next.take() {
                let asked_again = Instant::now();
                let leases = work(&shared, &*handler, leased, asked).await;
                next = leases.into_iter().next().map(|leased| (leased, asked_again));
            }
            drop(slot);
        });
    }
}

/// One attempt from claim to report. Gives what the report claimed.
async fn work<F, Fut>(shared: &Arc<Shared>, handler: &F, leased: Leased, asked: Instant) -> Vec<Leased>
where
    F: Fn(JobContext) -> Fut,
    Fut: Future + Send + 'static,
    Fut::Output: Into<Outcome> + Send,
{
    // A claim may have waited long for the job; a lease is never older than its answer, and never younger than a third.
    let length = leased.lease_ms.map_or(Duration::ZERO, Duration::from_millis);
    let asked = asked.max(Instant::now().checked_sub(length / 3).unwrap_or(asked));
    let held = Arc::new(Held::new(leased, asked));
    let key = shared.hold(&held);
    let run = handler(JobContext { held: held.clone(), shared: shared.clone() });
    let outcome = watch(shared, &held, tokio::spawn(async move { run.await.into() })).await;
    let settings = &shared.settings;
    let more = settings.claim_with_report
        && shared.protocol.claims_with_report()
        && settings.jobs_max.is_none()
        && !shared.ends();
    let claim = (more && !*shared.draining.borrow()).then(|| shared.claim(1, Duration::ZERO));
    let leases = report(shared, &held, outcome, claim).await;
    shared.let_go(key);
    leases
}

/// Waits for the handler, and tells it when to stop.
async fn watch(shared: &Shared, held: &Held, mut task: JoinHandle<Outcome>) -> Outcome {
    let deadline = async {
        match held.deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(deadline);
    let ended = loop {
        tokio::select! {
            ended = &mut task => break ended,
            () = &mut deadline, if !held.token.is_cancelled() => held.stop(StopReason::DeadlinePassed),
            () = shared.hard_stop.cancelled() => {
                held.stop(StopReason::Stopped);
                match tokio::time::timeout(HARD_STOP_GRACE, &mut task).await {
                    Ok(ended) => break ended,
                    Err(_) => {
                        task.abort();
                        return Outcome::Release;
                    }
                }
            }
        }
    };
    match ended {
        Ok(Outcome::Fail(_)) if held.stop_reason() == Some(StopReason::Stopped) => Outcome::Release,
        Ok(outcome) => outcome,
        Err(error) => Outcome::Fail(Failure::new(panicked(error))),
    }
}

fn panicked(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the handler was dropped".into() };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the handler panicked: {}", text.unwrap_or_else(|| "no message".into()))
}
