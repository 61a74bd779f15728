//! What the sweep does: look at one row whose time has come, and do what is due, if it still is.
//!
//! The index that named the row may be behind (somebody renewed, reported, or another server swept first). Everything is
//! therefore decided again on the row itself; finding nothing to do is the normal case, not an error.

use super::{Decided, fire};
use crate::{
    desk::{Desk, Stop},
    job::{Job, State},
    keys::{JobKey, Keys, RecordKey},
    life,
    record::{Kind, Record},
    reply::Reply,
    schedule::Schedule,
    worker::{self, Worker},
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    Job(JobKey),
    Record(RecordKey),
}

impl Due {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        match self {
            Due::Job(key) => drop(keys.jobs.insert(key.clone())),
            Due::Record(key) => keys.want_record(key.clone(), true),
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        match self {
            Due::Job(key) => {
                let job = desk.job(key)?;
                if let Some(job) = job.filter(|job| job.due.is_some_and(|due| due <= desk.now())) {
                    job_due(desk, job)?;
                }
            }
            Due::Record(key) => {
                let record = desk.record(key, true)?;
                if let Some(record) = record.filter(|record| record.due.is_some_and(|due| due <= desk.now())) {
                    record_due(desk, record)?;
                }
            }
        }
        Ok(Ok(Reply::Done))
    }
}

fn job_due(desk: &mut Desk, job: Job) -> Result<(), Stop> {
    let now = desk.now();
    match job.state {
        State::Scheduled if job.live.run_at.is_none_or(|at| at <= now) => drop(life::requeue_waiting(desk, job)?),
        State::Pending | State::Claimed | State::Running => {
            if life::expire(desk, &job)?.is_none() {
                // Renewed since: only the due time moves on.
                desk.put_job(job);
            }
        }
        state if state.is_final() => {
            if job.live.unsettled {
                life::settle(desk, vec![job])?;
            } else if job.due_exactly(desk.limits().retention).is_some_and(|due| due <= now) {
                desk.remove_job(&job.key);
            } else {
                desk.put_job(job);
            }
        }
        _ => desk.put_job(job),
    }
    Ok(())
}

fn record_due(desk: &mut Desk, record: Record) -> Result<(), Stop> {
    let (namespace, key) = (&record.key.namespace, &record.key.key);
    match &*record.key.kind {
        Worker::KIND => worker::age(desk, namespace, key),
        Schedule::KIND => fire::fire_due(desk, namespace, key),
        // Everything else that has a time, has it to end.
        _ => desk.delete_record(&record.key),
    }
}
