//! Limits that each owner has of its own: a principal, a user, an address. One entry more than an owner may have takes the place of
//! the owner's oldest, so that no owner can use up what others need.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    time::{Duration, Instant},
};

/// Of the entries an owner has, those that have to go for `most` to be left: the oldest.
pub fn oldest_beyond<A: Ord, T>(mut entries: Vec<(A, T)>, most: usize) -> Vec<T> {
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let beyond = entries.len().saturating_sub(most);
    entries.into_iter().take(beyond).map(|(_, entry)| entry).collect()
}

/// Entries in memory that live for a while.
pub struct OwnedEntries<O, K, V> {
    /// In the order in which they came.
    entries: VecDeque<Entry<O, K, V>>,
    per_owner: usize,
    total: usize,
    life: Duration,
}

struct Entry<O, K, V> {
    owner: O,
    key: K,
    value: V,
    since: Instant,
}

impl<O: Clone + Eq + Hash, K: Eq, V> OwnedEntries<O, K, V> {
    pub const fn new(per_owner: usize, total: usize, life: Duration) -> Self {
        Self { entries: VecDeque::new(), per_owner, total, life }
    }

    pub fn add(&mut self, owner: O, key: K, value: V, now: Instant) {
        self.entries.retain(|entry| now.duration_since(entry.since) < self.life);
        if self.entries.iter().filter(|entry| entry.owner == owner).count() >= self.per_owner {
            self.remove_oldest(&owner);
        } else if self.entries.len() >= self.total {
            self.busiest().into_iter().for_each(|owner| self.remove_oldest(&owner));
        }
        self.entries.push_back(Entry { owner, key, value, since: now });
    }

    /// Gives it once.
    pub fn take(&mut self, key: &K, now: Instant) -> Option<V> {
        let at = self.entries.iter().position(|entry| entry.key == *key)?;
        let entry = self.entries.remove(at)?;
        (now.duration_since(entry.since) < self.life).then_some(entry.value)
    }

    fn remove_oldest(&mut self, owner: &O) {
        if let Some(at) = self.entries.iter().position(|entry| entry.owner == *owner) {
            self.entries.remove(at);
        }
    }

    /// Who has most.
    fn busiest(&self) -> Option<O> {
        let mut counts = HashMap::new();
        self.entries.iter().for_each(|entry| *counts.entry(&entry.owner).or_insert(0) += 1);
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(owner, _)| owner.clone())
    }
}
