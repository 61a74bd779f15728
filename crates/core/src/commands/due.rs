//! What the sweep does: look at one row whose time has come, and do what is due, if it still is.
//!
//! The index that named the row may be behind (somebody renewed, reported, or another server swept first). Everything is
//! therefore decided again on the row itself; finding nothing to do is the normal case, not an error.

use super::{Decided, audited, fire};
use crate::{
    desk::{Desk, Stop},
    model::{
        audit::AuditEntry,
        definition::DefinitionHead,
        job::{Job, State},
        keys::{JobKey, Keys, RecordKey},
        record::{Kind, Record},
        run::Run,
        schedule::Schedule,
        stage::{self, EarlyPlan},
        time::Millis,
        worker::Worker,
    },
    moves::{concurrency, dependents, life, links, liveness, steps},
};

/// When to look again at what could not be done.
pub const PUT_OFF: Millis = Millis::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    Job(JobKey),
    Record(RecordKey),
    /// There is no room for what would follow from this record: look again later.
    Later(RecordKey),
}

impl Due {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        match self {
            Due::Job(key) => drop(keys.jobs.insert(key.clone())),
            Due::Record(key) | Due::Later(key) => keys.want_record(key.clone(), true),
        }
    }

    /// What cannot be done (a record it needs is damaged) is put off and told: were it still due, the sweep would come
    /// back to it at once and for ever.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        if let Due::Later(_) = self {
            return Ok(Ok(self.put_off(desk)?));
        }
        match self.act(desk) {
            Ok(()) => Ok(Ok(())),
            Err(Stop::Refused(refusal)) => {
                desk.roll_back();
                self.put_off(desk)?;
                Ok(Err(refusal))
            }
            Err(stop) => Err(stop),
        }
    }

    fn put_off(&self, desk: &mut Desk) -> Result<(), Stop> {
        let later = desk.now() + PUT_OFF;
        match self {
            Due::Job(key) => {
                if let Some(job) = desk.job(key)? {
                    desk.put_off_job(job, later);
                }
            }
            Due::Record(key) | Due::Later(key) => {
                if let Some(record) = desk.record(key, true)? {
                    desk.put_record(Record { due: Some(later), version: record.version + 1, ..record });
                }
            }
        }
        Ok(())
    }

    fn act(&self, desk: &mut Desk) -> Result<(), Stop> {
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
            Due::Later(_) => {}
        }
        Ok(())
    }
}

fn job_due(desk: &mut Desk, job: Job) -> Result<(), Stop> {
    let now = desk.now();
    match job.state {
        state if !state.is_held() && job.is_past_deadline(now) => drop(life::expire(desk, &job)?),
        State::Scheduled if job.live.run_at.is_none_or(|at| at <= now) => drop(life::requeue_waiting(desk, job)?),
        State::Pending | State::Claimed | State::Running => {
            if life::expire(desk, &job)?.is_none() {
                // Renewed since: only the due time moves on.
                desk.put_job(job);
            }
        }
        State::Blocked if stage::due(&job).is_some_and(|due| due <= now) => steps::wait_over(desk, job)?,
        state if state.is_final() => {
            if job.live.place_until.is_some_and(|until| until <= now) {
                concurrency::free_place(desk, job)?;
            } else if job.live.must_pass_on {
                dependents::pass_on(desk, vec![job])?;
            } else if job.due_exactly(desk.limits().retention).is_some_and(|due| due <= now) {
                keep_or_remove(desk, job)?;
            } else {
                desk.put_job(job);
            }
        }
        _ => desk.put_job(job),
    }
    Ok(())
}

/// What a run still going on may ask for, the results of its steps, stays for as long as it does.
fn keep_or_remove(desk: &mut Desk, job: Job) -> Result<(), Stop> {
    let run = match job.run() {
        Some(run) => desk.peek::<Run>(&job.key.namespace, &run.to_string())?,
        None => None,
    };
    if run.is_some_and(|run| run.finished_at.is_none()) {
        let later = desk.now() + desk.limits().retention.max(PUT_OFF);
        desk.put_off_job(job, later);
    } else {
        desk.remove_job(&job.key);
    }
    Ok(())
}

fn record_due(desk: &mut Desk, record: Record) -> Result<(), Stop> {
    let (namespace, key) = (&record.key.namespace, &record.key.key);
    match &*record.key.kind {
        Worker::KIND => liveness::age(desk, namespace, key),
        Schedule::KIND => fire::fire_due(desk, namespace, key),
        Run::KIND => steps::remove_run(desk, namespace, key),
        DefinitionHead::KIND => links::forget(desk, namespace, key),
        EarlyPlan::KIND => steps::remove_early(desk, namespace, key),
        AuditEntry::KIND => audited::forget(desk, key),
        // Everything else that has a time, has it to end.
        _ => desk.delete_record(&record.key),
    }
}
