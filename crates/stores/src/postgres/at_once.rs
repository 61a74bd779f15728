//! A batch that needs no look: it is decided by what this server knows, and written in one flight.
//!
//! Most reports end a job that this very server handed out a moment ago, and that nobody has touched since; most new jobs
//! depend on nothing; most claims of a busy queue take what was read ahead of them (`claim_at_once`), and those that wait take
//! a new job while nothing else waits (`join_at_once`). The database compares every row that was decided by with the one it
//! has while it writes; where one differs nothing is written, and the batch is looked at first, like any other.
//!
//! Where it takes more than one statement, each of them makes sure that the transaction was begun: they are on their way
//! together, and one that found none would be a transaction by itself.

use super::{
    Inner,
    claim_at_once::{Claimed, versions},
    connection::{Connection, Lent},
    failure::Failure,
    join_at_once::{Joined, place},
    pipe::{Sent, send},
    run::{Ended, NO_ANSWER, WARY_FOR, check_assumed, told},
    write::{self, Unlooked, Write},
};
use std::sync::atomic::Ordering;
use tokio_postgres::Row;
use uuid::Uuid;
use windlass_core::{Access, Decision, JobChange, Keys, RecordKey, Rows, Step, Timestamp};
use windlass_engine::store::Batch;

/// A decision by what is known, and the time it was made at.
pub struct Foreseen {
    pub decision: Decision,
    pub now: Timestamp,
    /// What the database's clock should say. None: another clock decides.
    pub database: Option<Timestamp>,
    pub kind: Kind,
}

pub enum Kind {
    /// Jobs that end, and new ones, and waiting claims that take those.
    Jobs(Jobs),
    Claims(Claimed),
}

#[derive(Default)]
pub struct Jobs {
    joined: Option<Joined>,
    /// What the callers were admitted with: looked at, and to be as it was.
    records: Vec<(RecordKey, u64)>,
}

type Answers<'a> = Vec<Sent<'a, Result<Vec<Row>, Failure>>>;

impl Inner {
    /// None: it has to be looked at first. `wary`: so have ids of new jobs.
    pub fn foresee(&self, batch: &Batch, wary: bool) -> Option<Foreseen> {
        self.foresee_claims(batch).or_else(|| self.foresee_jobs(batch, wary))
    }

    fn foresee_jobs(&self, batch: &Batch, wary: bool) -> Option<Foreseen> {
        let (now, database) = self.now_unasked()?;
        // Places in the queue are counted from where the database says.
        let mut decider = batch.decider(now, 0);
        let mut keys = decider.first_keys();
        let (wanted, new) = (std::mem::take(&mut keys.jobs), std::mem::take(&mut keys.new_jobs));
        let looked = std::mem::take(&mut keys.records);
        let looks_only = looked.values().all(|access| *access == Access::Look);
        if keys != Keys::default() || !looks_only || (wary && !new.is_empty()) || !wanted.is_disjoint(&new) {
            return None;
        }
        let (jobs, records) = (self.known.all(wanted.iter())?, self.known.records(looked.keys())?);
        let versions = versions(&records);
        let (decision, joined) = match decider.step(Rows { jobs, records, ..Rows::default() }) {
            Step::Done(decision) => (decision, None),
            Step::Need(keys) => self.foresee_joined(&mut decider, &keys).map(|(decision, by)| (decision, Some(by)))?,
        };
        let simple = is_simple(&decision, wanted.len()) && check_assumed(&decision, &new).is_ok();
        (simple && self.lanes.to_confirm(&decision.wakes).is_empty()).then_some(Foreseen {
            decision,
            now,
            database,
            kind: Kind::Jobs(Jobs { joined, records: versions }),
        })
    }

