//! What an operator may tune about the engine.

use std::{collections::BTreeMap, sync::Arc, time::Duration};
use windlass_core::{Limits, Millis, Namespace, stage};

#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: Limits,
    /// Commands in one transaction at most. A request of more than that runs alone.
    pub batch_max: usize,
    /// Bytes in one transaction at most.
    pub batch_bytes_max: usize,
    /// Bytes of commands that may wait; beyond that callers are told to come back later.
    pub queue_bytes_max: usize,
    /// The same for log lines, which have a queue of their own so that a flood of them delays nothing else.
    pub log_queue_bytes_max: usize,
    /// Log bytes in one transaction at most.
    pub log_batch_bytes_max: usize,
    /// The sweep runs when something is due, and at least this often. None: only when asked to, as tests do.
    pub sweep_every: Option<Duration>,
    /// How often a waiting claimer looks by itself, where another server may have made the work.
    pub poll_every: Option<Duration>,
    /// Gives live leases their full length again at the start. Only right where no other server kept them alive.
    pub grace: bool,
    /// How long events can be replayed.
    pub events_kept: Millis,
    pub quotas: Quotas,
}

/// How many bytes namespaces may keep: payloads, results, logs, records and events.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    /// 0: no limit.
    pub each: u64,
    /// Of namespaces that have one of their own.
    pub of: Arc<BTreeMap<Namespace, u64>>,
}

impl Quotas {
    /// None: no limit.
    pub fn of(&self, namespace: &Namespace) -> Option<u64> {
        // Without them no caller can sign in, and nothing can be revoked.
        if namespace.as_str() == stage::SYSTEM {
            return None;
        }
        Some(self.of.get(namespace).copied().unwrap_or(self.each)).filter(|max| *max > 0)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            batch_max: 1_024,
            batch_bytes_max: 8 << 20,
            queue_bytes_max: 256 << 20,
            log_queue_bytes_max: 64 << 20,
            log_batch_bytes_max: 1 << 20,
            sweep_every: Some(Duration::from_secs(600)),
            poll_every: None,
            grace: true,
            events_kept: Millis::from_secs(86_400),
            quotas: Quotas::default(),
        }
    }
}

impl Settings {
    /// For stores that several servers share: their work and their dues are found by looking.
    pub fn shared() -> Self {
        Self { sweep_every: Some(Duration::from_secs(1)), poll_every: Some(Duration::from_secs(1)), ..Self::default() }
    }
}
