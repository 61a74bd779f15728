//! Claimers that wait for work.
//!
//! A claimer registers before it looks, so no wake-up falls between looking and waiting. One new job wakes one waiter,
//! the one that has waited longest among those it fits. A waiter that was woken and then went away passes the wake-up
//! on, so no job is left lying because a connection broke.
//!
//! Who has looked and found nothing leaves its claim with its place in line. A batch that makes a job ready takes the claim
//! along (`joining.rs`), which is the same turn without a second transaction.

use crate::{intake::By, request::Replies};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{Notify, oneshot};
use windlass_core::{HeadQuery, Job, Namespace, Refusal, Tags, Wake, commands::claim::Claim, stage};

#[derive(Default)]
pub struct Waiters {
    groups: Mutex<Groups>,
}

#[derive(Default)]
struct Groups {
    next_id: u64,
    spaces: HashMap<Namespace, Lines>,
}

/// Waiters of one namespace that offer the same stand in one line.
type Lines = HashMap<Tags, Line>;
type Line = BTreeMap<u64, Arc<Slot>>;

#[derive(Default)]
struct Slot {
    bell: Notify,
    /// The wake-up this waiter was given and has not used.
    wake: Mutex<Option<Wake>>,
    woken: AtomicBool,
    /// Its claim, while a batch may take it along.
    parked: Mutex<Option<Parked>>,
    gone: AtomicBool,
}

/// A claim that a batch may take along, and the way of its answer. No replies at all: nothing was found, go on waiting.
pub struct Parked {
    pub claim: Claim,
    pub by: By,
    pub reply: oneshot::Sender<Replies>,
}

/// A claim that was taken along, with its place in line.
pub struct TakenAlong {
    pub query: HeadQuery,
    pub parked: Parked,
    /// Who waits longer has a lower one.
    pub id: u64,
    slot: Arc<Slot>,
}

/// A place in line, given up when dropped.
pub struct Waiter {
    waiters: Arc<Waiters>,
    query: HeadQuery,
    id: u64,
    slot: Arc<Slot>,
}

impl Waiters {
    /// A place in line, if the namespace has at most so many lines then: each is looked at for each of its jobs.
    pub fn register(self: &Arc<Self>, query: HeadQuery, lines_max: usize) -> Result<Waiter, Refusal> {
        let slot = Arc::<Slot>::default();
        let mut groups = self.lock();
        groups.next_id += 1;
        let id = groups.next_id;
        let lines = groups.spaces.entry(query.namespace.clone()).or_default();
        if lines.len() >= lines_max && !lines.contains_key(&query.offered) {
            let (what, setting) = ("sets of tags that workers wait with", "offers_per_namespace_max");
            let namespace = query.namespace.to_string();
            return Err(Refusal::TooMany { what, namespace, max: lines_max, setting });
        }
        lines.entry(query.offered.clone()).or_default().insert(id, slot.clone());
        Ok(Waiter { waiters: self.clone(), query, id, slot })
    }

    /// Wakes one waiter for each job.
    pub fn wake(&self, wakes: &[Wake]) {
        if wakes.is_empty() {
            return;
        }
        let mut groups = self.lock();
        for wake in wakes {
            if groups.spaces.is_empty() {
                return;
            }
            groups.wake_one(wake);
        }
    }

    /// Nobody at all: the usual case of a busy server.
    pub fn is_empty(&self) -> bool {
        self.lock().spaces.is_empty()
    }

    /// The claim of whoever would be woken by this job, if it has waited longer than `before`. None also where that one is about to
    /// look by itself.
    pub fn take(&self, job: &Job, before: u64) -> Option<TakenAlong> {
        let mut groups = self.lock();
        let (query, id) = groups.first_fitting(&job.key.namespace, &job.spec.tags).filter(|(_, id)| *id < before)?;
        let slot = groups.spaces.get(&query.namespace)?.get(&query.offered)?.get(&id)?.clone();
        // A caller that has gone takes no job; its place is given up in a moment.
        let parked = slot.parked.lock().take_if(|parked| !parked.reply.is_closed())?;
        groups.leave(&query, id);
        Some(TakenAlong { query, parked, id, slot })
    }

    /// It found nothing: it stands where it stood, unless its caller has gone, and hears that it has to leave its claim again.
    pub fn put_back(&self, taken: TakenAlong) {
        let TakenAlong { query, parked, id, slot } = taken;
        let mut groups = self.lock();
        if !slot.gone.load(Ordering::Acquire) {
            groups.spaces.entry(query.namespace).or_default().entry(query.offered).or_default().insert(id, slot);
        }
        drop(groups);
        drop(parked.reply.send(Ok(Vec::new())));
    }

    /// Wakes everyone: something happened elsewhere and nobody said what.
    pub fn wake_all(&self) {
        for line in self.lock().spaces.values().flat_map(HashMap::values) {
            line.values().for_each(|slot| slot.bell.notify_one());
        }
    }

    pub fn len(&self, namespace: &Namespace) -> usize {
        self.lock().spaces.get(namespace).map_or(0, |lines| lines.values().map(BTreeMap::len).sum())
    }

    /// Those that could take a job with these tags.
    pub fn fitting(&self, namespace: &Namespace, tags: &Tags) -> usize {
        let groups = self.lock();
        let lines = groups.spaces.get(namespace).into_iter().flatten();
        lines.filter(|(offered, _)| tags.subset_of(offered)).map(|(_, line)| line.len()).sum()
    }

