//! Does what is due when it is due: expired leases, deadlines, silent workers, retries, schedules, retention.
//!
//! Asleep until the earliest due time it knows of; every commit that writes an earlier one wakes it. Each due row becomes
//! an ordinary command that looks again at the row itself, so several servers may sweep at once without harm.

use crate::{engine::Engine, error::Error, grace, store::Trim};
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::timeout;
use windlass_core::{Command, Timestamp, commands::due::Due, record::Kind, schedule::Schedule};

/// Rows handled in one transaction.
const PAGE: usize = 256;
const TRIM_EVERY: Duration = Duration::from_secs(600);

pub fn spawn(engine: &Engine) {
    let engine = engine.clone();
    tokio::spawn(async move {
        let every = engine.settings().sweep_every.unwrap_or(TRIM_EVERY);
        let mut trimmed = tokio::time::Instant::now();
        let mut quiet = Quiet { looks: 0, batches: 0 };
        loop {
            let pause = match tick(&engine).await {
                Ok((done, next)) => {
                    let every = quiet.stretch(every, done, engine.counts().batches);
                    next.map_or(every, |next| next.min(every))
                }
                Err(error) => {
                    tracing::warn!(%error, "the sweep failed, retrying");
                    Duration::from_secs(1).min(every)
                }
            };
            let alarm = &engine.inner().after.alarm;
            drop(timeout(pause, alarm.bell.notified()).await);
            if alarm.stopped.load(Ordering::Acquire) {
                return;
            }
            if trimmed.elapsed() >= TRIM_EVERY && alarm.dirty.swap(false, Ordering::Relaxed) {
                trimmed = tokio::time::Instant::now();
                trim(&engine).await;
            }
        }
    });
}

/// How long nothing has happened. Only work of other servers that went away is found by looking, so that while there is
/// none of our own either, looking less often is soon enough and lets an idle machine sleep.
struct Quiet {
    looks: u32,
    batches: u64,
}

impl Quiet {
    fn stretch(&mut self, every: Duration, done: usize, batches: u64) -> Duration {
        let moved = done > 0 || batches != self.batches;
        self.looks = if moved { 0 } else { self.looks + 1 };
        self.batches = batches;
        // Never longer than a minute that was not asked for.
        (every * (1 << self.looks.min(3))).min(every.max(Duration::from_secs(60)))
    }
}

impl Engine {
    /// Does everything that is due now. The sweeper calls this; so do tests that move the clock themselves.
    pub async fn tick(&self) -> Result<usize, Error> {
        tick(self).await.map(|(done, _)| done)
    }
}

/// Everything due now; how many rows that were, and how long until the next.
pub async fn tick(engine: &Engine) -> Result<(usize, Option<Duration>), Error> {
    let mut done = 0;
    loop {
        let page = match engine.store().due(PAGE).await {
            Ok(page) => page,
            Err(error) => {
                engine.inner().after.alarm.store_is_away();
                return Err(error.into());
            }
        };
        if let Some(since) = engine.inner().after.alarm.store_is_back(page.now) {
            tracing::warn!("the store was away: nobody's silence meanwhile is held against them");
            engine.grant_grace().await?;
            grace::excuse_workers(engine, Some(since)).await?;
            continue;
        }
        if page.steps > engine.inner().after.alarm.steps_seen.load(Ordering::Acquire) {
            tracing::warn!("the clock had to be set forward: every lease gets its full length again");
            engine.grant_grace().await?;
            grace::excuse_workers(engine, None).await?;
            engine.inner().after.alarm.steps_seen.store(page.steps, Ordering::Release);
            continue;
        }
        // Set before the rows are worked on, so that what they make due in turn rings the bell.
        let next = page.next.map_or(i64::MAX, |next| next.0);
        engine.inner().after.alarm.set_for.store(next, Ordering::Release);
        if page.due.is_empty() {
            let until = page.next.map(|next| Duration::from_millis((next - page.now).0.max(1) as u64));
            return Ok((done, until));
        }
        done += page.due.len();
        let mut commands = Vec::with_capacity(page.due.len());
        for due in page.due {
            commands.push(Command::Due(if_room(engine, due).await));
        }
        engine.run_many(commands).await?;
    }
}

/// A schedule makes jobs, for which there may be no room.
async fn if_room(engine: &Engine, due: Due) -> Due {
    match due {
        Due::Record(key) if *key.kind == *Schedule::KIND && engine.has_no_room(&key.namespace).await => Due::Later(key),
        due => due,
    }
}

async fn trim(engine: &Engine) {
    let kept = engine.settings().events_kept;
    loop {
        let now = match engine.store().due(1).await {
            Ok(page) => page.now,
            Err(_) => return,
        };
        let before = Timestamp(now.0.saturating_sub(kept.0));
        match engine.store().trim(Trim { events_before: before, limit: 10_000 }).await {
            Ok(gone) if gone >= 10_000 => continue,
            Ok(_) => return,
            Err(error) => return tracing::warn!(%error, "old events could not be removed, retrying"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_rare_only_while_nothing_happens() {
        let mut quiet = Quiet { looks: 0, batches: 0 };
        let second = Duration::from_secs(1);
        let mut look = |done, batches| quiet.stretch(second, done, batches).as_secs();
        assert_eq!([look(0, 5), look(0, 5), look(0, 5), look(0, 5), look(0, 5)], [1, 2, 4, 8, 8]);
        assert_eq!(look(1, 5), 1, "something was due");
        assert_eq!([look(0, 5), look(0, 6)], [2, 1], "something was committed");
        assert_eq!(quiet.stretch(Duration::from_secs(600), 0, 6).as_secs(), 600);
    }
}
