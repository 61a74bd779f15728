//! Whether several namespaces are at work, and how much of a batch is for each of them then.

use std::time::{Duration, Instant};
use windlass_core::Namespace;

/// How long somebody counts as being at work.
const REMEMBERED: Duration = Duration::from_secs(1);
/// What the commands of one namespace may take in a batch: others wait for it, whatever they want.
const MOMENT: Duration = Duration::from_micros(500);
const FEWEST: usize = 8;
/// Fewer commands than this say what a batch costs by itself, and nothing about what each of them costs.
const TELLING: usize = 4;
/// Where batches do not wait for each other, and until it is known what a command costs.
const MOST: usize = 64;

/// Notes whose commands come by, and what they cost.
#[derive(Default)]
pub struct Sharing {
    last: Option<Namespace>,
    shared_until: Option<Instant>,
    /// Smoothed times, in seconds: of a batch with next to nothing in it, and of each command beyond that. Smaller batches would
    /// not make the first one smaller: there would only be more of them.
    own: f64,
    cost: f64,
}

impl Sharing {
    pub fn see<'a>(&mut self, namespaces: impl Iterator<Item = &'a Namespace>) {
        let mut others = false;
        for namespace in namespaces {
            if self.last.as_ref() != Some(namespace) {
                others |= self.last.replace(namespace.clone()).is_some();
            }
        }
        if others {
            self.shared_until = Some(Instant::now() + REMEMBERED);
        }
    }

    pub fn is_shared(&self) -> bool {
        self.shared_until.is_some_and(|until| Instant::now() < until)
    }

    pub fn learn(&mut self, took: Duration, commands: usize) {
        let took = took.as_secs_f64();
        if commands < TELLING {
            // One of them may have brought a megabyte, which is not the batch's own cost.
            self.own = smooth(self.own, took, if took < self.own { 0.2 } else { 0.02 });
        } else {
            self.cost = smooth(self.cost, (took - self.own).max(0.0) / commands as f64, 0.2);
        }
    }

    /// Commands of one namespace that go into a batch while others are at work. None: all.
    pub fn each(&self) -> Option<usize> {
        self.is_shared().then(|| ((MOMENT.as_secs_f64() / self.cost) as usize).clamp(FEWEST, MOST))
    }
}

fn smooth(before: f64, now: f64, weight: f64) -> f64 {
    if before == 0.0 { now } else { before * (1.0 - weight) + now * weight }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(sharing: &mut Sharing, names: &[&str]) {
        let names: Vec<Namespace> = names.iter().map(|name| Namespace::new(name).unwrap()).collect();
        sharing.see(names.iter());
    }

    #[test]
    fn one_namespace_alone_shares_with_nobody() {
        let mut sharing = Sharing::default();
        see(&mut sharing, &["a", "a"]);
        see(&mut sharing, &["a"]);
        assert_eq!(sharing.each(), None);
        see(&mut sharing, &["b"]);
        assert_eq!(sharing.each(), Some(MOST));
    }

    #[test]
    fn what_costs_more_goes_in_smaller_pieces() {
        let mut sharing = Sharing::default();
        see(&mut sharing, &["a", "b"]);
        sharing.learn(Duration::from_millis(2), 1);
        assert_eq!(sharing.each(), Some(MOST), "that was the batch's own cost");
        sharing.learn(Duration::from_millis(3), 50);
        assert_eq!(sharing.each(), Some(25));
        for _ in 0..50 {
            sharing.learn(Duration::from_millis(9), 4);
        }
        assert_eq!(sharing.each(), Some(FEWEST));
    }

    /// A batch that is cut because batches take long would only be followed by more of them.
    #[test]
    fn what_a_batch_costs_by_itself_makes_no_batch_smaller() {
        let mut sharing = Sharing::default();
        see(&mut sharing, &["a", "b"]);
        for _ in 0..50 {
            sharing.learn(Duration::from_millis(3), 1);
            sharing.learn(Duration::from_micros(3_040), 8);
        }
        assert_eq!(sharing.each(), Some(MOST));
    }
}
