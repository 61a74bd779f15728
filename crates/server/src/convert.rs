//! Between the wire and the engine: pure functions, no rules.

use crate::{
    problem::{Code, Problem, Result},
    wire_time::{maybe, millis, parse, text},
};
use std::{collections::BTreeMap, sync::Arc};
use windlass_api as api;
use windlass_core::{
    Event, Facet, Job, JobId, LeaseId, Leased, Namespace, Outcome, Payload, Tags, Timestamp,
    commands::submit::NewJob,
    job::{self, DefinitionRef, UniqueKey, UniqueUntil},
    policy::{CancelPolicy, JobPolicy, ParentPolicy},
    principal::Role,
    reply::Submitted,
    worker::{Liveness, Worker},
};
use windlass_engine::store::JobBody;
use windlass_plan::settings;

const IDEMPOTENCY_MS: u64 = 86_400_000;

/// Of a command as lists show it.
const COMMAND_CHARS: usize = 200;

pub use crate::wire_state::wire_state as state;

pub fn tags<'a>(tags: impl IntoIterator<Item = &'a String>) -> Tags {
    tags.into_iter().map(String::as_str).collect()
}

pub fn payload(json: Option<&api::Json>) -> Payload {
    json.map_or_else(Payload::default, |json| Payload::from(json.get()))
}

/// What was stored is JSON, because only JSON gets in; anything else (an older dialect's bytes) is shown as text.
pub fn json(payload: &Payload) -> Option<api::Json> {
    if payload.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(payload.as_bytes()).into_owned();
    api::RawValue::from_string(text)
        .or_else(|_| serde_json::value::to_raw_value(&String::from_utf8_lossy(payload.as_bytes())))
        .ok()
}

pub fn lease(text: &str) -> Result<LeaseId> {
    text.parse().map_err(|_| Problem::invalid("lease", "this is not a lease id; send the one the claim gave"))
}

/// A submitted job as the rules take it. `definition` was looked up before.
pub fn new_job(
    body: &api::job::SubmitJob,
    id: JobId,
    definition: Option<DefinitionRef>,
    owner: Option<Arc<str>>,
) -> Result<NewJob> {
    if body.run_at.is_some() && body.delay_ms.is_some() {
        return Err(Problem::invalid("delay_ms", "give either run_at or delay_ms, not both"));
    }
    let job = settings::new_job(&body.settings, id);
    Ok(NewJob {
        payload: payload(body.payload.as_ref()),
        run_at: body.run_at.as_deref().map(|text| parse("run_at", text)).transpose()?,
        delay: body.delay_ms.map(millis),
        policy: JobPolicy {
            cancel: body.cancel.map_or(job.policy.cancel, cancel),
            parents: body.when_parent_fails.map_or(job.policy.parents, when_parent_fails),
            ..job.policy
        },
        parents: body.after.iter().map(|&id| JobId(id)).collect(),
        definition,
        facets: body.facets.iter().map(|(name, value)| Facet::new(name, value)).collect(),
        unique: unique(body)?,
        owner,
        ..job
    })
}

/// The key stands for the whole body, so the body is hashed, without the key's own fields.
pub fn unique(body: &api::job::SubmitJob) -> Result<Option<UniqueKey>> {
    let Some(key) = &body.idempotency_key else { return Ok(None) };
    let bytes = body.signature().map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let until = match body.idempotency_ms.unwrap_or(IDEMPOTENCY_MS) {
        0 => UniqueUntil::Final,
        length => UniqueUntil::After(millis(length)),
    };
    Ok(Some(unique_key(key, bytes.as_bytes(), until)))
}

/// A key for a call without a body: it stands for `what`.
pub fn unique_for(key: &str, what: &str) -> UniqueKey {
    unique_key(key, what.as_bytes(), UniqueUntil::After(millis(IDEMPOTENCY_MS)))
}

fn unique_key(key: &str, bytes: &[u8], until: UniqueUntil) -> UniqueKey {
    let body_hash = windlass_api::hex(&<sha2::Sha256 as sha2::Digest>::digest(bytes));
    UniqueKey { key: key.into(), body_hash: body_hash.into(), until }
}

fn when_parent_fails(wire: api::job::WhenParentFails) -> ParentPolicy {
    use api::job::WhenParentFails;
    match wire {
        WhenParentFails::Skip => ParentPolicy::Skip,
        WhenParentFails::Run => ParentPolicy::RunAnyway,
        WhenParentFails::Cancel => ParentPolicy::CancelRun,
    }
}

