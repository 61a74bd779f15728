//! The worker loop: claims jobs, runs a handler for each, keeps their leases, reports what came of them.
//!
#![doc = concat!("```no_run\n", include_str!("../../examples/worker.rs"), "```\n")]
//!
//! What holds: a lease is renewed three times within its length until its report is answered, also while the worker drains; a
//! report is repeated until the server has taken it or says that the lease is gone; a claim whose answer was lost is asked
//! again under the same id; a handler whose lease is gone is told to stop and nothing is reported for it.

mod backoff;
mod buffer;
mod claim;
mod context;
mod graph;
mod graph_wire;
mod held;
mod keep;
mod listen;
mod outage;
mod outcome;
mod protocol;
mod report;
mod shared;
mod wall;

pub use context::JobContext;
pub use held::StopReason;
pub use outage::{Outage, WorkerCall};
pub use outcome::{Failure, Outcome};
pub use shared::Summary;

use crate::{Client, Error};
use claim::Claimer;
use shared::Shared;
use std::{sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use windlass_api::worker::WorkerName;

/// The server hands out no more in one call.
const SLOTS_MAX: u32 = 1_000;
/// The longest wait for a server that is away, where nobody says otherwise.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct Settings {
    name: String,
    tags: Vec<String>,
    slots: u32,
    lease: Option<Duration>,
    wait: Duration,
    offline_after: Duration,
    backoff_max: Duration,
    info: Option<serde_json::Value>,
    exit_when_idle: bool,
    jobs_max: Option<u64>,
    claim_with_report: bool,
    abandon_unrenewed: bool,
    workflow_graph: bool,
    hard_stop: CancellationToken,
}

/// A worker to be.
pub struct Worker {
    client: Client,
    settings: Settings,
}

impl Worker {
    pub fn builder(client: Client) -> Self {
        let settings = Settings {
            name: format!("worker-{}", uuid::Uuid::new_v4().simple()),
            tags: Vec::new(),
            slots: 1,
            lease: None,
            wait: Duration::from_secs(30),
            offline_after: Duration::from_secs(60),
            backoff_max: BACKOFF_MAX,
            info: None,
            exit_when_idle: false,
            jobs_max: None,
            claim_with_report: true,
            abandon_unrenewed: false,
            workflow_graph: false,
            hard_stop: CancellationToken::new(),
        };
        Self { client, settings }
    }

    /// Unique in the namespace. Drawn where absent.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }
    /// What it offers.
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.tags = tags.into_iter().map(Into::into).collect();
        self
    }
    /// How many jobs it does at a time; 1 where absent, at most 1000.
    pub fn slots(mut self, slots: u32) -> Self {
        self.settings.slots = slots.clamp(1, SLOTS_MAX);
        self
    }
    /// Length of its leases where the job does not say; the server's default where absent. Short ones are given to somebody
    /// else sooner when the worker dies, and cost more calls.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = Some(lease);
        self
    }
    pub fn lease_ms(self, lease_ms: u64) -> Self {
        self.lease(Duration::from_millis(lease_ms))
    }
    /// How long one claim waits at the server for work; 30 seconds where absent, at most 60.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = wait.min(Duration::from_secs(60));
        self
    }
    /// Counts as offline after so long without a sign of life; a minute where absent. One is sent every third of it.
    pub fn offline_after(mut self, after: Duration) -> Self {
        self.settings.offline_after = after.max(Duration::from_secs(1));
        self
    }
    /// The longest wait between two tries; 10 seconds where absent.
    pub fn backoff_max(mut self, cap: Duration) -> Self {
        self.settings.backoff_max = cap;
        self
    }
    /// Anything else about it, for people.
    pub fn info(mut self, info: serde_json::Value) -> Self {
        self.settings.info = Some(info);
        self
    }
    /// End as soon as there is nothing to do.
    pub fn exit_when_idle(mut self, exit: bool) -> Self {
        self.settings.exit_when_idle = exit;
        self
    }
    /// End after so many jobs.
    pub fn jobs_max(mut self, jobs: Option<u64>) -> Self {
        self.settings.jobs_max = jobs;
        self
    }
    /// Whether a report also claims the next job, which saves a round trip for each; yes where absent.
    pub fn claim_with_report(mut self, claim: bool) -> Self {
        self.settings.claim_with_report = claim;
        self
    }
    /// Stop a handler whose lease may have run out because the server could not be reached. Without this it works on:
    /// a server that comes back gives leases their time again, and a report that came too late is refused anyway.
    pub fn abandon_unrenewed(mut self, abandon: bool) -> Self {
        self.settings.abandon_unrenewed = abandon;
        self
    }
    /// Speak workflow-graph's worker protocol, to Windlass or to the original server. A job's payload is then what the server
    /// says about it (`command`, `workflow_id`, `job_id`, `upstream_outputs`, …), its result a map of strings.
    pub fn workflow_graph(mut self) -> Self {
        self.settings.workflow_graph = true;
        self
    }
    /// When this is cancelled the worker stops at once: handlers are told to, and their jobs are given back.
    pub fn hard_stop(mut self, token: CancellationToken) -> Self {
        self.settings.hard_stop = token;
        self
    }

    /// Works until `shutdown` is cancelled and everything it holds by then is done and reported. Fails where the server
    /// does not accept the worker at all: a bad token or name; not because it cannot be reached.
    pub async fn run<F, Fut>(self, handler: F, shutdown: CancellationToken) -> Result<Summary, Error>
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: Into<Outcome> + Send,
    {
        let shared = Arc::new(Shared::new(self.client, self.settings, shutdown));
        introduce(&shared).await?;
        let kept = CancellationToken::new();
        let keeper = tokio::spawn(keep::keep(shared.clone(), kept.clone()));
        let listener = tokio::spawn(listen::listen(shared.clone()));
        let jobs = TaskTracker::new();
        let claimer = Claimer { shared: shared.clone(), handler: Arc::new(handler), jobs: jobs.clone() };
        let claimed = claimer.run().await;
        jobs.close();
        jobs.wait().await;
        listener.abort();
        kept.cancel();
        drop(keeper.await);
        leave(&shared).await;
        claimed.map(|()| shared.counts.summary())
    }
}

/// Registers, however long the server takes to be there.
async fn introduce(shared: &Shared) -> Result<(), Error> {
    let (mut backoff, mut recovery) = (shared.backoff(), shared.outage.recovery());
    while let Err(error) = shared.register().await {
        if !error.is_temporary() {
            return Err(error);
        }
        if !shared.pause(WorkerCall::Register, &mut backoff, &mut recovery, &error).await {
            return Ok(());
        }
    }
    // Without the address's password.
    let (server, settings) = (shared.client.base(), &shared.settings);
    tracing::info!(server, worker = settings.name, slots = settings.slots, "connected");
    Ok(())
}

/// The jobs are done; what is left is to be polite. A server that cannot be reached notices by itself.
async fn leave(shared: &Shared) {
    let name = WorkerName { worker: shared.settings.name.clone() };
    match tokio::time::timeout(Duration::from_secs(5), shared.protocol.unregister(&name)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the worker could not unregister"),
        Err(_) => tracing::debug!("the server did not hear the worker leave"),
    }
}
