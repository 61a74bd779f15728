//! Seeded chance. The same seed always walks the same way.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use windlass_core::{Facet, Millis, Tags};

pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// 0 to `n` - 1; 0 for an empty range.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { self.0.random_range(0..n) }
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    pub fn percent(&mut self, chance: u32) -> bool {
        self.0.random_ratio(chance.min(100), 100)
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of the last few most of the time, any of them else.
    pub fn recent<'a, T>(&mut self, of: &'a [T], few: usize) -> Option<&'a T> {
        let from = if self.percent(80) { of.len().saturating_sub(few) } else { 0 };
        of.get(from + self.below(of.len() - from))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub fn millis(&mut self, most: i64) -> Millis {
        Millis(self.between(1, most))
    }

    pub fn maybe_millis(&mut self, chance: u32, most: i64) -> Option<Millis> {
        self.percent(chance).then(|| self.millis(most))
    }

    pub fn name(&mut self, of: &[&str]) -> Arc<str> {
        if self.percent(1) {
            // Names come from outside: empty, endless, and with what some databases cannot even store.
            let odd = ["", "\0", "a\0b", "a\nb", "é ✓ \u{1F600}", "'; --", "%_\\", " "];
            return (*self.pick(&odd)).into();
        }
        (*self.pick(of)).into()
    }

    pub fn maybe_name(&mut self, chance: u32, of: &[&str]) -> Option<Arc<str>> {
        self.percent(chance).then(|| self.name(of))
    }

    pub fn tags(&mut self, chance: u32) -> Tags {
        let mut tags: Vec<Arc<str>> = Vec::new();
        for tag in ["gpu", "linux", "fb:pkg/name@1.0.0", "ext:room:category:Größe"] {
            if self.percent(chance) {
                tags.push(tag.into());
            }
        }
        if self.percent(1) {
            tags.push(self.name(&["rare"]));
        }
        tags.into()
    }

    pub fn facets(&mut self) -> Vec<Facet> {
        let count = if self.percent(40) { self.below(4) } else { 0 };
        (0..count).map(|at| Facet::new(["room", "item", "user"][at % 3], ["a", "b", "c"][self.below(3)])).collect()
    }

    pub fn text(&mut self, most: usize) -> String {
        let length = self.below(most);
        (0..length).map(|_| *self.pick(&['a', 'b', '"', '\\', 'é', '\n', '{', '\0'])).collect()
    }
}
