//! What a handler is given.

use super::{
    held::{Held, StopReason},
    shared::Shared,
    wall,
};
use crate::Client;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_api::{Json, Uuid, job::Progress, lease::Leased};

/// Words on progress are for a glance.
const PROGRESS_BYTES_MAX: usize = 4 << 10;

/// One attempt at a job: what it is about, and how to say something about it. Cheap to clone.
#[derive(Clone)]
pub struct JobContext {
    pub(super) held: Arc<Held>,
    pub(super) shared: Arc<Shared>,
}

impl JobContext {
    pub fn id(&self) -> Uuid {
        self.held.leased.job
    }
    /// Grows with every claim of the job: use it with the id as an idempotency key for what the work does elsewhere.
    pub fn attempt(&self) -> u32 {
        self.held.leased.attempt
    }
    pub fn payload(&self) -> Option<&Json> {
        self.held.leased.payload.as_ref()
    }
    /// The payload as a type of yours; no payload reads as `null`.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.payload().map_or("null", |json| json.get()))
    }
    /// Everything the claim said, the lease itself included: a secret.
    pub fn leased(&self) -> &Leased {
        &self.held.leased
    }
    /// For calls of the handler's own.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Appends to the job's log, as it is: line ends are yours to write. Waits when the server does not keep up.
    pub async fn log(&self, text: &str) {
        let urgent = || self.shared.printed(&self.held);
        self.held.log.push(None, wall::now_ms(), text, urgent).await;
    }

    /// Says how far the job is, 0 to 100. Only the latest counts, so say it as often as you like.
    pub fn progress(&self, percent: f64, message: impl Into<String>) {
        let percent = if percent.is_finite() { percent.clamp(0.0, 100.0) } else { 0.0 };
        let mut message = message.into().replace('\0', "\u{fffd}");
        message.truncate(message.floor_char_boundary(PROGRESS_BYTES_MAX));
        self.held.set_progress(Progress { percent, message });
        self.shared.wake.notify_one();
    }

    /// Waits until there is a reason to stop.
    pub async fn cancelled(&self) -> StopReason {
        self.held.token.cancelled().await;
        self.held.stop_reason().unwrap_or(StopReason::Stopped)
    }
    /// Why the handler should stop, if it should.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.held.token.is_cancelled().then(|| self.held.stop_reason()).flatten()
    }
    /// Cancelled when there is a reason to stop.
    pub fn token(&self) -> &CancellationToken {
        &self.held.token
    }
    /// When the job's time is up.
    pub fn deadline(&self) -> Option<Instant> {
        self.held.deadline
    }
}
