//! Put, delete and fire schedules.

use super::{
    Decided,
    submit::{NewJob, Submit, check_time},
};
use crate::{
    desk::{Desk, Stop},
    id::JobId,
    keys::Keys,
    name::{Namespace, check_name},
    payload::Payload,
    policy::check_length,
    record,
    refusal::Refusal,
    reply::Reply,
    schedule::{Rule, Schedule},
    time::Timestamp,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct PutSchedule {
    pub namespace: Namespace,
    pub schedule: Schedule,
}

#[derive(Clone, Debug)]
pub struct DeleteSchedule {
    pub namespace: Namespace,
    pub name: Arc<str>,
}

/// Fires a calendar schedule whose time has come. `next_at` was worked out by whoever knows calendars.
#[derive(Clone, Debug)]
pub struct Fire {
    pub namespace: Namespace,
    pub name: Arc<str>,
    /// The time it was due; if it has moved, somebody else fired it.
    pub expected_at: Timestamp,
    pub next_at: Timestamp,
}

impl PutSchedule {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Schedule>(&self.namespace, &self.schedule.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let limits = desk.limits();
        check_name("name", &self.schedule.name, &limits)?;
        check_time("next_at", self.schedule.next_at, &limits)?;
        // Checked as the job it will become, so that no firing is refused later.
        job_of(&self.schedule, JobId::from_u128(0)).check(&limits)?;
        if let Rule::Every(every) = self.schedule.rule {
            check_length("rule.every", every, 1_000, &limits)?;
        }
        desk.put(&self.namespace, &self.schedule.name, &self.schedule)?;
        Ok(Ok(Reply::Done))
    }
}

impl DeleteSchedule {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Schedule>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        if desk.get::<Schedule>(&self.namespace, &self.name)?.is_none() {
            return Err(Refusal::not_found("schedule", &self.name).into());
        }
        desk.remove::<Schedule>(&self.namespace, &self.name)?;
        Ok(Ok(Reply::Done))
    }
}

impl Fire {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Schedule>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let found = desk.get::<Schedule>(&self.namespace, &self.name)?;
        let mut schedule = found.ok_or_else(|| Refusal::not_found("schedule", &self.name))?;
        if schedule.next_at != self.expected_at || self.next_at <= self.expected_at {
            let why = format!("the schedule is due at {} ms, not {} ms", schedule.next_at.0, self.expected_at.0);
            return Err(Refusal::invalid("expected_at", why).into());
        }
        schedule.next_at = self.next_at;
        fire(desk, &self.namespace, schedule)?;
        Ok(Ok(Reply::Done))
    }
}

/// Called by the sweep. Firings missed while nobody looked are made up by one, not by all of them.
pub(crate) fn fire_due(desk: &mut Desk, namespace: &Namespace, name: &str) -> Result<(), Stop> {
    let Some(mut schedule) = desk.get::<Schedule>(namespace, name)? else { return Ok(()) };
    let Rule::Every(every) = schedule.rule else { return Ok(()) };
    if schedule.next_at > desk.now() {
        return Ok(());
    }
    let missed = (desk.now() - schedule.next_at).0.max(0) / every.0.max(1);
    schedule.next_at = Timestamp(schedule.next_at.0.saturating_add((missed + 1).saturating_mul(every.0)));
    fire(desk, namespace, schedule)
}

fn fire(desk: &mut Desk, namespace: &Namespace, mut schedule: Schedule) -> Result<(), Stop> {
    schedule.fired += 1;
    desk.put(namespace, &schedule.name.clone(), &schedule)?;
    // The id is drawn from the firing alone, so that a batch that is decided again makes the same job; it is free.
    let job = job_of(&schedule, desk.draw_job_id());
    Submit { namespace: namespace.clone(), job }.decide(desk)?.map_err(Stop::Refused)?;
    Ok(())
}

fn job_of(schedule: &Schedule, id: JobId) -> NewJob {
    let template = &schedule.template;
    NewJob {
        priority: template.priority,
        tags: template.tags.clone(),
        payload: Payload::from(&*template.payload),
        policy: template.policy.clone(),
        extra: template.extra.clone(),
        owner: Some(format!("schedule {}", schedule.name).into()),
        ..NewJob::new(id)
    }
}