pub fn cancel(mode: api::job::CancelMode) -> CancelPolicy {
    use api::job::CancelMode;
    match mode {
        CancelMode::Revoke => CancelPolicy::Revoke,
        CancelMode::Drain => CancelPolicy::Drain,
    }
}

pub fn definition(reference: &DefinitionRef) -> String {
    format!("{}@{}", reference.name, reference.version)
}

/// A job as lists show it.
pub fn job(job: &Job) -> api::job::Job {
    let (spec, live) = (&job.spec, &job.live);
    api::job::Job {
        id: job.key.id.0,
        namespace: job.key.namespace.to_string(),
        state: state(job.state),
        name: spec.name.as_deref().map(str::to_owned),
        priority: job.priority,
        tags: spec.tags.iter().map(str::to_owned).collect(),
        definition: spec.definition.as_ref().map(definition),
        owner: spec.owner.as_deref().map(str::to_owned),
        run: spec.node.as_ref().map(|node| node.run.0),
        node: spec.node.as_ref().map(|node| node.name.to_string()),
        after: spec.parents.iter().map(|id| id.0).collect(),
        facets: facets(&spec.facets),
        concurrency: spec
            .concurrency
            .as_ref()
            .map(|key| api::job::Concurrency { key: key.key.to_string(), limit: key.limit }),
        attempt: live.attempt,
        attempts_max: spec.policy.retry.attempts,
        worker: live.lease.as_ref().map(|lease| lease.worker.to_string()),
        // What a completed job reported on its way says no more how far it is.
        progress: live
            .progress
            .as_ref()
            .filter(|said| job.state != job::State::Completed || said.percent >= 100.0)
            .map(progress),
        cancel_requested: live.cancel.is_some() && !job.state.is_final(),
        error: live.outcome.as_ref().map(error),
        created_at: text(spec.created_at),
        run_at: maybe(live.run_at),
        claimed_at: maybe(live.claimed_at),
        started_at: maybe(started(live.started_at, live.claimed_at, live.finished_at)),
        finished_at: maybe(live.finished_at),
        lease_until: maybe(live.lease.as_ref().filter(|_| job.state.is_held()).and_then(|lease| lease.until)),
        deadline_at: maybe(live.deadline),
        retry_of: spec.retry_of.map(|id| id.0),
        retried_as: live.retry_job.map(|id| id.0),
        retried_by: live.retried_by.map(|id| id.0),
        log_bytes: live.log.bytes,
        log_bytes_dropped: live.log.dropped_bytes,
        command: None,
        payload: None,
        result: None,
        attempts: Vec::new(),
        before: Vec::new(),
        trace: None,
        trace_url: None,
    }
}

/// The command that a payload holds, in the words in which `windlass-worker --allow-commands` takes it.
pub fn command(payload: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Command {
        shell: Option<String>,
        command: Option<Vec<String>>,
    }
    let quoted = |word: &String| match word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '\'') {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word.clone(),
    };
    let found: Command = serde_json::from_slice(payload).ok()?;
    let text = found.shell.or_else(|| Some(found.command?.iter().map(quoted).collect::<Vec<_>>().join(" ")))?;
    match text.char_indices().nth(COMMAND_CHARS) {
        Some((end, _)) => Some(format!("{}…", &text[..end])),
        None => Some(text),
    }
}

/// A job with the parts that lists leave out.
pub fn whole_job(row: &Job, body: &JobBody) -> api::job::Job {
    api::job::Job {
        payload: json(&body.payload),
        result: body.result.as_ref().and_then(json),
        attempts: body.attempts.iter().map(attempt).collect(),
        before: body.children.iter().map(|id| id.0).collect(),
        trace: crate::trace::of_extra(row.spec.extra.as_deref()).map(|parent| parent.trace_id()),
        ..job(row)
    }
}

pub fn facets(facets: &[Facet]) -> BTreeMap<String, String> {
    facets.iter().map(|facet| (facet.name.to_string(), facet.value.to_string())).collect()
}

/// A worker whose only report was its last one has worked since its claim.
fn started(started: Option<Timestamp>, claimed: Option<Timestamp>, ended: Option<Timestamp>) -> Option<Timestamp> {
    if started.is_some() && started == ended { claimed.or(started) } else { started }
}

fn progress(progress: &job::Progress) -> api::job::Progress {
    api::job::Progress { percent: progress.percent, message: progress.message.to_string() }
}

