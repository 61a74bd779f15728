//! What the parts of a worker share.

use super::{
    Settings,
    backoff::{Backoff, worth_repeating},
    buffer::PIECE_BYTES_MAX,
    graph::GraphClient,
    held::Held,
    outage::{Outage, Recovery, WorkerCall},
    protocol::Protocol,
};
use crate::{Client, Error};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use windlass_api::{lease::Claim, worker::RegisterWorker};

pub(crate) struct Shared {
    pub client: Client,
    pub protocol: Protocol,
    pub settings: Settings,
    /// Claim no more; finish what is held.
    pub shutdown: CancellationToken,
    /// Stop what runs and give it back.
    pub hard_stop: CancellationToken,
    held: Mutex<BTreeMap<u64, Arc<Held>>>,
    next_key: AtomicU64,
    /// There is something to say to the server, soon.
    pub wake: Notify,
    /// And now rather than soon.
    pub urgent: Notify,
    /// The server has something to say about this worker or what it holds: ask it.
    pub ask: Notify,
    /// The server wants it to claim no more for now.
    pub draining: watch::Sender<bool>,
    pub counts: Counts,
    pub outage: Outage,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub completed: AtomicU64,
    pub failed: AtomicU64,
    pub released: AtomicU64,
    pub lost: AtomicU64,
    pub unreported: AtomicU64,
}

/// What a worker did, by the time it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub completed: u64,
    pub failed: u64,
    /// Given back unharmed.
    pub released: u64,
    /// Lost to another worker, a cancellation or a deadline before they could be reported.
    pub lost: u64,
    /// Done, but the report was refused or nobody could be reached before a hard stop.
    pub unreported: u64,
}

impl Counts {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub fn summary(&self) -> Summary {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            completed: read(&self.completed),
            failed: read(&self.failed),
            released: read(&self.released),
            lost: read(&self.lost),
            unreported: read(&self.unreported),
        }
    }
}

impl Shared {
    pub fn new(client: Client, settings: Settings, shutdown: CancellationToken) -> Self {
        let protocol = match settings.workflow_graph {
            false => Protocol::Native(client.clone()),
            true => Protocol::WorkflowGraph(Box::new(GraphClient::new(client.clone()))),
        };
        Self {
            client,
            protocol,
            hard_stop: settings.hard_stop.clone(),
            settings,
            shutdown,
            held: Mutex::default(),
            next_key: AtomicU64::new(0),
            wake: Notify::new(),
            urgent: Notify::new(),
            ask: Notify::new(),
            draining: watch::Sender::new(false),
            counts: Counts::default(),
            outage: Outage::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Held>>> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn all_held(&self) -> Vec<Arc<Held>> {
        self.held().values().cloned().collect()
    }

    pub fn hold(&self, held: &Arc<Held>) -> u64 {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        self.held().insert(key, held.clone());
        self.wake.notify_one();
        key
    }

    pub fn let_go(&self, key: u64) {
        self.held().remove(&key);
    }

    pub fn printed(&self, held: &Held) {
        self.wake.notify_one();
        if held.log.len() >= PIECE_BYTES_MAX {
            self.urgent.notify_one();
        }
    }

    /// Stopping at once means stopping.
    pub fn ends(&self) -> bool {
        self.shutdown.is_cancelled() || self.hard_stop.is_cancelled()
    }

    pub fn claim(&self, max: u32, wait: Duration) -> Claim {
        let settings = &self.settings;
        Claim {
            worker: settings.name.clone(),
            // Without it a server that forgot the worker would know its name from then on, but neither its slots nor its info.
            registered: true,
            tags: Some(settings.tags.clone()),
            max: Some(max),
            wait_ms: (!wait.is_zero()).then_some(wait.as_millis() as u64),
            lease_ms: settings.lease.map(|lease| lease.as_millis() as u64),
            request_id: Some(Uuid::new_v4().to_string()),
        }
    }

    pub async fn register(&self) -> Result<(), Error> {
        let settings = &self.settings;
        let registration = RegisterWorker {
            worker: settings.name.clone(),
            tags: settings.tags.clone(),
            slots: settings.slots,
            offline_after_ms: Some(settings.offline_after.as_millis() as u64),
            delete_after_ms: None,
            info: settings.info.clone(),
        };
        let answer = self.protocol.register(&registration).await;
        if !answer.as_ref().is_err_and(worth_repeating) {
            self.outage.answered(WorkerCall::Register);
        }
        answer.map(|draining| {
            self.draining.send_replace(draining);
        })
    }

    pub fn backoff(&self) -> Backoff {
        Backoff::new(self.settings.backoff_max)
    }

    /// Waits after an error, unless the worker is to end. False: it is.
    pub async fn pause(&self, call: WorkerCall, backoff: &mut Backoff, recovery: &mut Recovery, error: &Error) -> bool {
        debug_assert!(worth_repeating(error));
        self.outage.failed(call, error);
        let again = tokio::select! {
            () = recovery.wait(backoff, error) => true,
            () = self.shutdown.cancelled() => false,
            () = self.hard_stop.cancelled() => false,
        };
        if !again {
            self.outage.gave_up(call);
        }
        again
    }
}
