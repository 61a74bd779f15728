//! What a worker says to its server, in either of the protocols it knows. The loop around it is the same for both.

use super::graph::GraphClient;
use crate::{Client, Error};
use std::time::Duration;
use windlass_api::{
    lease::{Batch, BatchDone, Claim, Claimed, Leased, Release, Sync, Synced},
    worker::{RegisterWorker, WatchWorker, WorkerName, WorkerNews},
};

/// A server that cannot be reached must not hold up a worker that wants to end.
const UNDO_PATIENCE: Duration = Duration::from_secs(3);

pub(crate) enum Protocol {
    Native(Client),
    WorkflowGraph(Box<GraphClient>),
}

impl Protocol {
    /// Says whether the server wants it to claim no more for now.
    pub async fn register(&self, registration: &RegisterWorker) -> Result<bool, Error> {
        match self {
            Protocol::Native(client) => client.register(registration).await.map(|worker| worker.draining),
            Protocol::WorkflowGraph(graph) => graph.register(registration).await.map(|()| false),
        }
    }

    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        match self {
            Protocol::Native(client) => client.claim(claim).await,
            Protocol::WorkflowGraph(graph) => graph.claim(claim).await,
        }
    }

    pub async fn sync(&self, sync: &Sync) -> Result<Synced, Error> {
        match self {
            Protocol::Native(client) => client.sync(sync).await,
            Protocol::WorkflowGraph(graph) => graph.sync(sync).await,
        }
    }

    pub async fn batch(&self, batch: &Batch) -> Result<BatchDone, Error> {
        match self {
            Protocol::Native(client) => client.batch(batch).await,
            Protocol::WorkflowGraph(graph) => graph.batch(batch).await,
        }
    }

    /// Waits for news. None: this protocol has no call for it.
    pub async fn watch(&self, watch: &WatchWorker) -> Option<Result<WorkerNews, Error>> {
        match self {
            Protocol::Native(client) => Some(client.watch_worker(watch).await),
            Protocol::WorkflowGraph(_) => None,
        }
    }

    pub async fn unregister(&self, worker: &WorkerName) -> Result<(), Error> {
        match self {
            Protocol::Native(client) => client.unregister(worker).await,
            // The protocol has no way to say it.
            Protocol::WorkflowGraph(_) => Ok(()),
        }
    }

    /// While something is at work, the server is asked at least so often whether to go on.
    pub fn asks_every(&self) -> Option<Duration> {
        match self {
            Protocol::Native(_) => None,
            Protocol::WorkflowGraph(_) => Some(super::graph::CANCEL_POLL),
        }
    }

    /// Whether a report may claim the next job.
    pub fn claims_with_report(&self) -> bool {
        matches!(self, Protocol::Native(_))
    }

    /// What became of a claim whose answer nobody waited for. What can be given back is; the rest has to be worked on.
    pub async fn undo_claim(&self, claim: &Claim) -> Vec<Leased> {
        match self {
            Protocol::Native(client) => {
                give_back(client, claim).await;
                Vec::new()
            }
            Protocol::WorkflowGraph(graph) => graph.claimed_meanwhile().await,
        }
    }
}

/// What a claim may have got that nobody heard the answer of goes back, rather than to wait for its lease to run out.
/// The claim's id makes the server tell; where it had got nothing, it may get one job now, which goes back as well.
async fn give_back(client: &Client, claim: &Claim) {
    let again = Claim { max: Some(1), wait_ms: None, ..claim.clone() };
    let Ok(Ok(claimed)) = tokio::time::timeout(UNDO_PATIENCE, client.claim(&again)).await else {
        tracing::debug!("an unheard claim could not be looked up; what it got will lapse");
        return;
    };
    for leased in claimed.leases {
        if let Err(error) = client.release(&Release { lease: leased.lease, ..Release::default() }).await {
            tracing::debug!(%error, job = %leased.job, "a job could not be given back; its lease will lapse");
        }
    }
}
