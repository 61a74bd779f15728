//! Requests that make hundreds of jobs in one transaction, which nobody else can commit beside.
//!
//! They go one at a time, each namespace in its turn, and while others are at work a namespace rests after each for many
//! times as long as it took. Whoever has the server to himself does not wait at all.

use crate::{batcher::Queue, engine::Error};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Mutex as Turns, MutexGuard, OwnedMutexGuard},
    time::{Instant, sleep},
};
use windlass_core::{Command, Namespace};

/// Jobs that one command makes before it counts as heavy.
const JOBS: usize = 200;
/// Bytes that it brings before it does.
const BYTES: usize = 512 << 10;
/// How many times as long as it worked a namespace rests: a twentieth of the time is enough for it while others are there.
const REST: u32 = 19;
const REST_MAX: Duration = Duration::from_secs(30);
/// How often somebody who rests looks whether the others are gone.
const LOOK: Duration = Duration::from_millis(20);
/// Heavy requests of one namespace that may wait; one more is told to come back later.
const WAITING_MAX: usize = 8;
/// The same for all namespaces.
const ALL_WAITING_MAX: usize = 64;

/// The namespace of a heavy request.
pub fn of(commands: &[Command]) -> Option<&Namespace> {
    let [command] = commands else { return None };
    let jobs = command.jobs();
    let is_heavy = jobs > JOBS || jobs > 1 && command.weight() > BYTES;
    is_heavy.then(|| command.namespace()).flatten()
}

#[derive(Default)]
pub struct Heavy {
    /// One at a time; in here wait at most one of each namespace, so that they take turns.
    alone: Turns<()>,
    lines: Mutex<HashMap<Namespace, Line>>,
}

/// Taken by whoever's turn it is in its namespace.
type Rest = Arc<Turns<Option<Instant>>>;

/// Those of one namespace.
#[derive(Default)]
struct Line {
    /// Until when it rests.
    turn: Rest,
    waiting: usize,
}

/// The right to run one heavy request now.
pub struct Turn<'a> {
    began: Instant,
    rests_until: OwnedMutexGuard<Option<Instant>>,
    _alone: MutexGuard<'a, ()>,
    _place: Place<'a>,
}

impl Heavy {
    pub async fn turn<'a>(&'a self, queue: &Queue, namespace: &Namespace) -> Result<Turn<'a>, Error> {
        let (place, line) = self.line_up(namespace)?;
        let rests_until = line.lock_owned().await;
        if let Some(until) = *rests_until {
            rest(queue, until).await;
        }
        let alone = self.alone.lock().await;
        Ok(Turn { began: Instant::now(), rests_until, _alone: alone, _place: place })
    }

    fn line_up(&self, namespace: &Namespace) -> Result<(Place<'_>, Rest), Error> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| line.waiting > 0 || line.rests());
        let all: usize = lines.values().map(|line| line.waiting).sum();
        let line = lines.entry(namespace.clone()).or_default();
        if line.waiting == WAITING_MAX || all >= ALL_WAITING_MAX {
            return Err(Error::Overloaded);
        }
        line.waiting += 1;
        Ok((Place { heavy: self, namespace: namespace.clone() }, line.turn.clone()))
    }
}

impl Line {
    fn rests(&self) -> bool {
        self.turn.try_lock().is_ok_and(|until| until.is_some_and(|until| until > Instant::now()))
    }
}

async fn rest(queue: &Queue, until: Instant) {
    while Instant::now() < until && queue.is_shared() {
        sleep(LOOK).await;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        *self.rests_until = Some(now + ((now - self.began) * REST).min(REST_MAX));
    }
}

/// Given back also by callers that do not wait any longer.
struct Place<'a> {
    heavy: &'a Heavy,
    namespace: Namespace,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.heavy.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get_mut(&self.namespace) {
            line.waiting -= 1;
        }
    }
}
