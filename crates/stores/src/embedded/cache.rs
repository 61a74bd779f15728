//! Remembers the rows used lately, so that a row just written is not read and parsed again.
//!
//! Two generations instead of a list in order of use: when the young one is full it becomes the old one, and what was
//! not asked for since then is dropped. Cheap, bounded, and close enough. Keep what is cheap to clone in it.

use foldhash::{HashMap, HashMapExt};
use std::hash::Hash;

pub(super) struct Cache<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Entries in each generation.
    entries_max: usize,
    /// What they may take together, in each generation, and what the young one takes.
    bytes_max: usize,
    bytes: usize,
}

/// What a value takes in memory, about.
pub(super) trait Weighed {
    fn bytes(&self) -> usize;
}

impl<K: Hash + Eq + Clone, V: Clone + Weighed> Cache<K, V> {
    pub(super) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), entries_max, bytes_max, bytes: 0 }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value.clone());
        Some(value)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        let bytes = value.bytes();
        // What was counted for an entry that is replaced or forgotten stays counted until the next generation.
        if self.young.len() >= self.entries_max || self.bytes.saturating_add(bytes) > self.bytes_max {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(key, value);
    }

    pub(super) fn forget(&mut self, key: &K) {
        // Also where the young one had it: the old one may still hold what it was before.
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(super) fn clear(&mut self) {
        self.young = HashMap::new();
        self.old = HashMap::new();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weighed for usize {
        fn bytes(&self) -> usize {
            1
        }
    }

    impl Weighed for &[u8] {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn large_values_are_remembered_by_what_they_take_not_by_their_number() {
        let mut cache: Cache<usize, &[u8]> = Cache::new(1_000, 100);
        for n in 0..1_000 {
            cache.put(n, &[0; 30]);
            assert!(cache.young.len() <= 3 && cache.old.len() <= 3);
        }
        assert!(cache.get(&999).is_some());
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut cache = Cache::new(2, 1_000);
        cache.put("kept", 0_usize);
        for n in 1..10 {
            cache.put(["a", "b", "c"][n % 3], n);
            assert_eq!(cache.get(&"kept"), Some(0));
            assert!(cache.young.len() <= 2 && cache.old.len() <= 2);
        }
        cache.put("once", 1);
        for n in 0..8 {
            cache.put(["a", "b", "c", "d"][n % 4], n);
        }
        assert_eq!(cache.get(&"once"), None);
    }

    #[test]
    fn a_newer_value_hides_an_older_one_until_it_is_forgotten() {
        let mut cache = Cache::new(2, 1_000);
        for key in ["a", "b", "c"] {
            cache.put(key, 1_usize);
        }
        cache.put("a", 2);
        assert_eq!(cache.get(&"a"), Some(2));
        cache.forget(&"a");
        assert_eq!(cache.get(&"a"), None);
    }
}
