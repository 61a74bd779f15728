//! Why a job has to end before its command does.

use std::sync::{Arc, OnceLock};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Cancelled, timed out, deleted: the server said so.
    Lost,
    /// Its time is up by our own count.
    Expired,
    /// This runner was asked to end.
    ShuttingDown,
    /// The token is void.
    Denied,
}

/// What the whole runner was told.
#[derive(Clone, Default)]
pub struct Orders {
    /// The first signal: nothing new, and what runs is ended and reported.
    pub shutdown: CancellationToken,
    /// The second: at once.
    pub at_once: CancellationToken,
    pub denied: CancellationToken,
}

/// One job's. The first reason counts.
#[derive(Clone)]
pub struct Stop {
    orders: Orders,
    deadline: Instant,
    why: Arc<OnceLock<Why>>,
    told: CancellationToken,
    /// Nothing more has to be told about the job.
    pub quiet: CancellationToken,
}

impl Stop {
    pub fn new(orders: &Orders, deadline: Instant) -> Self {
        let quiet = orders.at_once.child_token();
        Self { orders: orders.clone(), deadline, why: Arc::default(), told: CancellationToken::new(), quiet }
    }

    pub fn because(&self, why: Why, text: &str) {
        if self.why.set(why).is_ok() {
            tracing::info!(?why, text, "stopping the job");
        }
        if why == Why::Denied {
            self.orders.denied.cancel();
        }
        if why != Why::ShuttingDown {
            self.quiet.cancel();
        }
        self.told.cancel();
    }

    pub fn why(&self) -> Option<Why> {
        self.why.get().copied()
    }

    /// Comes when the command has to end.
    pub async fn needed(&self) -> Why {
        tokio::select! {
            biased;
            () = self.told.cancelled() => {}
            () = self.orders.denied.cancelled() => self.because(Why::Denied, "the token is void"),
            () = self.orders.shutdown.cancelled() => self.because(Why::ShuttingDown, "asked to"),
            () = sleep_until(self.deadline) => self.because(Why::Expired, "its time is up"),
        }
        self.why().unwrap_or(Why::Lost)
    }

    /// Comes when not even what is finished is wanted any more: a shutdown alone is no reason to throw it away.
    pub async fn void(&self) -> Why {
        tokio::select! {
            biased;
            () = self.told.cancelled() => {}
            () = self.orders.denied.cancelled() => self.because(Why::Denied, "the token is void"),
            () = sleep_until(self.deadline) => self.because(Why::Expired, "its time is up"),
        }
        self.why().unwrap_or(Why::Lost)
    }

    /// Comes when nothing more is to be said about the job.
    pub async fn over(&self) {
        self.quiet.cancelled().await;
    }

    pub fn giving_up(&self) -> &CancellationToken {
        &self.quiet
    }
}