    /// Claimers; planners are none.
    pub fn total(&self) -> usize {
        let planners = stage::system_namespace();
        let groups = self.lock();
        let claimers = groups.spaces.iter().filter(|(namespace, _)| **namespace != planners);
        claimers.flat_map(|(_, lines)| lines.values()).map(BTreeMap::len).sum()
    }

    #[cfg(feature = "testing")]
    pub fn parked(&self) -> usize {
        let groups = self.lock();
        let slots = groups.spaces.values().flat_map(HashMap::values).flat_map(BTreeMap::values);
        slots.filter(|slot| slot.parked.lock().is_some()).count()
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock()
    }
}

impl Groups {
    /// Who has waited longest for a job with these tags.
    fn first_fitting(&self, namespace: &Namespace, tags: &Tags) -> Option<(HeadQuery, u64)> {
        let fitting = self.spaces.get(namespace)?.iter().filter(|(offered, _)| tags.subset_of(offered));
        let first = fitting.filter_map(|(offered, line)| Some((*line.keys().next()?, offered))).min();
        let (id, offered) = first?;
        Some((HeadQuery { namespace: namespace.clone(), offered: offered.clone() }, id))
    }

    fn wake_one(&mut self, wake: &Wake) {
        let Some((query, id)) = self.first_fitting(&wake.namespace, &wake.tags) else { return };
        if let Some(slot) = self.leave(&query, id) {
            *slot.wake.lock() = Some(wake.clone());
            slot.woken.store(true, Ordering::Release);
            slot.bell.notify_one();
        }
    }

    fn leave(&mut self, query: &HeadQuery, id: u64) -> Option<Arc<Slot>> {
        let lines = self.spaces.get_mut(&query.namespace)?;
        let line = lines.get_mut(&query.offered)?;
        let slot = line.remove(&id);
        if line.is_empty() {
            lines.remove(&query.offered);
        }
        if lines.is_empty() {
            self.spaces.remove(&query.namespace);
        }
        slot
    }
}

impl Waiter {
    /// Returns when there is something to look for.
    pub async fn woken(&self) {
        self.slot.bell.notified().await;
    }

    /// Leaves the claim for a batch that makes a job ready.
    pub fn park(&self, parked: Parked) {
        *self.slot.parked.lock() = Some(parked);
    }

    /// False: a batch has taken the claim along and will answer it.
    pub fn unpark(&self) -> bool {
        self.slot.parked.lock().take().is_some()
    }

    /// The claim that the wake-up led to was answered, so it need not be passed on.
    pub fn used(self) {
        self.slot.wake.lock().take();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut groups = self.waiters.lock();
        self.slot.gone.store(true, Ordering::Release);
        groups.leave(&self.query, self.id);
        let unused = self.slot.wake.lock().take();
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
        let plain = waiters.register(query(&[]), 9).unwrap();
        let gpu = waiters.register(query(&["gpu"]), 9).unwrap();
        let late = waiters.register(query(&["gpu"]), 9).unwrap();
        waiters.wake(&[wake(&["gpu"])]);
        assert_eq!([&plain, &gpu, &late].map(was_woken), [false, true, false]);
        waiters.wake(&[wake(&[])]);
        assert_eq!([&plain, &gpu, &late].map(was_woken), [true, true, false]);
    }

    #[test]
    fn a_waiter_that_has_gone_passes_its_wake_up_on() {
        let waiters = Arc::new(Waiters::default());
        let first = waiters.register(query(&[]), 9).unwrap();
        let second = waiters.register(query(&["gpu"]), 9).unwrap();
        waiters.wake(&[wake(&[])]);
        assert!(was_woken(&first) && !was_woken(&second));
        drop(first);
        assert!(was_woken(&second));
    }

    #[tokio::test]
    async fn a_wake_up_between_registering_and_waiting_is_kept() {
        let waiters = Arc::new(Waiters::default());
        let waiter = waiters.register(query(&[]), 9).unwrap();
        waiters.wake(&[wake(&[])]);
        waiter.woken().await;
        waiter.used();
        assert_eq!(waiters.len(&Namespace::default()), 0);
    }

    #[tokio::test]
    async fn a_used_wake_up_is_not_passed_on() {
        let waiters = Arc::new(Waiters::default());
        let first = waiters.register(query(&[]), 9).unwrap();
        let second = waiters.register(query(&[]), 9).unwrap();
        waiters.wake(&[wake(&[])]);
        first.woken().await;
        first.used();
        assert!(!was_woken(&second));
    }

    #[test]
    fn a_namespace_waits_with_so_many_sets_of_tags_and_no_more() {
        let waiters = Arc::new(Waiters::default());
        let first = waiters.register(query(&["a"]), 2).unwrap();
        let _second = waiters.register(query(&["b"]), 2).unwrap();
        assert!(waiters.register(query(&["a"]), 2).is_ok(), "those who offer the same stand in one line");
        let refused = waiters.register(query(&["c"]), 2).err().unwrap().to_string();
        assert!(refused.contains("offers_per_namespace_max") && refused.contains('2'), "{refused}");
        let other = HeadQuery { namespace: Namespace::new("other").unwrap(), offered: Tags::default() };
        assert!(waiters.register(other, 2).is_ok(), "each namespace has its own");
        drop(first);
        assert!(waiters.register(query(&["c"]), 2).is_ok());
    }
}
