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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn readers_hear_of_their_result_alone_and_leave_nothing_behind() {
        let results = Results::default();
        let (mut mine, mut too) = (results.wait("p", "1"), results.wait("p", "1"));
        let mut other = results.wait("p", "2");
        results.tell("p", "1");
        mine.told().await;
        too.told().await;
        assert!(mine.told().now_or_never().is_none(), "once for each time");
        assert!(other.told().now_or_never().is_none());
        let mut later = results.wait("p", "1");
        assert!(later.told().now_or_never().is_none(), "what was told before is in the store");
        drop((mine, too));
        assert_eq!(results.0.lock().len(), 2);
        drop((other, later));
        assert!(results.0.lock().is_empty());
    }
}
