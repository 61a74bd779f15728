//! Readers that wait for a result of a provider.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::watch;

/// By provider and hash of what was asked.
type Key = (Arc<str>, Arc<str>);

#[derive(Clone, Default)]
pub struct Results(Arc<Mutex<HashMap<Key, watch::Sender<bool>>>>);

/// One reader's wait.
pub struct Awaited {
    results: Results,
    key: Key,
    told: Option<watch::Receiver<bool>>,
}

impl Results {
    pub fn wait(&self, provider: &str, hash: &str) -> Awaited {
        let key: Key = (provider.into(), hash.into());
        let told = Some(self.subscribe(&key));
        Awaited { results: self.clone(), key, told }
    }

    fn subscribe(&self, key: &Key) -> watch::Receiver<bool> {
        self.0.lock().entry(key.clone()).or_default().subscribe()
    }

    pub fn tell(&self, provider: &str, hash: &str) {
        if let Some(waiting) = self.0.lock().remove(&(provider.into(), hash.into())) {
            waiting.send_replace(true);
        }
    }

    /// Results that somebody waits for.
    pub fn awaited(&self) -> usize {
        self.0.lock().len()
    }
}

impl Awaited {
    /// Returns once the result was told since this wait began, or since it last returned.
    pub async fn told(&mut self) {
        if let Some(told) = &mut self.told {
            // The sender goes only after it has told.
            drop(told.wait_for(|told| *told).await);
        }
        self.told = Some(self.results.subscribe(&self.key));
    }
}

/// The last one to leave takes the entry along.
impl Drop for Awaited {
    fn drop(&mut self) {
        let mut waiting = self.results.0.lock();
        self.told = None;
        if waiting.get(&self.key).is_some_and(|entry| entry.receiver_count() == 0) {
            waiting.remove(&self.key);
        }
    }
}
