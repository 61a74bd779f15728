//! One call now and then keeps every lease, and says what their jobs printed and how far they are.

use super::{
    buffer::weight,
    held::{Held, StopReason},
    outage::{Recovery, WorkerCall},
    shared::Shared,
};
use crate::Error;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use windlass_api::{
    job::Progress,
    lease::{Sync, SyncLease, Synced},
};

/// News wait so long for company.
const GATHER: Duration = Duration::from_millis(250);
/// Log bytes in one call. Even if every byte is written as six, the call stays below what the server takes.
const LOG_BYTES_MAX: usize = 2 << 20;
/// Leases in one call.
const LEASES_MAX: usize = 1_000;

/// Runs until told that the last lease is gone.
pub(crate) async fn keep(shared: Arc<Shared>, done: CancellationToken) {
    let last = Instant::now();
    let (backoff, recovery) = (shared.backoff(), shared.outage.recovery());
    let mut keeper = Keeper { retry: None, last, backoff, recovery, failing: None, asks: false, shared };
    loop {
        let ask = keeper.shared.clone();
        let asks = tokio::select! {
            () = done.cancelled() => return,
            () = keeper.due() => false,
            () = ask.ask.notified() => true,
        };
        keeper.asks |= asks;
        // A call that is under way is finished: its pieces of log must not be sent twice.
        keeper.sync().await;
    }
}

struct Keeper {
    shared: Arc<Shared>,
    last: Instant,
    /// After a failure: the shortest and the longest wait.
    retry: Option<(Duration, Duration)>,
    backoff: super::backoff::Backoff,
    recovery: Recovery,
    /// Since when the server has not answered.
    failing: Option<Instant>,
    /// There are news, so that all leases are asked for.
    asks: bool,
}

/// One lease's part in a call.
struct Said {
    held: Arc<Held>,
    progress: Option<Progress>,
    logged: bool,
}

impl Keeper {
    /// Waits until there is something to say.
    async fn due(&mut self) {
        if let Some((least, most)) = self.retry {
            return self.recovery.wait_between(least, most).await;
        }
        tokio::select! {
            () = sleep_until(self.next_renewal()) => return,
            () = self.shared.wake.notified() => {}
        }
        if self.shared.all_held().iter().all(|held| held.log.len() < super::buffer::PIECE_BYTES_MAX) {
            let gathered = (self.last + GATHER).min(self.next_renewal());
            tokio::select! {
                () = sleep_until(gathered) => {}
                () = self.shared.urgent.notified() => {}
            }
        }
    }

    fn next_renewal(&self) -> Instant {
        let held = self.shared.all_held();
        let asks_every = self.shared.protocol.asks_every().filter(|_| !held.is_empty());
        let idle = self.last + asks_every.unwrap_or(self.shared.settings.offline_after / 3);
        held.iter().map(|held| held.renew_at()).min().map_or(idle, |renewal| renewal.min(idle))
    }

    async fn sync(&mut self) {
        let started = Instant::now();
        let (body, said) = self.compose(started);
        if said.is_empty() && started < self.next_renewal() && self.retry.is_none() && !self.asks {
            // What there was to say went out with a report.
            return;
        }
        self.last = started;
        self.recovery.begin();
        let patience = said.iter().map(|said| said.held.length / 3).min().unwrap_or(Duration::from_secs(10));
        let patience = patience.clamp(Duration::from_secs(1), Duration::from_secs(30));
        let answer = match timeout(patience, self.shared.protocol.sync(&body)).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Unreachable {
                url: self.shared.client.base().to_owned(),
                why: format!("no answer within {patience:?}"),
            }),
        };
        match answer {
            Ok(synced) => self.heard(started, &said, &synced).await,
            Err(error) => self.failed(said, &error),
        }
    }

    /// All leases when one of them has to be renewed, otherwise only those that have news.
    fn compose(&self, now: Instant) -> (Sync, Vec<Said>) {
        let all = self.shared.all_held();
        let every = self.asks || self.shared.protocol.asks_every().is_some();
        let renewal = every || all.iter().any(|held| held.renew_at() <= now);
        let (mut room, mut leases, mut said) = (LOG_BYTES_MAX, Vec::new(), Vec::new());
        for held in all.into_iter().filter(|held| !held.is_lost() && (renewal || held.has_news())).take(LEASES_MAX) {
            let log = if held.is_reporting() { None } else { held.log.take(room) };
            let progress = if held.is_reporting() { None } else { held.take_progress() };
            let logged = log.is_some();
            let chunks = log.unwrap_or_default();
            room = room.saturating_sub(weight(&chunks));
            let (lease, log) = (held.leased.lease.clone(), String::new());
            leases.push(SyncLease { lease, progress: progress.clone(), log, chunks });
            said.push(Said { held, progress, logged });
        }
        (Sync { worker: self.shared.settings.name.clone(), leases }, said)
    }

    async fn heard(&mut self, started: Instant, said: &[Said], synced: &Synced) {
        for (said, answer) in said.iter().zip(&synced.leases) {
            if said.logged {
                said.held.log.note_sent(true);
            }
            match (answer.held, answer.cancelled) {
                (true, false) => said.held.renewed(started),
                (true, true) => {
                    said.held.renewed(started);
                    said.held.stop(StopReason::Cancelled);
                }
                (false, true) => said.held.lose(StopReason::Cancelled),
                (false, false) => said.held.lose(StopReason::LeaseLost),
            }
        }
        self.shared.outage.answered(WorkerCall::Renew);
        self.retry = None;
        self.asks = false;
        self.backoff.reset();
        self.shared.draining.send_replace(synced.draining);
        let long_away = self.failing.take().is_some_and(|since| since.elapsed() > self.shared.settings.offline_after);
        // With workflow-graph's protocol a claim makes a forgotten worker known by its name alone, and nobody says so.
        if (synced.unknown_worker || long_away)
            && let Err(error) = self.shared.register().await
        {
            // The next claim is refused, and the worker registers again.
            tracing::debug!(%error, "the server does not know this worker any more, and registering again failed");
        }
        if said.iter().any(|said| said.held.has_news()) {
            self.shared.wake.notify_one();
        }
    }

    fn failed(&mut self, said: Vec<Said>, error: &Error) {
        for said in &said {
            if said.logged {
                said.held.log.note_sent(false);
            }
            said.held.put_back(said.progress.clone());
        }
        self.failing.get_or_insert(self.last);
        let shortest = said.iter().map(|said| said.held.length / 6).min().unwrap_or(Duration::from_secs(5));
        let wait = self.backoff.after(error).min(shortest.max(Duration::from_millis(50)));
        self.retry = Some((error.retry_after().unwrap_or_default().min(wait), wait));
        self.shared.outage.failed(WorkerCall::Renew, error);
        if self.shared.settings.abandon_unrenewed {
            let now = Instant::now();
            for held in self.shared.all_held().iter().filter(|held| held.runs_out_at() <= now) {
                held.lose(StopReason::LeaseLost);
            }
        }
    }
}
