//! One batch, one transaction: two round trips where nothing surprising happens.
//!
//! The first sends BEGIN with everything the commands are known to need; the last sends all writes with the COMMIT behind
//! them. What can be decided without a look takes only one (`at_once`). A batch that met somebody else's writes is decided
//! again, and after two tries in halves, so that one contended command does not hold its neighbours up. A connection that is
//! lost at the COMMIT leaves the outcome open; it is found out by a fence, never guessed.

use super::{
    Inner,
    connection::Lent,
    failure::Failure,
    load::Loader,
    pipe::{Sent, send},
    spot::Spots,
    statements::Sql,
    write::{self, Writes},
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_core::{Decision, Head, JobChange, JobKey, Step, Timestamp};
use windlass_engine::{
    StoreError,
    store::{Batch, Committed},
};

/// Tries of one command alone, before its caller is told to try again.
const TRIES_MAX: u32 = 12;
/// Tries before a batch is halved.
const TRIES_WHOLE: u32 = 2;
/// Batches that look first whether ids are taken, after one was.
pub const WARY_FOR: u32 = 64;
pub const NO_ANSWER: &str = "no answer within the time allowed";

pub enum Ended {
    Committed(Committed),
    /// The COMMIT was sent, but nobody heard what became of it.
    Unknown {
        batch: Uuid,
        told: Committed,
        why: String,
    },
}

impl Inner {
    /// Runs the commands, all in one transaction if that is possible.
    pub async fn run_batch(&self, batch: &Batch) -> Result<Committed, StoreError> {
        let deadline = Instant::now() + self.patience * 2;
        let mut tries = 0;
        loop {
            tries += 1;
            let taken = self.writers.take().await?;
            if taken.fresh {
                self.lanes.doubt();
            }
            let wary = tries > 1 || self.is_wary();
            let failure = match self.attempt(taken, batch, wary, tries == 1).await {
                Ok(Ended::Committed(told)) => return Ok(self.after_commit(told)),
                Ok(Ended::Unknown { batch: id, told, why }) => {
                    tracing::warn!(batch = %id, why, "the connection was lost while committing");
                    self.writers.forget_idle();
                    if self.was_committed(id).await? {
                        return Ok(self.after_commit(told));
                    }
                    Failure::Lost(why)
                }
                Err(failure) => failure,
            };
            match failure {
                Failure::Conflict(why) if tries > TRIES_WHOLE && batch.items.len() > 1 => {
                    tracing::debug!(why, count = batch.items.len(), "halving a batch that keeps meeting other writes");
                    return self.run_halves(batch).await;
                }
                Failure::Conflict(why) if tries >= TRIES_MAX => return Err(StoreError::Conflict(why)),
                // Most likely an id that was taken as free; looking helps at once.
                Failure::Conflict(_) if !wary => self.wary_for.store(WARY_FOR, Ordering::Relaxed),
                Failure::Conflict(_) => tokio::time::sleep(self.pause(tries)).await,
                Failure::Clock if tries < TRIES_MAX => self.set_clock().await?,
                Failure::Clock => return Err(failure.into_store_error()),
                Failure::Lost(why) if Instant::now() >= deadline => return Err(StoreError::Unavailable(why)),
                Failure::Lost(_) => {
                    self.writers.forget_idle();
                    tokio::time::sleep(self.pause(tries)).await;
                }
                Failure::Refused(error) => return Err(error),
            }
        }
    }

    /// Waiting claims do not go along with a part: they find what it made when they are woken.
    async fn run_halves(&self, batch: &Batch) -> Result<Committed, StoreError> {
        let (first, second) = batch.items.split_at(batch.items.len() / 2);
        let [first, second] = [first, second].map(|items| Batch::new(items.to_vec(), batch.limits));
        let first = Box::pin(self.run_batch(&first)).await?;
        let second = Box::pin(self.run_batch(&second)).await.map_err(|error| {
            // The first half is written, so nobody may be told that nothing is.
            StoreError::Unavailable(format!("a part of the batch was written, the rest failed: {error}"))
        })?;
        Ok(join(first, second))
    }

    /// Grows with the tries, and differs between servers and batches.
    fn pause(&self, tries: u32) -> Duration {
        let spread = u64::from(Uuid::new_v4().as_bytes()[0]);
        Duration::from_micros((u64::from(tries.min(8)) * 500) + spread * 8 * u64::from(tries.min(8)))
    }

    /// Whether this batch looks if the ids of new jobs are taken: for a while after some were.
    fn is_wary(&self) -> bool {
        let count_down = |left: u32| left.checked_sub(1);
        self.wary_for.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count_down).is_ok()
    }

    async fn attempt(&self, taken: Lent, batch: &Batch, wary: bool, first: bool) -> Result<Ended, Failure> {
        let foreseen = if first { self.foresee(batch, wary) } else { None };
        let result = match foreseen {
            Some(foreseen) => match self.write_at_once(&taken, foreseen).await {
                Ok(None) => self.transact(&taken, batch, true).await,
                Ok(Some(ended)) => Ok(ended),
                Err(failure) => Err(failure),
            },
            None => self.transact(&taken, batch, wary).await,
        };
        match &result {
            Ok(Ended::Committed(_)) => taken.give_back(),
            // The connection itself is sound; once it has rolled back it is as good as new.
            Err(Failure::Conflict(_) | Failure::Clock | Failure::Refused(_)) => {
                let rolled_back = tokio::time::timeout(self.patience, taken.batch("ROLLBACK")).await;
                if rolled_back.is_ok_and(|answer| answer.is_ok()) {
                    taken.give_back();
                }
            }
            Ok(Ended::Unknown { .. }) | Err(Failure::Lost(_)) => drop(taken),
        }
        result
    }

    async fn transact(&self, connection: &Lent, batch: &Batch, wary: bool) -> Result<Ended, Failure> {
        let begun = Instant::now();
        let (facets, spots, assumed_new) = (HashMap::new(), Spots::default(), BTreeSet::new());
        let Inner { lanes, known, ahead, flights, .. } = self;
        let mut loader =
            Loader { connection, lanes, known, ahead, next: None, facets, spots, wary, assumed_new, flights };
        let decided = tokio::time::timeout(self.attempt_max, self.decide(&mut loader, batch)).await;
        let (decision, now) = decided.unwrap_or_else(|_| Err(Failure::Lost(NO_ANSWER.into())))?;
        check_assumed(&decision, &loader.assumed_new)?;
        self.write(connection, decision, loader, now, begun).await
    }

    async fn decide(&self, loader: &mut Loader<'_>, batch: &Batch) -> Result<(Decision, Timestamp), Failure> {
        let connection = loader.connection;
        // What the commands need is known before the time is, so that both can be asked for together.
        let keys = batch.decider(Timestamp(0), 0).first_keys();
        let promises = batch.items.iter().any(|item| item.command.is_promise());
        let sent = self.monotonic();
        let begin = send(connection.begin(promises));
        let clock = send(connection.query(Sql::NowAndPlace, &[]));
        let rows = send(loader.load(&keys));
        begin.await?;
        let clock = clock.await?;
        let clock = clock.first().ok_or_else(|| Failure::corrupt("the database does not tell the time"))?;
        let now = self.now(Timestamp(clock.try_get(0)?), sent)?;
        let mut decider = batch.decider(now, clock.try_get(1)?);
        decider.first_keys();
        let mut rows = rows.await?;
        loop {
            match decider.step(rows) {
                Step::Need(more) => rows = loader.load(&more).await?,
                Step::Done(decision) => return Ok((decision, now)),
            }
        }
    }

    async fn write(
        &self,
        connection: &Lent,
        mut decision: Decision,
        loader: Loader<'_>,
        now: Timestamp,
        begun: Instant,
    ) -> Result<Ended, Failure> {
        if decision.writes_nothing() {
            connection.batch("ROLLBACK").await?;
            return Ok(Ended::Committed(told(&mut decision, now, Duration::ZERO)));
        }
        let batch = Uuid::new_v4();
        self.flights.fetch_add(1, Ordering::Relaxed);
        let mut writes = Writes::of(&decision, &loader.facets, &loader.spots, &self.lanes);
        write::tell(&mut writes, &decision, now.0, batch);
        let mut sent: Vec<_> = writes.into_iter().map(|write| write.send(connection)).collect();
        let unsent = sent.iter().position(|sent| sent.failed_at_once());
        if let Some(at) = unsent {
            // Something never left, so the COMMIT must not either.
            return Err(sent.swap_remove(at).await.err().unwrap_or_else(|| Failure::Lost("not sent".into())));
        }
        sent.push(send(async { connection.batch("COMMIT").await.map(|()| 0) }));
        self.marks.count(&decision);
        let committed = tokio::time::timeout(self.attempt_max, all(sent)).await;
        // All of it, not only the COMMIT: most of what a transaction costs is the same for two jobs or for twenty.
        let told = told(&mut decision, now, begun.elapsed());
        match committed.unwrap_or_else(|_| Err(Failure::Lost(NO_ANSWER.into()))) {
            Ok(()) => {
                if let Some((query, heads)) = loader.next {
                    self.ahead.learn(&query, untaken(heads, &decision), decision.jobs.len());
                }
                self.known.learn(&mut decision);
                Ok(Ended::Committed(told))
            }
            Err(Failure::Lost(why)) => Ok(Ended::Unknown { batch, told, why }),
            // The transaction has failed, and the COMMIT with it.
            Err(failure) => Err(failure),
        }
    }

    fn after_commit(&self, told: Committed) -> Committed {
        if !told.wakes.is_empty() {
            let lanes = told.wakes.iter().map(|wake| (wake.namespace.clone(), wake.lane, wake.tags.clone()));
            self.lanes.confirmed(lanes);
            self.lanes.saw_work(&told.wakes);
        }
        if let Some(bell) = &self.doorbell {
            bell.ring(&told.wakes, &told.notices, &told.events);
        }
        told
    }

    /// Finds out what became of a batch. The fence waits for the batch if the server is still at it, and keeps it from
    /// committing ever after if it has not; so the answer cannot change once it is given.
    async fn was_committed(&self, batch: Uuid) -> Result<bool, StoreError> {
        let deadline = Instant::now() + self.patience * 3;
        loop {
            let failure = match self.writers.take().await {
                Ok(taken) => match self.found_in_time(&taken, batch).await {
                    Ok(committed) => {
                        taken.give_back();
                        return Ok(committed);
                    }
                    Err(failure) => failure.into_store_error(),
                },
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                let why = format!("the connection was lost while committing, and the outcome is not known: {failure}");
                return Err(StoreError::Unavailable(why));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// An answer that never comes, as behind a pooler that gives it to somebody else, is as good as a lost connection.
    async fn found_in_time(&self, connection: &Lent, batch: Uuid) -> Result<bool, Failure> {
        let found = tokio::time::timeout(self.attempt_max, self.find_behind_fence(connection, batch)).await;
        found.unwrap_or_else(|_| Err(Failure::Lost(NO_ANSWER.into())))
    }

    async fn find_behind_fence(&self, connection: &Lent, batch: Uuid) -> Result<bool, Failure> {
        connection.execute(Sql::Fence, &[&self.now_alone().0, &batch]).await?;
        let found = connection.query(Sql::FindBatch, &[&batch]).await?;
        let count: i32 = found.first().map_or(Ok(-1), |row| row.try_get(0))?;
        Ok(count >= 0)
    }
}

/// Ids that were taken as free are checked where their jobs are written. One that came to nothing must not have been
/// refused, or anything else, on an assumption.
pub fn check_assumed(decision: &Decision, assumed: &BTreeSet<JobKey>) -> Result<(), Failure> {
    let new = decision.jobs.iter().filter(|change| change.old.is_none() && change.new.is_some());
    match assumed.is_empty() || new.filter(|change| assumed.contains(change.key())).count() == assumed.len() {
        true => Ok(()),
        false => Err(Failure::Conflict("a new job was not written".into())),
    }
}

/// What was read ahead, but for what this batch has changed itself.
fn untaken(mut heads: Vec<Head>, decision: &Decision) -> Vec<Head> {
    let changed: HashSet<&JobKey> = decision.jobs.iter().map(JobChange::key).collect();
    heads.retain(|head| !changed.contains(&head.job.key));
    heads
}

/// Waits for all answers.
async fn all(sent: Vec<Sent<'_, Result<u64, Failure>>>) -> Result<(), Failure> {
    for statement in sent {
        statement.await?;
    }
    Ok(())
}

/// What its callers are told once the decision is committed.
pub fn told(decision: &mut Decision, now: Timestamp, commit_time: Duration) -> Committed {
    Committed { commit_time, ..Committed::of(decision, now) }
}

fn join(mut first: Committed, second: Committed) -> Committed {
    first.replies.extend(second.replies);
    first.events.extend(second.events);
    first.wakes.extend(second.wakes);
    first.notices.extend(second.notices);
    first.logged.extend(second.logged);
    first.next_due = first.next_due.into_iter().chain(second.next_due).min();
    first.now = first.now.max(second.now);
    first.commit_time += second.commit_time;
    first
}
