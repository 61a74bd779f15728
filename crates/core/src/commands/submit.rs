//! Submit one job.

use super::Decided;
use crate::{
    desk::{Desk, Stop},
    model::{
        definition::DefinitionHead,
        event::What,
        id::JobId,
        job::{self, ConcurrencyKey, DefinitionRef, Job, Node, Reason, Spec, State, UniqueKey, UniqueUntil},
        keys::{Access, JobKey, Keys},
        limits::Limits,
        link::served_by_links,
        name::{Facet, Namespace, Tags, check_facets, check_name},
        payload::Payload,
        policy::{JobPolicy, check_length},
        record,
        refusal::Refusal,
        reply::Submitted,
        stage::Stage,
        time::{Millis, Timestamp},
    },
    moves::{
        life,
        parents::{self, End, Heard, Verdict},
        unique,
    },
};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Clone, Debug)]
pub struct Submit {
    pub namespace: Namespace,
    pub job: NewJob,
}

/// A job as its submitter describes it.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub id: JobId,
    /// What people call it.
    pub name: Option<Arc<str>>,
    /// Lower goes first.
    pub priority: i32,
    pub tags: Tags,
    pub payload: Payload,
    /// Not before this time.
    pub run_at: Option<Timestamp>,
    /// Not before so long from now, by the clock that decides.
    pub delay: Option<Millis>,
    pub policy: JobPolicy,
    /// Jobs that must end first.
    pub parents: Vec<JobId>,
    pub definition: Option<DefinitionRef>,
    /// Whatever `definition` says, take the newest version. Not in a run, whose steps were planned with one.
    pub newest: bool,
    pub facets: Vec<Facet>,
    pub concurrency: Option<ConcurrencyKey>,
    pub unique: Option<UniqueKey>,
    pub owner: Option<Arc<str>>,
    pub extra: Option<Arc<str>>,
    /// What has to be decided first. Only in a run.
    pub stage: Stage,
    /// The job was done in an earlier run, and this is its result. Only in a run.
    pub kept: Option<Payload>,
    pub retry_of: Option<JobId>,
}

impl NewJob {
    pub fn new(id: JobId) -> Self {
        Self {
            id,
            name: None,
            priority: 100,
            tags: Tags::default(),
            payload: Payload::default(),
            run_at: None,
            delay: None,
            policy: JobPolicy::default(),
            parents: Vec::new(),
            definition: None,
            newest: false,
            facets: Vec::new(),
            concurrency: None,
            unique: None,
            owner: None,
            extra: None,
            stage: Stage::default(),
            kept: None,
            retry_of: None,
        }
    }

    /// Another one like `job`, without its payload, its place in a run and what it was unique by. All that a job was asked
    /// for is named, so that what is added to it later is thought of here.
    pub fn like(job: &Job, id: JobId) -> Self {
        let Spec {
            name,
            tags,
            owner,
            definition,
            facets,
            policy,
            concurrency,
            stage,
            extra,
            created_at: _,
            node: _,
            parents: _,
            unique: _,
            retry_of: _,
        } = &*job.spec;
        Self {
            name: name.clone(),
            priority: job.priority,
            tags: tags.clone(),
            owner: owner.clone(),
            definition: definition.clone(),
            facets: facets.clone(),
            policy: policy.clone(),
            concurrency: concurrency.clone(),
            stage: stage.clone(),
            extra: extra.clone(),
            retry_of: Some(job.key.id),
            ..Self::new(id)
        }
    }

    pub(crate) fn weight(&self) -> usize {
        self.payload.len()
            + self.tags.bytes()
            + self.kept.as_ref().map_or(0, |kept| kept.len())
            + self.extra.as_ref().map_or(0, |extra| extra.len())
            + self.parents.len() * 64
    }

    pub(crate) fn keys(&self, namespace: &Namespace, keys: &mut Keys) {
        keys.new_jobs.insert(JobKey::new(namespace, self.id));
        keys.jobs.extend(self.parents.iter().map(|&id| JobKey::new(namespace, id)));
        if let Some(unique) = &self.unique {
            let key = unique::record_key(self.owner.as_deref(), &unique.key);
            keys.want_record(record::key_of::<unique::Taken>(namespace, &key), true);
        }
        if let Some(concurrency) = &self.concurrency {
            keys.want_record(record::key_of::<crate::moves::concurrency::KeyUse>(namespace, &concurrency.key), true);
        }
        if let Some(definition) = &self.definition {
            let key = record::key_of::<DefinitionHead>(namespace, &definition.name);
            keys.want_access(key, self.definition_access());
        }
    }

