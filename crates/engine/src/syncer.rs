//! Answers that wait for the disk.
//!
//! Two classes of acknowledgement: what promises to outlive a power cut ([`Command::is_promise`]) is answered after the sync,
//! the rest after the write. Where a store syncs apart from its writes, the promises of a batch and its events wait here. On a
//! fast disk whoever wrote the batch syncs it, since handing it over would take longer; on a slow one a thread of its own
//! does, for all batches written meanwhile at once, and the next batch is written while it waits.
//!
//! [`Command::is_promise`]: windlass_core::Command::is_promise

use crate::{
    after::{After, Held},
    gather::{Gather, NAP},
    queue::Queue,
    store::{Store, StoreError},
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Batches that may wait. A disk that hangs must not fill the memory with what claims and heartbeats have to tell.
const LINE_MAX: usize = 1_024;

pub struct Syncer {
    store: Arc<dyn Store>,
    after: Arc<After>,
    line: Mutex<Line>,
    bell: Condvar,
    /// Rung when the thread has taken what waited.
    room: Condvar,
}

#[derive(Default)]
struct Line {
    batches: Vec<Held>,
    /// The thread is at the disk with batches it took.
    busy: bool,
    closed: bool,
    pace: Gather,
}

impl Line {
    fn callers(&self) -> usize {
        self.batches.iter().map(|held| held.answers.len()).sum()
    }
}

impl Syncer {
    pub fn new(store: Arc<dyn Store>, after: Arc<After>) -> Self {
        Self { store, after, line: Mutex::default(), bell: Condvar::new(), room: Condvar::new() }
    }

    /// Takes batches in the order in which they were written. Where that order counts, batches are run one by one.
    pub fn answer_once_synced(&self, held: Held) {
        let mut line = self.line.lock();
        if line.busy || !line.batches.is_empty() {
            // Behind those before it, so that events are told in order.
            line = self.wait_for_room(line);
            line.batches.push(held);
            self.bell.notify_one();
            return;
        }
        if !self.store.unsynced() {
            drop(line);
            return self.after.safe(held);
        }
        if held.answers.is_empty() && self.after.written_quietly(&held) {
            return;
        }
        if line.pace.is_fast() {
            drop(line);
            return self.sync(vec![held]);
        }
        line.batches.push(held);
        self.bell.notify_one();
    }

    fn wait_for_room<'a>(&self, mut line: MutexGuard<'a, Line>) -> MutexGuard<'a, Line> {
        self.room.wait_while(&mut line, |line| line.batches.len() >= LINE_MAX);
        line
    }

    /// Whether the thread is at the disk: what is written now waits for the next sync.
    pub fn is_syncing(&self) -> bool {
        self.line.lock().busy
    }

    fn sync(&self, batches: Vec<Held>) {
        let callers = batches.iter().map(|held| held.answers.len()).sum();
        let begun = Instant::now();
        let synced = self.store.sync();
        let took = begun.elapsed();
        self.line.lock().pace.learn(took, callers);
        self.after.tally.sync.observe(took);
        match synced {
            Ok(()) => batches.into_iter().for_each(|held| self.after.safe(held)),
            Err(error) => self.refuse(batches, &error),
        }
    }

    /// The thread for slow disks; without work it sleeps.
    pub fn spawn(self: Arc<Self>, queue: Arc<Queue>) -> std::io::Result<thread::JoinHandle<()>> {
        thread::Builder::new().name("windlass-sync".into()).spawn(move || self.work(&queue))
    }

    fn work(&self, queue: &Queue) {
        while self.wait_for_work() {
            self.gather();
            let batches = {
                let mut line = self.line.lock();
                line.busy = true;
                std::mem::take(&mut line.batches)
            };
            self.room.notify_all();
            self.sync(batches);
            self.line.lock().busy = false;
            queue.ring();
        }
    }

    fn wait_for_work(&self) -> bool {
        let mut line = self.line.lock();
        self.bell.wait_while(&mut line, |line| line.batches.is_empty() && !line.closed);
        !line.batches.is_empty()
    }

    fn gather(&self) {
        let begun = Instant::now();
        loop {
            let line = self.line.lock();
            let waits = line.pace.waits(line.callers(), begun.elapsed(), Duration::ZERO);
            drop(line);
            if !waits {
                return;
            }
            thread::sleep(NAP);
        }
    }

    /// Lets the thread end once nothing waits.
    pub fn close(&self) {
        self.line.lock().closed = true;
        self.bell.notify_one();
    }

    /// It is written, and perhaps lost: nobody is told that it was done, and the events are not told at all.
    fn refuse(&self, batches: Vec<Held>, error: &StoreError) {
        tracing::error!(%error, "written batches could not be synced");
        self.after.failed(error);
        for (reply, _) in batches.into_iter().flat_map(|held| held.answers) {
            drop(reply.send(Err(error.clone())));
        }
    }
}
