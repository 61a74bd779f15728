//! Remembers what was used lately, so that it is not read or worked out again.
//!
//! Two generations instead of a list in order of use: when the young one is full it becomes the old one, and what was
//! not asked for since then is dropped. Cheap, bounded, and close enough. Keep what is cheap to clone in it.

use foldhash::{HashMap, HashMapExt};
use std::hash::Hash;

pub struct Cache<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    /// Entries in each generation.
    entries_max: usize,
    /// What they may weigh together, in each generation, and what the young one weighs.
    weight_max: usize,
    weight: usize,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// Limits of each generation: together they hold at most twice as much. A weight is whatever is scarce, such as bytes.
    pub fn new(entries_max: usize, weight_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), entries_max, weight_max, weight: 0 }
    }

    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, weight)) = self.old.remove_entry(key)?;
        self.put(key, value.clone(), weight);
        Some(value)
    }

    /// The newest is kept, however much it weighs.
    pub fn put(&mut self, key: K, value: V, weight: usize) {
        // What was counted for an entry that is replaced or forgotten stays counted until the next generation.
        if self.young.len() >= self.entries_max || self.weight.saturating_add(weight) > self.weight_max {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += weight;
        self.young.insert(key, (value, weight));
    }

    pub fn forget(&mut self, key: &K) {
        // Also where the young one had it: the old one may still hold what it was before.
        self.young.remove(key);
        self.old.remove(key);
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.entries_max, self.weight_max);
    }
}
