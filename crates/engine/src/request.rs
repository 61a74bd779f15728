//! What a caller asks the batcher for, and what it is answered.

use crate::store::StoreError;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use windlass_core::{Command, Namespace, Refusal, Reply, credential::Credential};

pub type Replies = Result<Vec<Result<Reply, Refusal>>, StoreError>;

/// Commands of one caller, answered together.
pub struct Request {
    pub commands: Vec<Command>,
    /// What their sender was admitted with.
    pub by: Option<Arc<Credential>>,
    pub reply: oneshot::Sender<Replies>,
    /// Room in the queue, given back when the request is answered.
    pub room: OwnedSemaphorePermit,
    /// A claim nobody waits for any more is not run, and one whose answer cannot be delivered is taken back.
    pub abandon: Option<Namespace>,
    pub weight: usize,
}

impl Request {
    pub fn is_promise(&self) -> bool {
        self.commands.iter().any(Command::is_promise)
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandon.is_some() && self.reply.is_closed()
    }
}

/// A batcher that went away in the middle means a bug brought it down: nobody knows whether it had committed.
pub fn lost(_: oneshot::error::RecvError) -> StoreError {
    StoreError::Unavailable("the engine stopped before it answered".into())
}
