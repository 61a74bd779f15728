//! Moves the write-ahead log into the database beside the writer.
//!
//! Sixteen megabytes take tens of milliseconds to copy and sync, and meanwhile nobody could commit if the writer did it. So a
//! thread with a connection of its own copies what is there, and the writer only the few pages that came after it; then the
//! log can start over.

use super::failure::{Failure, Result};
use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, wal::CheckpointMode};
use std::{io, sync::Arc, thread};

pub(super) struct Checkpointer {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    step: Mutex<Step>,
    asked: Condvar,
}

#[derive(Default)]
enum Step {
    #[default]
    Idle,
    Asked,
    /// Pages that are in the database now.
    Done(Result<u32>),
    Over,
}

impl Checkpointer {
    pub(super) fn start(connection: Connection) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let work = shared.clone();
        let thread = thread::Builder::new().name("windlass-move".into()).spawn(move || work.run(&connection))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Asks for a copy, unless one is under way.
    pub(super) fn ask(&self) {
        let mut step = self.shared.step.lock();
        if matches!(*step, Step::Idle) {
            *step = Step::Asked;
            self.shared.asked.notify_one();
        }
    }

    /// What came of the copy that was asked for, told once: so many pages of the log are in the database.
    pub(super) fn done(&self) -> Option<Result<u32>> {
        let mut step = self.shared.step.lock();
        match std::mem::take(&mut *step) {
            Step::Done(result) => Some(result),
            other => {
                *step = other;
                None
            }
        }
    }

    /// Ends the thread, so that its connection is gone when the writer closes the log.
    pub(super) fn stop(&mut self) {
        *self.shared.step.lock() = Step::Over;
        self.shared.asked.notify_one();
        if let Some(thread) = self.thread.take() {
            // It cannot panic but by a bug, and there is nothing left to do about it here.
            _ = thread.join();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self, connection: &Connection) {
        while self.wait() {
            let moved = connection.wal_checkpoint_v2::<&str>(None, CheckpointMode::PASSIVE);
            let mut step = self.step.lock();
            if !matches!(*step, Step::Over) {
                *step = Step::Done(moved.map(|(_, moved)| moved.unsigned_abs()).map_err(Failure::from));
            }
        }
    }

    /// False: it is over.
    fn wait(&self) -> bool {
        let mut step = self.step.lock();
        while matches!(*step, Step::Idle | Step::Done(_)) {
            self.asked.wait(&mut step);
        }
        matches!(*step, Step::Asked)
    }
}
