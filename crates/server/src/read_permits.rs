//! Permits to read: of one principal's requests that only read, a few are at work at a time and the others
//! wait in line. Whoever asks for a thousand things at once waits for his own answers, and everybody else finds the server
//! free. Whoever waits for something to happen is not at work meanwhile.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// More would only queue for the same few threads that read.
pub const AT_WORK: usize = 4;

#[derive(Default)]
pub struct ReadPermits {
    /// Of those who read now.
    lines: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

/// The right to read. Given back when the request is answered, or earlier.
#[derive(Clone)]
pub struct ReadPermit(Arc<Inner>);

struct Inner {
    permits: Arc<ReadPermits>,
    name: Arc<str>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl ReadPermits {
    pub async fn enter(self: &Arc<Self>, name: &Arc<str>) -> ReadPermit {
        let line = self.lines.lock().entry(name.clone()).or_insert_with(|| Arc::new(Semaphore::new(AT_WORK))).clone();
        // Held until the permit is there, so that nobody forgets the line meanwhile.
        let inner = Arc::new(Inner { permits: self.clone(), name: name.clone(), permit: Mutex::new(None) });
        let permit = line.acquire_owned().await.ok();
        *inner.permit.lock() = permit;
        ReadPermit(inner)
    }
}

impl ReadPermit {
    /// What follows may take long, and takes nothing but time.
    pub fn leave(&self) {
        drop(self.0.permit.lock().take());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.permit.lock().take());
        let mut lines = self.permits.lines.lock();
        // Nobody has one of its permits, and nobody waits for one: those hold the line.
        if lines.get(&self.name).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.name);
        }
    }
}
