//! Which workers have sockets here.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use windlass_core::WorkerId;

/// A worker, and the user who says so: whose worker it is, the rules know. Others' claims to it change nothing for its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tie {
    pub user: Arc<str>,
    pub worker: WorkerId,
}

/// Counts the sockets of each worker.
#[derive(Default)]
pub struct Ties(Mutex<HashMap<Tie, usize>>);

impl Ties {
    /// Whether it is the first one.
    pub fn add(&self, tie: &Tie) -> bool {
        let mut ties = self.0.lock();
        let sockets = ties.entry(tie.clone()).or_default();
        *sockets += 1;
        *sockets == 1
    }

    /// Whether it was the last one.
    pub fn remove(&self, tie: &Tie) -> bool {
        let mut ties = self.0.lock();
        let Some(sockets) = ties.get_mut(tie) else { return false };
        *sockets -= 1;
        let last = *sockets == 0;
        if last {
            ties.remove(tie);
        }
        last
    }

    pub fn has(&self, tie: &Tie) -> bool {
        self.0.lock().contains_key(tie)
    }
}
