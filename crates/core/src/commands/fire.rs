//! Put, delete and fire schedules, and run them by hand.

use super::{
    Decided,
    submit::{NewJob, Submit, check_time},
};
use crate::{
    desk::{Desk, Stop},
    model::{
        id::JobId,
        job::UniqueKey,
        keys::Keys,
        name::{Namespace, check_name},
        payload::Payload,
        policy::check_length,
        record,
        refusal::Refusal,
        reply::Submitted,
        schedule::{Firing, Rule, Schedule, Template},
        time::Timestamp,
    },
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
    /// What the clock on the wall says, which calendars go by: the firing is too late by that, or not.
    pub wall: Timestamp,
}

/// Makes a schedule's job now, whatever its times are and also while it is paused.
#[derive(Clone, Debug)]
pub struct RunSchedule {
    pub namespace: Namespace,
    pub name: Arc<str>,
    /// The id of the job to be.
    pub id: JobId,
    /// Who runs it.
    pub owner: Option<Arc<str>>,
    /// Under the same key the first job is answered once more.
    pub unique: Option<UniqueKey>,
}

impl PutSchedule {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Schedule>(&self.namespace, &self.schedule.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let limits = desk.limits();
        check_name("name", &self.schedule.name, &limits)?;
        check_time("next_at", self.schedule.next_at, &limits)?;
        // Checked as the job it will become, so that no firing is refused later.
        job_of(&self.schedule, JobId::from_u128(0)).check(&limits)?;
        if let Rule::Every(every) = self.schedule.rule {
            check_length("rule.every", every, 1_000, &limits)?;
        }
        let before = desk.get::<Schedule>(&self.namespace, &self.schedule.name)?;
        let mut schedule = self.schedule.clone();
        if let Some(before) = before {
            (schedule.fired, schedule.recent) = (before.fired, before.recent);
        }
        desk.put(&self.namespace, &self.schedule.name, &schedule)?;
        Ok(Ok(()))
    }
}

impl DeleteSchedule {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Schedule>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        if desk.get::<Schedule>(&self.namespace, &self.name)?.is_none() {
            return Err(Refusal::not_found("schedule", &self.name).into());
        }
        desk.remove::<Schedule>(&self.namespace, &self.name)?;
        Ok(Ok(()))
    }
}

impl Fire {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Schedule>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let found = desk.get::<Schedule>(&self.namespace, &self.name)?;
        let mut schedule = found.ok_or_else(|| Refusal::not_found("schedule", &self.name))?;
        if schedule.next_at != self.expected_at || self.next_at <= self.expected_at {
            let why = format!("the schedule is due at {} ms, not {} ms", schedule.next_at.0, self.expected_at.0);
            return Err(Refusal::invalid("expected_at", why).into());
        }
        if schedule.paused {
            return Err(Refusal::invalid("name", format!("the schedule {} is paused", self.name)).into());
        }
        let let_go = schedule.is_let_go(self.wall);
        schedule.next_at = self.next_at;
        move_on(desk, &self.namespace, schedule, let_go)?;
        Ok(Ok(()))
    }
}

impl RunSchedule {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Schedule>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Submitted> {
        let found = desk.get::<Schedule>(&self.namespace, &self.name)?;
        let mut schedule = found.ok_or_else(|| Refusal::not_found("schedule", &self.name))?;
        let job = NewJob { owner: self.owner.clone(), unique: self.unique.clone(), ..job_of(&schedule, self.id) };
        let submit = Submit { namespace: self.namespace.clone(), job };
        let submitted = submit.decide(desk)?.map_err(Stop::Refused)?;
        if !submitted.existing {
            schedule.count(Firing { at: desk.now(), job: submitted.job });
            desk.put(&self.namespace, &self.name, &schedule)?;
        }
        Ok(Ok(submitted))
    }
}

/// Called by the sweep. Firings missed while nobody looked are made up by one, not by all of them.
pub(crate) fn fire_due(desk: &mut Desk, namespace: &Namespace, name: &str) -> Result<(), Stop> {
    let Some(mut schedule) = desk.get::<Schedule>(namespace, name)? else { return Ok(()) };
    let Rule::Every(every) = schedule.rule else { return Ok(()) };
    if schedule.next_at > desk.now() || schedule.paused {
        return Ok(());
    }
    let let_go = schedule.is_let_go(desk.now());
    let missed = (desk.now() - schedule.next_at).0.max(0) / every.0.max(1);
    schedule.next_at = Timestamp(schedule.next_at.0.saturating_add((missed + 1).saturating_mul(every.0)));
    move_on(desk, namespace, schedule, let_go)
}

/// Writes the next time and, unless this one is let go, makes the job.
fn move_on(desk: &mut Desk, namespace: &Namespace, mut schedule: Schedule, let_go: bool) -> Result<(), Stop> {
    if let_go {
        return desk.put(namespace, &schedule.name.clone(), &schedule);
    }
    // The id is drawn from the firing alone, so that a batch that is decided again makes the same job; it is free.
    let job = job_of(&schedule, desk.draw_job_id());
    schedule.count(Firing { at: desk.now(), job: job.id });
    desk.put(namespace, &schedule.name.clone(), &schedule)?;
    Submit { namespace: namespace.clone(), job }.decide(desk)?.map_err(Stop::Refused)?;
    Ok(())
}

/// What a job to submit says, but for its own id, times, parents and keys.
pub fn template(job: NewJob) -> Template {
    Template {
        name: job.name,
        priority: job.priority,
        tags: job.tags,
        payload: String::from_utf8_lossy(job.payload.as_bytes()).into(),
        policy: job.policy,
        definition: job.definition,
        facets: job.facets,
        concurrency: job.concurrency,
        extra: job.extra,
    }
}

fn job_of(schedule: &Schedule, id: JobId) -> NewJob {
    let template = &schedule.template;
    NewJob {
        name: template.name.clone(),
        priority: template.priority,
        tags: template.tags.clone(),
        payload: Payload::from(&*template.payload),
        policy: template.policy.clone(),
        definition: template.definition.clone(),
        facets: template.facets.clone(),
        concurrency: template.concurrency.clone(),
        extra: template.extra.clone(),
        owner: Some(format!("schedule {}", schedule.name).into()),
        ..NewJob::new(id)
    }
}
