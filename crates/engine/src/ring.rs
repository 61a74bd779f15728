//! The latest events in memory, and which of the namespaces somebody follows.

use parking_lot::Mutex;
use std::{collections::VecDeque, ops::RangeInclusive, sync::Arc};
use windlass_core::{Event, Namespace};

const EVENTS_MAX: usize = 4_096;

/// Followers and events lie behind one lock: whether a batch is followed is decided in the same moment in which it is noted, so
/// nobody who begins to follow meanwhile misses it.
#[derive(Default)]
pub struct Ring(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    kept: VecDeque<RingEntry>,
    /// Those who follow every namespace.
    of_all: usize,
    /// Few: dialects, not users, follow a namespace.
    of_one: Vec<(Namespace, usize)>,
}

enum RingEntry {
    Event(u64, Arc<Event>),
    /// Events that nobody followed when they were told. Perhaps they are not synced yet, so whoever wants them asks the store.
    Unheard(RangeInclusive<u64>),
}

impl RingEntry {
    fn first(&self) -> u64 {
        match self {
            RingEntry::Event(number, _) => *number,
            RingEntry::Unheard(numbers) => *numbers.start(),
        }
    }
    fn last(&self) -> u64 {
        match self {
            RingEntry::Event(number, _) => *number,
            RingEntry::Unheard(numbers) => *numbers.end(),
        }
    }
}

/// What a reader gets at once: the events it follows, and the number up to which it has them all.
pub struct Recent {
    pub events: Vec<(u64, Arc<Event>)>,
    pub upto: u64,
}

impl Ring {
    pub fn readers(&self) -> usize {
        let inner = self.0.lock();
        inner.of_all + inner.of_one.iter().map(|(_, count)| count).sum::<usize>()
    }

    pub fn follow(&self, namespace: Option<&Namespace>) {
        let mut inner = self.0.lock();
        let Some(namespace) = namespace else {
            inner.of_all += 1;
            return;
        };
        match inner.of_one.iter_mut().find(|(followed, _)| followed == namespace) {
            Some((_, count)) => *count += 1,
            None => {
                inner.of_one.push((namespace.clone(), 1));
                // What was passed over so far may have been of this namespace.
                inner.kept.clear();
            }
        }
    }

    pub fn unfollow(&self, namespace: Option<&Namespace>) {
        let mut inner = self.0.lock();
        match namespace {
            None => inner.of_all -= 1,
            Some(namespace) => {
                if let Some((_, count)) = inner.of_one.iter_mut().find(|(followed, _)| followed == namespace) {
                    *count -= 1;
                }
                inner.of_one.retain(|(_, count)| *count > 0);
            }
        }
        if !inner.has_followers() {
            inner.kept.clear();
        }
    }

    /// Notes that these events are not told if nobody follows them. False: somebody does.
    pub fn passes_over(&self, first: Option<u64>, events: &[Event]) -> bool {
        let mut inner = self.0.lock();
        if inner.follows(events) {
            return false;
        }
        if let Some(first) = first.filter(|_| !events.is_empty() && inner.has_followers()) {
            inner.pass_over(first..=first + events.len() as u64 - 1);
        }
        true
    }

    pub fn keep(&self, first: u64, events: Vec<Event>) {
        let mut inner = self.0.lock();
        inner.kept.extend((first..).zip(events).map(|(number, event)| RingEntry::Event(number, Arc::new(event))));
        let excess = inner.kept.len().saturating_sub(EVENTS_MAX);
        inner.kept.drain(..excess);
    }

    /// What follows `after`, as far as it is here; none: ask the store.
    pub fn recent(&self, after: u64, namespace: Option<&Namespace>, limit: usize) -> Option<Recent> {
        let inner = self.0.lock();
        let (oldest, latest) = (inner.kept.front()?.first(), inner.kept.back()?.last());
        // Ahead of what was published: the store knows whether that number was ever given.
        if after > latest || after + 1 < oldest {
            return None;
        }
        let mut recent = Recent { events: Vec::new(), upto: after };
        let from = inner.kept.partition_point(|kept| kept.last() <= after);
        for kept in inner.kept.range(from..) {
            match kept {
                RingEntry::Event(number, event) => {
                    if namespace.is_none_or(|followed| *followed == event.namespace) {
                        recent.events.push((*number, event.clone()));
                    }
                }
                // Of one namespace, whose followers were there, none were passed over.
                RingEntry::Unheard(_) if namespace.is_some() => {}
                RingEntry::Unheard(_) if recent.upto == after => return None,
                RingEntry::Unheard(_) => break,
            }
            recent.upto = kept.last();
            if recent.events.len() == limit {
                break;
            }
        }
        Some(recent)
    }

