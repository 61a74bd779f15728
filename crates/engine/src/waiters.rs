//! Claimers that wait for work.
//!
//! A claimer registers before it looks, so no wake-up falls between looking and waiting. One new job wakes one waiter,
//! the one that has waited longest among those it fits. A waiter that was woken and then went away passes the wake-up
//! on, so no job is left lying because a connection broke.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;
use windlass_core::{HeadQuery, Namespace, Tags, Wake, stage};

#[derive(Default)]
pub struct Waiters {
    groups: Mutex<Groups>,
}

#[derive(Default)]
struct Groups {
    next_id: u64,
    /// Waiters that offer the same stand in one line.
    lines: HashMap<HeadQuery, BTreeMap<u64, Arc<Slot>>>,
}

struct Slot {
    bell: Notify,
    /// The wake-up this waiter was given and has not used.
    wake: Mutex<Option<Wake>>,
    woken: AtomicBool,
}

/// A place in line, given up when dropped.
pub struct Waiter {
    waiters: Arc<Waiters>,
    query: HeadQuery,
    id: u64,
    slot: Arc<Slot>,
}

impl Waiters {
    pub fn register(self: &Arc<Self>, query: HeadQuery) -> Waiter {
        let slot = Arc::new(Slot { bell: Notify::new(), wake: Mutex::new(None), woken: AtomicBool::new(false) });
        let mut groups = self.lock();
        groups.next_id += 1;
        let id = groups.next_id;
        groups.lines.entry(query.clone()).or_default().insert(id, slot.clone());
        Waiter { waiters: self.clone(), query, id, slot }
    }

    /// Wakes one waiter for each job.
    pub fn wake(&self, wakes: &[Wake]) {
        if wakes.is_empty() {
            return;
        }
        let mut groups = self.lock();
        for wake in wakes {
            if groups.lines.is_empty() {
                return;
            }
            groups.wake_one(wake);
        }
    }

    /// Wakes everyone: something happened elsewhere and nobody said what.
    pub fn wake_all(&self) {
        for line in self.lock().lines.values() {
            line.values().for_each(|slot| slot.bell.notify_one());
        }
    }

    pub fn len(&self, namespace: &Namespace) -> usize {
        let groups = self.lock();
        groups.lines.iter().filter(|(query, _)| query.namespace == *namespace).map(|(_, line)| line.len()).sum()
    }

    /// Those that could take a job with these tags.
    pub fn fitting(&self, namespace: &Namespace, tags: &Tags) -> usize {
        let groups = self.lock();
        let fits = |query: &HeadQuery| query.namespace == *namespace && tags.subset_of(&query.offered);
        groups.lines.iter().filter(|(query, _)| fits(query)).map(|(_, line)| line.len()).sum()
    }

    /// Claimers; planners are none.
    pub fn total(&self) -> usize {
        let planners = stage::home();
        let groups = self.lock();
        groups.lines.iter().filter(|(query, _)| query.namespace != planners).map(|(_, line)| line.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Groups {
    fn wake_one(&mut self, wake: &Wake) {
        let fits = |query: &HeadQuery| query.namespace == wake.namespace && wake.tags.subset_of(&query.offered);
        let lines = self.lines.iter().filter(|(query, _)| fits(query));
        let first = lines.filter_map(|(query, line)| Some((*line.keys().next()?, query.clone()))).min();
        let Some((id, query)) = first else { return };
        if let Some(slot) = self.leave(&query, id) {
            *slot.wake.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(wake.clone());
            slot.woken.store(true, Ordering::Release);
            slot.bell.notify_one();
        }
    }

    fn leave(&mut self, query: &HeadQuery, id: u64) -> Option<Arc<Slot>> {
        let line = self.lines.get_mut(query)?;
        let slot = line.remove(&id);
        if line.is_empty() {
            self.lines.remove(query);
        }
        slot
    }
}

impl Waiter {
    /// Returns when there is something to look for.
    pub async fn woken(&self) {
        self.slot.bell.notified().await;
    }

    /// The claim that the wake-up led to was answered, so it need not be passed on.
    pub fn used(self) {
        self.slot.wake.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut groups = self.waiters.lock();
        groups.leave(&self.query, self.id);
        let unused = self.slot.wake.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if let Some(wake) = unused {
            groups.wake_one(&wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::Lane;

    fn query(tags: &[&str]) -> HeadQuery {
        HeadQuery { namespace: Namespace::default(), offered: tags.iter().copied().collect() }
    }

    fn wake(tags: &[&str]) -> Wake {
        let tags: Tags = tags.iter().copied().collect();
        Wake { namespace: Namespace::default(), lane: Lane::of(&Namespace::default(), &tags), tags }
    }

    fn was_woken(waiter: &Waiter) -> bool {
        waiter.slot.woken.load(Ordering::Acquire)
    }

    #[test]
    fn one_job_wakes_the_longest_waiting_that_fits() {
        let waiters = Arc::new(Waiters::default());
        let plain = waiters.register(query(&[]));
        let gpu = waiters.register(query(&["gpu"]));
        let late = waiters.register(query(&["gpu"]));
        waiters.wake(&[wake(&["gpu"])]);
        assert_eq!([&plain, &gpu, &late].map(was_woken), [false, true, false]);
        waiters.wake(&[wake(&[])]);
        assert_eq!([&plain, &gpu, &late].map(was_woken), [true, true, false]);
    }

    #[test]
    fn a_waiter_that_has_gone_passes_its_wake_up_on() {
        let waiters = Arc::new(Waiters::default());
        let first = waiters.register(query(&[]));
        let second = waiters.register(query(&["gpu"]));
        waiters.wake(&[wake(&[])]);
        assert!(was_woken(&first) && !was_woken(&second));
        drop(first);
        assert!(was_woken(&second));
    }

    #[tokio::test]
    async fn a_wake_up_between_registering_and_waiting_is_kept() {
        let waiters = Arc::new(Waiters::default());
        let waiter = waiters.register(query(&[]));
        waiters.wake(&[wake(&[])]);
        waiter.woken().await;
        waiter.used();
        assert_eq!(waiters.len(&Namespace::default()), 0);
    }

    #[tokio::test]
    async fn a_used_wake_up_is_not_passed_on() {
        let waiters = Arc::new(Waiters::default());
        let first = waiters.register(query(&[]));
        let second = waiters.register(query(&[]));
        waiters.wake(&[wake(&[])]);
        first.woken().await;
        first.used();
        assert!(!was_woken(&second));
    }
}