/// A reason's name on the wire is its stored name: both are promised to stay.
fn error(outcome: &Outcome) -> api::job::JobError {
    let reason = serde_json::to_value(outcome.reason).ok().and_then(|value| value.as_str().map(str::to_owned));
    api::job::JobError { reason: reason.unwrap_or_default(), message: outcome.message.to_string() }
}

fn attempt(attempt: &job::Attempt) -> api::job::Attempt {
    api::job::Attempt {
        number: attempt.number,
        worker: attempt.worker.to_string(),
        claimed_at: maybe(attempt.claimed_at),
        started_at: maybe(started(attempt.started_at, attempt.claimed_at, Some(attempt.ended_at))),
        ended_at: text(attempt.ended_at),
        error: error(&attempt.outcome),
    }
}

/// What a worker gets. Times are told as lengths from the claim as well, because clocks differ.
pub fn leased(leased: &Leased) -> api::lease::Leased {
    let (job, spec) = (&leased.job, &leased.job.spec);
    let lease = job.live.lease.as_ref().expect("a leased job has a lease");
    let claimed = job.live.claimed_at.unwrap_or_default();
    api::lease::Leased {
        lease: leased.lease.to_string(),
        job: job.key.id.0,
        attempt: job.live.attempt,
        lease_ms: lease.until.map(|_| lease.length.0.unsigned_abs()),
        until: maybe(lease.until),
        deadline: maybe(lease.deadline),
        deadline_ms: lease.deadline.map(|deadline| (deadline - claimed).0.max(0).unsigned_abs()),
        tags: spec.tags.iter().map(str::to_owned).collect(),
        definition: spec.definition.as_ref().map(definition),
        run: spec.node.as_ref().map(|node| node.run.0),
        node: spec.node.as_ref().map(|node| node.name.to_string()),
        after: spec.parents.iter().map(|id| id.0).collect(),
        traceparent: crate::trace::of_extra(spec.extra.as_deref()).map(|parent| parent.to_string()),
        payload: json(&leased.payload),
    }
}

pub fn worker(namespace: &Namespace, worker: &Worker, now: Timestamp) -> api::worker::Worker {
    api::worker::Worker {
        worker: worker.id.to_string(),
        namespace: namespace.to_string(),
        state: match worker.liveness(now) {
            Liveness::Online => api::worker::Liveness::Online,
            Liveness::Unreachable => api::worker::Liveness::Unreachable,
            Liveness::Offline => api::worker::Liveness::Offline,
        },
        draining: worker.draining,
        tags: worker.tags.iter().map(str::to_owned).collect(),
        slots: worker.slots,
        owner: worker.owner.as_deref().map(str::to_owned),
        registered_at: text(worker.registered_at),
        last_seen: text(worker.last_seen),
        info: worker.extra.as_deref().and_then(|extra| serde_json::from_str(extra).ok()),
    }
}

pub fn role(role: Role) -> api::token::Role {
    match role {
        Role::Viewer => api::token::Role::Viewer,
        Role::Editor => api::token::Role::Editor,
        Role::Admin => api::token::Role::Admin,
        Role::Worker => api::token::Role::Worker,
    }
}

pub fn role_back(role: api::token::Role) -> Role {
    match role {
        api::token::Role::Viewer => Role::Viewer,
        api::token::Role::Editor => Role::Editor,
        api::token::Role::Admin => Role::Admin,
        api::token::Role::Worker => Role::Worker,
    }
}

/// An event's fields are on the wire what they are in the store: both are promised to stay.
pub fn event(number: u64, event: &Event) -> api::event::Event {
    let fields = serde_json::to_value(&event.what).ok();
    let mut rest: BTreeMap<String, serde_json::Value> = match fields {
        Some(serde_json::Value::Object(fields)) => fields.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    let mut take = |name: &str| rest.remove(name).and_then(|value| value.as_str().map(str::to_owned));
    take("type");
    let (job, run, worker) = (take("job"), take("run"), take("worker"));
    api::event::Event {
        id: number,
        namespace: event.namespace.to_string(),
        at: text(event.at),
        kind: event.what.name().to_owned(),
        job: job.and_then(|id| id.parse().ok()),
        worker,
        run: run.and_then(|id| id.parse().ok()),
        rest,
    }
}

pub fn submitted(made: Submitted) -> api::job::Submitted {
    api::job::Submitted { id: made.job.0, state: state(made.state), existing: made.existing }
}