    /// Whether what follows `after` was here and made room for newer events; then the number of the newest.
    pub fn has_left_behind(&self, after: u64) -> Option<u64> {
        let inner = self.0.lock();
        let (oldest, latest) = (inner.kept.front()?.first(), inner.kept.back()?.last());
        (after + 1 < oldest).then_some(latest)
    }
}

impl Inner {
    fn has_followers(&self) -> bool {
        self.of_all > 0 || !self.of_one.is_empty()
    }

    fn follows(&self, events: &[Event]) -> bool {
        let followed = |event: &Event| self.of_one.iter().any(|(namespace, _)| *namespace == event.namespace);
        !events.is_empty() && (self.of_all > 0 || events.iter().any(followed))
    }

    fn pass_over(&mut self, numbers: RangeInclusive<u64>) {
        if let Some(RingEntry::Unheard(before)) = self.kept.back_mut() {
            *before = *before.start()..=*numbers.end();
        } else {
            self.kept.push_back(RingEntry::Unheard(numbers));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{Timestamp, What};

    fn event(namespace: &str) -> Event {
        let what = What::RecordPut { kind: "k".into(), key: "k".into() };
        Event { namespace: Namespace::new(namespace).unwrap(), at: Timestamp(1), what }
    }

    /// Numbers that a reader gets after `after`, and up to where it then has read.
    fn read(ring: &Ring, after: u64, namespace: Option<&Namespace>) -> Option<(Vec<u64>, u64)> {
        let recent = ring.recent(after, namespace, 64)?;
        Some((recent.events.iter().map(|(number, _)| *number).collect(), recent.upto))
    }

    #[test]
    fn a_namespace_is_followed_past_what_others_do_unheard() {
        let (ring, ours) = (Ring::default(), Namespace::new("ours").unwrap());
        assert!(ring.passes_over(Some(1), &[event("ours")]), "nobody follows anything yet");
        ring.follow(Some(&ours));
        assert!(ring.passes_over(Some(2), &[event("theirs"), event("theirs")]));
        assert!(ring.passes_over(None, &[]), "a heartbeat tells nothing");
        assert!(!ring.passes_over(Some(4), &[event("theirs"), event("ours")]));
        ring.keep(4, vec![event("theirs"), event("ours")]);
        assert!(ring.passes_over(Some(6), &[event("theirs")]));
        assert_eq!(read(&ring, 1, Some(&ours)), Some((vec![5], 6)));
        assert_eq!(read(&ring, 6, Some(&ours)), Some((vec![], 6)));
        assert_eq!(read(&ring, 0, Some(&ours)), None, "that was before it was followed");
        assert_eq!(read(&ring, 7, Some(&ours)), None, "a number that was never given");
    }

    #[test]
    fn whoever_follows_everything_asks_the_store_for_what_was_passed_over() {
        let (ring, ours) = (Ring::default(), Namespace::new("ours").unwrap());
        ring.follow(Some(&ours));
        ring.keep(1, vec![event("ours")]);
        assert!(ring.passes_over(Some(2), &[event("theirs")]));
        ring.follow(None);
        assert!(!ring.passes_over(Some(3), &[event("theirs")]));
        ring.keep(3, vec![event("theirs")]);
        assert_eq!(read(&ring, 0, None), Some((vec![1], 1)));
        assert_eq!(read(&ring, 1, None), None);
        assert_eq!(read(&ring, 2, None), Some((vec![3], 3)));
    }

    #[test]
    fn what_was_passed_over_before_a_namespace_was_followed_is_not_taken_for_others() {
        let ring = Ring::default();
        let [first, second] = ["first", "second"].map(|name| Namespace::new(name).unwrap());
        ring.follow(Some(&first));
        assert!(ring.passes_over(Some(1), &[event("second")]));
        ring.follow(Some(&second));
        assert_eq!(read(&ring, 0, Some(&second)), None, "the store has it");
    }
}