    /// A job that waits for linked workers alone keeps its definition from retiring until it is there.
    fn definition_access(&self) -> Access {
        let name = self.definition.as_ref().map(|definition| &definition.name);
        if served_by_links(name, &self.tags).is_some() { Access::Share } else { Access::Look }
    }

    /// Whether it could be submitted, as far as that can be told without looking at anything else.
    pub fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        self.policy.check(limits)?;
        if let Some(fault) = self.name.as_deref().and_then(job::name_fault) {
            return Err(Refusal::invalid("name", fault));
        }
        self.tags.check("tags", limits.job_tags_max, limits)?;
        check_facets(&self.facets, limits)?;
        check_size("payload", self.payload.len(), limits.payload_bytes_max)?;
        check_size("extra", self.extra.as_ref().map_or(0, |extra| extra.len()), limits.extra_bytes_max)?;
        check_size("parents", self.parents.len(), limits.parents_max)?;
        if self.parents.contains(&self.id) {
            return Err(Refusal::Cycle { path: vec![self.id.to_string(), self.id.to_string()] });
        }
        if let Some(at) = self.run_at {
            check_time("run_at", at, limits)?;
        }
        self.delay.map_or(Ok(()), |delay| check_length("delay", delay, 0, limits))?;
        self.owner.as_ref().map_or(Ok(()), |owner| check_name("owner", owner, limits))?;
        self.check_keys(limits)
    }

    fn check_keys(&self, limits: &Limits) -> Result<(), Refusal> {
        if let Some(concurrency) = &self.concurrency {
            check_name("concurrency.key", &concurrency.key, limits)?;
            if concurrency.limit == 0 {
                return Err(Refusal::invalid("concurrency.limit", "must be at least 1".into()));
            }
        }
        if let Some(unique) = &self.unique {
            check_name("unique.key", &unique.key, limits)?;
            check_size("unique.body_hash", unique.body_hash.len(), limits.name_bytes_max)?;
            if let UniqueUntil::After(length) = unique.until {
                check_length("unique.until", length, 1, limits)?;
            }
        }
        Ok(())
    }

    /// The job to be, with its place in the queue but not yet in it.
    pub(crate) fn make(&self, desk: &mut Desk, namespace: &Namespace, node: Option<Node>) -> Job {
        let mut parents = self.parents.clone();
        parents.sort();
        parents.dedup();
        let spec = Spec {
            created_at: desk.now(),
            name: self.name.clone(),
            tags: self.tags.clone(),
            owner: self.owner.clone(),
            definition: self.definition.clone(),
            node,
            parents,
            facets: self.facets.clone(),
            policy: self.policy.clone(),
            concurrency: self.concurrency.clone(),
            unique: self.unique.clone(),
            retry_of: self.retry_of,
            stage: self.stage.clone(),
            extra: self.extra.clone(),
        };
        let mut job = desk.new_job(JobKey::new(namespace, self.id), self.priority, spec);
        let delayed = self.delay.map(|delay| desk.now() + delay);
        job.live.run_at = self.run_at.max(delayed);
        job
    }
}

/// A point in time somebody may have meant.
pub(crate) fn check_time(field: &'static str, at: Timestamp, limits: &Limits) -> Result<(), Refusal> {
    let latest = limits.length_max.0.saturating_mul(20);
    if at.0 < 0 || at.0 > latest {
        return Err(Refusal::invalid(field, format!("{} ms is not between 0 and {latest}", at.0)));
    }
    Ok(())
}

pub(crate) fn check_size(field: &'static str, size: usize, max: usize) -> Result<(), Refusal> {
    if size > max { Err(Refusal::too_large(field, size, max)) } else { Ok(()) }
}