    /// None: something was not as it was thought to be, and nothing is written.
    pub async fn write_at_once(&self, connection: &Lent, foreseen: Foreseen) -> Result<Option<Ended>, Failure> {
        let Foreseen { mut decision, now, database, kind } = foreseen;
        let (batch, begun) = (Uuid::new_v4(), self.monotonic());
        self.flights.fetch_add(1, Ordering::Relaxed);
        let by = Unlooked { batch, now: now.0, clock: database.map(|time| time.0) };
        let sent = send_all(connection, writes(&decision, &kind, by), batch).await?;
        self.marks.count(&decision);
        let answer = tokio::time::timeout(self.attempt_max, first_row(sent)).await;
        let took = self.monotonic().saturating_sub(begun);
        match answer.unwrap_or_else(|_| Err(Failure::Lost(NO_ANSWER.into()))) {
            Ok(clock) => {
                if let Some(Ok(time)) = clock.as_ref().map(|row| row.try_get(0)) {
                    // Keeps the clocks together; where they are not, the next batch finds out before it is written.
                    drop(self.now(Timestamp(time), begun));
                }
                match (&kind, clock) {
                    (Kind::Claims(claimed), _) => self.ahead.was_right(&claimed.query),
                    // It is committed: whatever is wrong with the answer is no reason to do it again.
                    (Kind::Jobs(Jobs { joined: Some(_), .. }), Some(row)) => {
                        place(&mut decision, row.try_get(1).unwrap_or_default())
                    }
                    (Kind::Jobs(_), _) => {}
                }
                self.known.learn(&mut decision);
                Ok(Some(Ended::Committed(told(&mut decision, now, took))))
            }
            Err(Failure::Lost(why)) => {
                let told = told(&mut decision, now, took);
                Ok(Some(Ended::Unknown { batch, told, why }))
            }
            Err(Failure::Conflict(why)) => {
                tracing::debug!(why, "a batch is decided again: something was not as it was known");
                self.doubt(&decision, &kind);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    fn doubt(&self, decision: &Decision, kind: &Kind) {
        let (records, joined) = match kind {
            Kind::Claims(claimed) => {
                self.ahead.was_wrong(&claimed.query);
                (&claimed.records, None)
            }
            Kind::Jobs(Jobs { joined, records }) => (records, joined.as_ref()),
        };
        let joined = joined.map_or(&[][..], |joined| &joined.records);
        self.known.forget_records(records.iter().chain(joined).map(|(key, _)| key));
        if decision.jobs.iter().any(|change| change.old.is_none()) {
            self.wary_for.store(WARY_FOR, Ordering::Relaxed);
        }
        self.known.forget(decision.jobs.iter().map(JobChange::key));
    }
}

/// The first that answers with a row answers with the database's time; and with the place of the first new job, if there are any.
fn writes(decision: &Decision, kind: &Kind, by: Unlooked) -> Vec<Write> {
    let Jobs { joined, records } = match kind {
        Kind::Claims(claimed) => return vec![write::claim_known(decision, claimed, by)],
        Kind::Jobs(jobs) => jobs,
    };
    if decision.jobs.iter().all(|change| change.old.is_some()) {
        return vec![write::finish_known(decision, records, by, true)];
    }
    let mut writes: Vec<Write> = joined.iter().map(|joined| write::check_nothing_waits(joined, by)).collect();
    writes.extend(write::add_jobs(decision, by));
    writes.push(write::finish_known(decision, records, by, false));
    writes
}

/// All in one flight and one transaction. What fails before it has left fails here, and nothing is committed.
async fn send_all(connection: &Connection, writes: Vec<Write>, batch: Uuid) -> Result<Answers<'_>, Failure> {
    let several = writes.len() > 1 || connection.needs_begin();
    let mut sent: Answers<'_> = Vec::with_capacity(writes.len() + 2);
    if several {
        sent.push(send(async move {
            // The rest is on its way all the same: what became of it has to be asked.
            let begun = connection.begin_for(batch).await;
            begun.map(|()| Vec::new()).map_err(|failure| Failure::Lost(format!("no transaction: {failure:?}")))
        }));
    }
    sent.extend(writes.into_iter().map(|write| write.ask(connection)));
    let unsent = sent.iter().position(|sent| sent.failed_at_once());
    if let Some(at) = unsent {
        return Err(sent.swap_remove(at).await.err().unwrap_or_else(|| Failure::Lost("not sent".into())));
    }
    if several {
        sent.push(send(async { connection.batch("COMMIT").await.map(|()| Vec::new()) }));
    }
    Ok(sent)
}

/// Waits for all answers, and gives the first row there is.
async fn first_row(sent: Answers<'_>) -> Result<Option<Row>, Failure> {
    let mut first = None;
    for statement in sent {
        let rows = statement.await?;
        first = first.or_else(|| rows.into_iter().next());
    }
    Ok(first)
}

/// Whether it only ends so many jobs and adds new ones. What it ends is compared while it is written, and so are all rows the
/// decision was made by.
fn is_simple(decision: &Decision, ends: usize) -> bool {
    let (mut ended, mut added) = (0, 0);
    for change in &decision.jobs {
        match (&change.old, &change.new) {
            (Some(old), Some(new)) if !old.state.is_final() && new.state.is_final() && old.seq == new.seq => ended += 1,
            (None, Some(new)) if !new.state.is_final() && new.spec.index().next().is_none() => added += 1,
            _ => return false,
        }
    }
    let Decision { edges, records, logs, log_drops, .. } = decision;
    let plain = edges.is_empty() && records.is_empty() && logs.is_empty() && log_drops.is_empty();
    let parts = added > 0 || (decision.payloads.is_empty() && decision.wakes.is_empty());
    ended == ends && ended + added > 0 && plain && parts && write::earlier_attempts(decision).is_empty()
}
