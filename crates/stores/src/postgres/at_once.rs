//! A batch that needs no look: it is decided by what this server knows, and written in one flight.
//!
//! Most reports end a job that this very server handed out a moment ago, and that nobody has touched since. The database
//! compares every row that was decided by with the one it has while it writes; where one differs nothing is written, and the
//! batch is looked at first, like any other.

use super::{
    Inner,
    connection::Taken,
    failure::Failure,
    pipe::send,
    run::{Ended, NO_ANSWER, outcome},
    write,
};
use std::sync::atomic::Ordering;
use uuid::Uuid;
use windlass_core::{Context, Decider, Decision, JobChange, Keys, Limits, Rows, Step, Timestamp, decider::Item};

/// A decision by what is known, and the time it was made at.
pub struct Foreseen {
    decision: Decision,
    now: Timestamp,
    /// What the database's clock should say. None: another clock decides.
    database: Option<Timestamp>,
}

impl Inner {
    /// None: it has to be looked at first.
    pub fn foresee(&self, items: &[Item], limits: Limits) -> Option<Foreseen> {
        let (now, database) = self.now_unasked()?;
        // A decision that needs a place in the queue is not used, so that any place will do.
        let mut decider = Decider::new(items, Context { now, first_seq: 0, limits });
        let mut keys = decider.first_keys();
        let wanted = std::mem::take(&mut keys.jobs);
        if wanted.is_empty() || keys != Keys::default() {
            return None;
        }
        let jobs = self.known.all(wanted.iter())?;
        match decider.step(Rows { jobs, ..Rows::default() }) {
            Step::Done(decision) if only_ends(&decision, wanted.len()) => Some(Foreseen { decision, now, database }),
            _ => None,
        }
    }

    /// None: something was not as it was thought to be, and nothing is written.
    pub async fn write_at_once(&self, connection: &Taken, foreseen: Foreseen) -> Result<Option<Ended>, Failure> {
        let Foreseen { mut decision, now, database } = foreseen;
        let (batch, sent) = (Uuid::new_v4(), self.monotonic());
        let write = write::finish_known(&decision, database.map(|time| time.0), now.0, batch);
        self.flights.fetch_add(1, Ordering::Relaxed);
        let begin = connection.needs_begin().then(|| send(connection.begin(true)));
        let written = write.ask(connection);
        if written.failed_at_once() {
            return Err(written.await.err().unwrap_or_else(|| Failure::Lost("not sent".into())));
        }
        let commit = connection.needs_begin().then(|| send(connection.batch("COMMIT")));
        let all = async {
            if let Some(begin) = begin {
                // The statement is on its way all the same, and is whole by itself: what became of it has to be asked.
                begin.await.map_err(|failure| Failure::Lost(format!("no transaction: {failure:?}")))?;
            }
            let rows = written.await?;
            if let Some(commit) = commit {
                commit.await?;
            }
            Ok(rows)
        };
        let answer = tokio::time::timeout(self.attempt_max, all).await;
        let commit_time = self.monotonic().saturating_sub(sent);
        match answer.unwrap_or_else(|_| Err(Failure::Lost(NO_ANSWER.into()))) {
            Ok(rows) => {
                if let Some(Ok(time)) = rows.first().map(|row| row.try_get(0)) {
                    // Keeps the clocks together; where they are not, the next batch finds out before it is written.
                    drop(self.now(Timestamp(time), sent));
                }
                self.known.learn(std::mem::take(&mut decision.jobs));
                Ok(Some(Ended::Committed(outcome(&mut decision, now, commit_time))))
            }
            Err(Failure::Lost(why)) => {
                let outcome = outcome(&mut decision, now, commit_time);
                Ok(Some(Ended::Unknown { batch, outcome, why }))
            }
            Err(Failure::Conflict(why)) => {
                tracing::debug!(why, "a batch is decided again: something was not as it was known");
                self.known.forget(decision.jobs.iter().map(JobChange::key));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Whether all it writes are the ends of so many jobs. Each of them is compared while it is written, and so are all rows the
/// decision was made by.
fn only_ends(decision: &Decision, jobs: usize) -> bool {
    let ends = |change: &JobChange| match (&change.old, &change.new) {
        (Some(old), Some(new)) => !old.state.is_final() && new.state.is_final() && old.seq == new.seq,
        _ => false,
    };
    let Decision { payloads, edges, records, logs, log_drops, wakes, .. } = decision;
    decision.jobs.len() == jobs
        && decision.jobs.iter().all(ends)
        && (payloads.is_empty() && edges.is_empty() && records.is_empty())
        && (logs.is_empty() && log_drops.is_empty() && wakes.is_empty())
        && write::earlier_attempts(decision).is_empty()
}