impl Submit {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.job.keys(&self.namespace, keys);
    }

    fn check_alone(&self) -> Result<(), Refusal> {
        if self.job.stage != Stage::default() || self.job.kept.is_some() {
            return Err(Refusal::invalid("stage", "only a step of a run is decided later, or was before".into()));
        }
        Ok(())
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Submitted> {
        self.job.check(&desk.limits())?;
        self.check_alone()?;
        let (namespace, new) = (&self.namespace, &self.job);
        if let Some(unique) = &new.unique
            && let Some(existing) = unique::take(desk, namespace, new.owner.as_deref(), unique, new.id)?
        {
            // A job outlives its key; only one that was retried as another may be gone, and it had failed.
            let state = desk.job(&JobKey::new(namespace, existing))?.map_or(State::Failed, |job| job.state);
            return Ok(Ok(Submitted { job: existing, state, existing: true }));
        }
        let newest = check_new(desk, namespace, new)?;
        let mut job = new.make(desk, namespace, None);
        if let (true, Some(newest), Some(definition)) = (new.newest, newest, &new.definition) {
            let definition = DefinitionRef { version: newest, ..definition.clone() };
            Arc::make_mut(&mut job.spec).definition = Some(definition);
        }
        desk.tell(namespace, What::Submitted { job: job.key.id });
        desk.put_payload(&job.key, new.payload.clone());
        let failed = join_parents(desk, &mut job)?;
        let job = admit(desk, job, failed.as_ref())?;
        Ok(Ok(Submitted { job: job.key.id, state: job.state, existing: false }))
    }
}

/// Refuses an id that is taken and a definition that is not in force, and tells the newest version of the latter.
pub(crate) fn check_new(desk: &mut Desk, namespace: &Namespace, new: &NewJob) -> Result<Option<u32>, Stop> {
    if desk.job(&JobKey::new(namespace, new.id))?.is_some() {
        return Err(Refusal::Exists { what: "job", name: new.id.to_string() }.into());
    }
    let Some(definition) = &new.definition else { return Ok(None) };
    let head = match new.definition_access() {
        Access::Look => desk.peek::<DefinitionHead>(namespace, &definition.name)?,
        _ => desk.share::<DefinitionHead>(namespace, &definition.name)?,
    };
    let head = head.filter(|head| head.deleted_at.is_none());
    let head = head.ok_or_else(|| Refusal::not_found("definition", &definition.name))?;
    if !new.newest && (definition.version == 0 || definition.version > head.latest) {
        return Err(Refusal::VersionMismatch {
            what: "definition",
            name: definition.name.to_string(),
            expected: definition.version.into(),
            is: head.latest.into(),
        }
        .into());
    }
    Ok(Some(head.latest))
}

/// Ties the job to its parents and counts those it has to wait for. Gives back one that has failed, if any has.
fn join_parents(desk: &mut Desk, job: &mut Job) -> Result<Option<Job>, Stop> {
    let namespace = job.key.namespace.clone();
    let keys: Vec<JobKey> = job.spec.parents.iter().map(|&id| JobKey::new(&namespace, id)).collect();
    desk.want_jobs(&keys)?;
    // Two of them may have become the same one.
    let mut parents = BTreeMap::new();
    for key in &keys {
        let parent = latest(desk, key)?;
        parents.insert(parent.key.id, parent);
    }
    let mut failed = None;
    for mut parent in parents.into_values() {
        if parent.state.is_final() {
            let end = End::of(&parent);
            parents::hear(&mut job.live, end);
            failed = failed.or_else(|| (end == End::Failed).then_some(parent));
            continue;
        }
        job.live.waiting += 1;
        desk.put_edge(&parent.key, &job.key);
        if !parent.live.dependents {
            parent.live.dependents = true;
            desk.put_job(parent);
        }
    }
    Ok(failed)
}

/// The job, or the last of those it was retried as: whoever waits for it waits for that one.
fn latest(desk: &mut Desk, key: &JobKey) -> Result<Job, Stop> {
    let mut job = desk.job(key)?.ok_or_else(|| Refusal::not_found("parent job", key.id))?;
    while let Some(retry) = job.live.retry_job {
        match desk.job(&JobKey::new(&key.namespace, retry))? {
            Some(next) => job = next,
            None => break,
        }
    }
    Ok(job)
}

/// Lets a new job in: to wait, or to its end if its parents decided that already.
fn admit(desk: &mut Desk, mut job: Job, failed: Option<&Job>) -> Result<Job, Stop> {
    let verdict = parents::verdict(job.spec.policy.parents, Heard::of(&job.live));
    let (state, outcome) = match (verdict, failed) {
        (Verdict::Wait | Verdict::Go, _) => {
            life::queue(desk, &mut job)?;
            desk.put_job(job.clone());
            return Ok(job);
        }
        (Verdict::Cancel, Some(parent)) => (State::Cancelled, life::parent_outcome(parent)),
        (Verdict::Skip(Reason::ParentNotCompleted), Some(parent)) => (State::Skipped, life::parent_outcome(parent)),
        _ => (State::Skipped, life::needless(&job.live)),
    };
    job.live.waiting = 0;
    life::end(desk, job, state, Some(outcome))
}
