//! How many bytes each namespace keeps, and whether it may keep more.
//!
//! The store has the numbers. They are asked for now and then, and what is let in meanwhile is added here; so several servers on one
//! store can together let in a little more than allowed. Reports, cancels and deletes are never refused for it.

use crate::{settings::Quotas, store::Store};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use windlass_core::{Command, Namespace, Refusal, commands::storage::Storage};

/// How long a number that leaves plenty of room is used, and any other.
const FRESH_FOR: [Duration; 2] = [Duration::from_secs(5), Duration::from_millis(500)];
/// Before anything is refused, a number older than this is asked for again.
const COUNT_AGAIN: Duration = Duration::from_millis(50);
/// How long a submit waits for the number.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a job takes that brings hardly anything, with its first events.
const SMALL_JOB: u64 = 4 << 10;
/// Namespaces whose numbers are remembered.
const NAMESPACES_MAX: usize = 10_000;

#[derive(Default)]
pub struct Usage(Mutex<HashMap<Namespace, Known>>);

#[derive(Clone, Copy)]
struct Known {
    bytes: u64,
    at: Instant,
}

impl Usage {
    /// Why a command may not bring what it brings. None: it may, or it brings nothing that stays.
    pub async fn refuse(&self, store: &dyn Store, quotas: &Quotas, command: &Command) -> Option<Refusal> {
        let stores = command.namespace().filter(|_| command.storage() == Storage::Stores);
        let namespace = stores?;
        let max = quotas.of(namespace)?;
        let bytes = command.weight() as u64;
        let mut used = self.used(store, namespace, max).await;
        if used + bytes > max && self.is_older_than(namespace, COUNT_AGAIN) {
            used = self.count(store, namespace).await;
        }
        if used + bytes > max {
            return Some(over(namespace, used, max));
        }
        if let Some(known) = self.0.lock().get_mut(namespace) {
            known.bytes += bytes;
        }
        None
    }

    /// Whether there is no room for even a small job.
    pub async fn is_over(&self, store: &dyn Store, quotas: &Quotas, namespace: &Namespace) -> bool {
        match quotas.of(namespace) {
            Some(max) => self.used(store, namespace, max).await + SMALL_JOB > max,
            None => false,
        }
    }

    async fn used(&self, store: &dyn Store, namespace: &Namespace, max: u64) -> u64 {
        let known = self.0.lock().get(namespace).copied();
        let is_fresh = |known: &Known| known.at.elapsed() < FRESH_FOR[usize::from(known.bytes > max / 2)];
        match known.filter(is_fresh) {
            Some(known) => known.bytes,
            None => self.count(store, namespace).await,
        }
    }

    fn is_older_than(&self, namespace: &Namespace, age: Duration) -> bool {
        self.0.lock().get(namespace).is_none_or(|known| known.at.elapsed() > age)
    }

    /// Asks the store, one caller at a time: the others go by the number there was. A store that does not answer refuses the command
    /// itself.
    async fn count(&self, store: &dyn Store, namespace: &Namespace) -> u64 {
        let before = self.note(namespace, None);
        match timeout(PATIENCE, store.stored_bytes(namespace)).await {
            Ok(Ok(bytes)) => self.note(namespace, Some(bytes)),
            Ok(Err(_)) | Err(_) => before,
        }
    }

    /// Notes that a number is being asked for, or what it is.
    fn note(&self, namespace: &Namespace, bytes: Option<u64>) -> u64 {
        let mut all = self.0.lock();
        if all.len() >= NAMESPACES_MAX && !all.contains_key(namespace) {
            all.clear();
        }
        let known = all.entry(namespace.clone()).or_insert(Known { bytes: 0, at: Instant::now() });
        *known = Known { bytes: bytes.unwrap_or(known.bytes), at: Instant::now() };
        known.bytes
    }
}

fn over(namespace: &Namespace, used: u64, max: u64) -> Refusal {
    let setting = "stored_bytes_per_namespace_max";
    Refusal::OverQuota { namespace: namespace.to_string(), used, max, setting }
}
