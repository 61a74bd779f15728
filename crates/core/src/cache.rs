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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_are_remembered_by_what_they_take_not_by_their_number() {
        let mut cache = Cache::new(1_000, 100);
        for n in 0..1_000 {
            cache.put(n, n, 30);
            assert!(cache.young.len() <= 3 && cache.old.len() <= 3);
        }
        assert!(cache.get(&999).is_some());
        cache.put(1_000, 0, 500);
        assert_eq!((cache.get(&1_000), cache.young.len()), (Some(0), 1), "the newest stays, however large it is");
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut cache = Cache::new(2, 1_000);
        cache.put("kept", 0_usize, 1);
        for n in 1..10 {
            cache.put(["a", "b", "c"][n % 3], n, 1);
            assert_eq!(cache.get(&"kept"), Some(0));
            assert!(cache.young.len() <= 2 && cache.old.len() <= 2);
        }
        cache.put("once", 1, 1);
        for n in 0..8 {
            cache.put(["a", "b", "c", "d"][n % 4], n, 1);
        }
        assert_eq!(cache.get(&"once"), None);
    }

    #[test]
    fn a_newer_value_hides_an_older_one_until_it_is_forgotten() {
        let mut cache = Cache::new(2, 1_000);
        for key in ["a", "b", "c"] {
            cache.put(key, 1_usize, 1);
        }
        cache.put("a", 2, 1);
        assert_eq!(cache.get(&"a"), Some(2));
        cache.forget(&"a");
        assert_eq!(cache.get(&"a"), None);
    }
}
