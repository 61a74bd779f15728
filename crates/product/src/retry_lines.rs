//! Lines for changes that were outrun.
//!
//! A change that lost against another is worked out again at once, and where many change the same thing, one of them can be
//! late every time. So whoever lost waits in line for a permit and keeps it until it is through: of all that lost over one record, one
//! at a time tries again, in the order in which they lost. Only a queue: nothing relies on it, and other servers have their own.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Records that share a line cost each other a little time and nothing else.
const LINES: usize = 64;

pub struct RetryLines(Vec<Arc<Mutex<()>>>);

/// The right to try again over one record.
pub type RetryPermit = OwnedMutexGuard<()>;

impl Default for RetryLines {
    fn default() -> Self {
        Self((0..LINES).map(|_| Arc::default()).collect())
    }
}

impl RetryLines {
    pub async fn wait(&self, name: &str) -> RetryPermit {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let line = hasher.finish() as usize % LINES;
        self.0[line].clone().lock_owned().await
    }
}
