//! Answers on their way from the batcher to whoever asked.

use crate::{
    error::Error,
    intake::Intake,
    request::{Replies, lost},
};
use std::sync::Arc;
use tokio::sync::oneshot;
use windlass_core::{Namespace, Refusal, Reply};

/// The way of a claim's answer. If the claimer goes away while the answer is on it, the jobs are taken back.
pub struct Delivery {
    pub intake: Arc<Intake>,
    pub abandon: Option<Namespace>,
    pub receiver: oneshot::Receiver<Replies>,
}

impl Delivery {
    pub async fn answer(&mut self) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        Ok((&mut self.receiver).await.map_err(lost)??)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.receiver.close();
        if let (Ok(Ok(undelivered)), Some(namespace)) = (self.receiver.try_recv(), &self.abandon) {
            self.intake.take_back(namespace, undelivered);
        }
    }
}
