//! What follows from a commit: those who look for work, those who wait for an end, those who follow events, the sweeper, and
//! the counts. The batcher and the syncer are handed this one value and know nobody behind it.

use crate::{
    alarm::Alarm,
    bulletin::Bulletin,
    feed::Feed,
    history::History,
    notices::Notices,
    request::Replies,
    reserve::Reserve,
    store::{Committed, StoreError},
    tally::Tally,
    waiters::Waiters,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::{oneshot, watch};
use windlass_core::{Event, JobKey, WorkerKey};

/// What the engine has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions committed.
    pub batches: u64,
    /// Commands in them, refused ones included.
    pub commands: u64,
    /// Bytes of log they brought, those over a job's cap included.
    pub log_bytes: u64,
    /// Claimers that wait for work now, in all namespaces.
    pub waiting: usize,
    /// Readers of the event feed now.
    pub readers: usize,
}

/// What a written batch still has to say.
#[derive(Default)]
pub struct Held {
    pub answers: Vec<(oneshot::Sender<Replies>, Replies)>,
    pub first_event: Option<u64>,
    pub events: Vec<Event>,
    pub logged: Vec<JobKey>,
}

pub struct After {
    pub waiters: Arc<Waiters>,
    pub bulletin: Arc<Bulletin>,
    pub notices: Arc<Notices>,
    pub feed: Arc<Feed>,
    pub alarm: Alarm,
    pub tally: Tally,
    pub history: History,
    batches: AtomicU64,
    commands: AtomicU64,
    log_bytes: AtomicU64,
    /// Counts batches that found the store damaged.
    pub damage: watch::Sender<u64>,
    /// The last batch that had something to write found no room for it.
    full: AtomicBool,
    pub reserve: Reserve,
}

impl After {
    pub fn new(poll_every: Option<Duration>) -> Self {
        Self {
            waiters: Arc::default(),
            bulletin: Arc::default(),
            notices: Arc::default(),
            feed: Arc::new(Feed::new(poll_every)),
            alarm: Alarm::default(),
            tally: Tally::default(),
            history: History::default(),
            batches: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            log_bytes: AtomicU64::new(0),
            damage: watch::Sender::new(0),
            full: AtomicBool::new(false),
            reserve: Reserve::default(),
        }
    }

    /// What follows from a batch as soon as it is written: only those who look for work, and the sweeper, may know.
    pub fn written(&self, committed: &Committed, commands: usize, log_bytes: usize, events: bool) {
        self.batches.fetch_add(1, Relaxed);
        self.commands.fetch_add(commands as u64, Relaxed);
        self.log_bytes.fetch_add(log_bytes as u64, Relaxed);
        // A batch without events may have had nothing to write.
        if events && self.full.load(Relaxed) {
            self.full.store(false, Relaxed);
        }
        self.waiters.wake(&committed.wakes);
        self.notices.post(committed.notices.iter().map(WorkerKey::hint));
        self.alarm.hear_of(committed.next_due);
        self.alarm.wrote(events);
    }

    /// What follows once it is safe.
    pub fn safe(&self, held: Held) {
        for (reply, answer) in held.answers {
            // Promises are kept whether or not somebody still listens.
            drop(reply.send(answer));
        }
        self.bulletin.post(&held.events, &held.logged);
        self.feed.publish(held.first_event, held.events);
    }

    /// For a batch that nobody waits for the disk with. True: nobody follows its events either, so that is all. Whoever comes
    /// later asks the store, which then syncs.
    pub fn written_quietly(&self, held: &Held) -> bool {
        let quiet = self.feed.passes_over(held.first_event, &held.events);
        if quiet {
            self.bulletin.post(&held.events, &held.logged);
        }
        quiet
    }

    pub fn failed(&self, error: &StoreError) {
        match error {
            StoreError::Corrupt(_) => self.damage.send_modify(|count| *count += 1),
            StoreError::Full(_) => {
                self.full.store(true, Relaxed);
                self.reserve.found_full();
            }
            // Somebody may have tried to renew: the next sweep finds out for how long, whether or not it was awake meanwhile.
            StoreError::Unavailable(_) => self.alarm.store_is_away(),
            StoreError::Conflict(_) => {}
        }
    }

    pub fn is_full(&self) -> bool {
        self.full.load(Relaxed)
    }

    pub fn counts(&self) -> Counts {
        Counts {
            batches: self.batches.load(Relaxed),
            commands: self.commands.load(Relaxed),
            log_bytes: self.log_bytes.load(Relaxed),
            waiting: self.waiters.total(),
            readers: self.feed.readers(),
        }
    }
}
