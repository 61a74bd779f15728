//! Tells those who wait for one job that it has ended, or that its log grew.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::Notify;
use windlass_core::{Event, JobKey};

#[derive(Default)]
pub struct Bulletin {
    readers: Mutex<HashMap<JobKey, (usize, Arc<Notify>)>>,
}

/// Hears of one job until it is dropped.
pub struct Reader {
    bulletin: Arc<Bulletin>,
    key: JobKey,
    bell: Arc<Notify>,
}

impl Bulletin {
    /// Register before looking, so that nothing falls between.
    pub fn register(self: &Arc<Self>, key: &JobKey) -> Reader {
        let mut readers = self.lock();
        let (count, bell) = readers.entry(key.clone()).or_default();
        *count += 1;
        Reader { bulletin: self.clone(), key: key.clone(), bell: bell.clone() }
    }

    pub fn post<'a>(&self, events: &'a [Event], logged: &'a [JobKey]) {
        let readers = self.lock();
        if readers.is_empty() {
            return;
        }
        let ended = events.iter().filter(|event| event.what.ends_job());
        let ended = ended.filter_map(|event| Some(JobKey::new(&event.namespace, event.what.job()?)));
        for key in ended.chain(logged.iter().cloned()) {
            if let Some((_, bell)) = readers.get(&key) {
                bell.notify_waiters();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobKey, (usize, Arc<Notify>)>> {
        self.readers.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Reader {
    /// Enable it before looking; await it after.
    pub fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.bell.notified()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = self.bulletin.lock();
        if let Some((count, _)) = readers.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.key);
            }
        }
    }
}
