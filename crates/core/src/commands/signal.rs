//! Tell a run that something happened, or answer a step that waits for a person.

use super::{Decided, submit::check_size};
use crate::{
    desk::{Desk, Stop},
    model::{
        id::RunId,
        job::{Job, Outcome, Reason, State},
        keys::{JobKey, Keys},
        name::{Namespace, check_name},
        payload::Payload,
        record::{self, Kind},
        refusal::Refusal,
        reply::Signalled,
        run::Run,
        stage::{self, EarlyEvent, Hold, Waiting},
    },
    moves::{dependents, life, steps},
};
use std::sync::Arc;

/// Events that one run may have waiting for it.
const KEPT_MAX: usize = 100;

#[derive(Clone, Debug)]
pub struct Signal {
    pub namespace: Namespace,
    pub run: RunId,
    pub event: Arc<str>,
    /// JSON text, or nothing. The result of every step that waits for it.
    pub payload: Payload,
}

#[derive(Clone, Debug)]
pub struct Judge {
    pub namespace: Namespace,
    pub run: RunId,
    pub step: Arc<str>,
    /// Some: it goes on with this result. None: it fails.
    pub approved: Option<Payload>,
    /// Why it fails.
    pub why: Arc<str>,
}

fn open_run(desk: &mut Desk, namespace: &Namespace, run: RunId) -> Result<(), Stop> {
    let found = desk.get::<Run>(namespace, &run.to_string())?.ok_or_else(|| Refusal::not_found("run", run))?;
    if found.finished_at.is_some() {
        return Err(Refusal::invalid("run", "the run has ended".into()).into());
    }
    Ok(())
}

/// The job, if it waits indeed.
fn waiting(desk: &mut Desk, namespace: &Namespace, record: &Waiting) -> Result<Option<Job>, Stop> {
    let job = desk.job(&JobKey::new(namespace, record.job))?;
    Ok(job.filter(|job| job.state == State::Blocked && job.live.hold == Some(Hold::Event)))
}

impl Signal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        let place = stage::place(self.run, &self.event);
        keys.want_record(record::key_of::<Run>(&self.namespace, &self.run.to_string()), true);
        keys.want_record(record::key_of::<EarlyEvent>(&self.namespace, &place), true);
        keys.siblings.insert((self.namespace.clone(), Waiting::KIND.into(), place.into()));
    }

    /// Everyone who waits goes on; if nobody does, the first that will goes on at once.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Signalled> {
        check_name("name", &self.event, &desk.limits())?;
        check_size("payload", self.payload.len(), desk.limits().payload_bytes_max)?;
        open_run(desk, &self.namespace, self.run)?;
        let place = stage::place(self.run, &self.event);
        let keys = desk.siblings(&self.namespace, Waiting::KIND, &place)?;
        let mut ended = Vec::new();
        desk.for_all(keys, |desk, key| {
            let Some(record) = desk.get::<Waiting>(&self.namespace, &key.key)? else { return Ok(()) };
            if let Some(job) = waiting(desk, &self.namespace, &record)? {
                ended.push(steps::finish(desk, job, self.payload.clone())?);
            }
            Ok(())
        })?;
        let steps = ended.len() as u32;
        dependents::pass_on(desk, ended)?;
        if steps == 0 {
            self.keep(desk, &place)?;
        }
        Ok(Ok(Signalled { steps, kept: steps == 0 }))
    }

    fn keep(&self, desk: &mut Desk, place: &str) -> Result<(), Stop> {
        let kept = desk.siblings(&self.namespace, EarlyEvent::KIND, &self.run.to_string())?;
        if desk.get::<EarlyEvent>(&self.namespace, place)?.is_none() {
            check_size("events kept for the run", kept.len() + 1, KEPT_MAX)?;
        }
        let payload = String::from_utf8_lossy(self.payload.as_bytes()).into();
        desk.put(&self.namespace, place, &EarlyEvent { run: self.run, payload })
    }
}

impl Judge {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Run>(&self.namespace, &self.run.to_string()), true);
        let place = stage::place(self.run, &self.step);
        keys.want_record(record::key_of::<Waiting>(&self.namespace, &place), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Job>> {
        let limits = desk.limits();
        check_size("payload", self.approved.as_ref().map_or(0, |result| result.len()), limits.payload_bytes_max)?;
        check_size("comment", self.why.len(), limits.message_bytes_max)?;
        open_run(desk, &self.namespace, self.run)?;
        let absent = || Refusal::not_found("step that waits for approval:", &self.step);
        let record = desk.get::<Waiting>(&self.namespace, &stage::place(self.run, &self.step))?.ok_or_else(absent)?;
        let job = waiting(desk, &self.namespace, &record)?.ok_or_else(absent)?;
        if !job.spec.stage.wait.as_ref().is_some_and(|wait| wait.approval) {
            let why = format!("{} waits for an event, not for approval", self.step);
            return Err(Refusal::invalid("step", why).into());
        }
        let job = match &self.approved {
            Some(result) => {
                let ended = steps::finish(desk, job, result.clone())?;
                dependents::pass_on(desk, vec![ended.clone()])?;
                ended
            }
            None => {
                let outcome = Outcome::new(Reason::Reported, self.why.clone());
                life::end(desk, job, State::Failed, Some(outcome))?
            }
        };
        Ok(Ok(Box::new(job)))
    }
}
