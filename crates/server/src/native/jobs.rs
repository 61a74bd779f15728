//! `/api/v1/jobs`: submit, read, list, wait, cancel, retry.

use super::pages;
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, Sent, ok},
    auth::Caller,
    config::table,
    convert, definition,
    problem::{Code, Problem, Result},
    room::Room,
    route::{Access, Header, Route},
    schema::Part,
    trace::TRACEPARENT,
};
use axum::{
    extract::{FromRequestParts, State},
    response::Response,
};
use http::{StatusCode, request::Parts};
use std::{collections::HashMap, sync::Arc, time::Duration};
use windlass_api::{
    Problem as WireProblem, Uuid,
    job::{
        Answer as Each, CancelJob, Job, ListJobs, RetryJob, SubmitJob, SubmitMany, Submitted, SubmittedMany, WaitJob,
    },
    page::Page,
};
use windlass_core::{
    Facet, JobId, JobKey, Namespace, RunId, State as JobState, WorkerId,
    commands::{
        ask::AllOf,
        cancel::Cancel,
        retry::Retry,
        submit::{NewJob, Submit},
    },
    definition::DefinitionHead,
    job::{DefinitionRef, name_fault},
};
use windlass_engine::{
    ids,
    store::{JobQuery, NamePrefix},
};

/// Jobs in one request.
pub const MANY_MAX: usize = 1_000;
/// Bytes of a definition's payload that need no room.
const ADDED_FREE: usize = 1 << 10;
const ID_PREFIX_MIN: usize = 4;
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;
/// A larger payload is not looked into for a command.
const COMMAND_BYTES_MAX: usize = 4_096;
const WAIT_MS: u64 = 30_000;
pub const WAIT_MS_MAX: u64 = 60_000;
/// A batch carries many payloads.
const MANY_BODY_MAX: usize = 16 << 20;

/// Why a submit is refused, one job or many.
/// Why a submit, of a job or of a run, may be refused.
pub const REFUSED: [Code; 8] = [
    Code::Invalid,
    Code::Schema,
    Code::TooLarge,
    Code::KeyReused,
    Code::Exists,
    Code::Cycle,
    Code::NotFound,
    Code::VersionMismatch,
];

pub const IDEMPOTENCY_KEY: Header = Header::text(
    "Idempotency-Key",
    "Repeating a call with its key makes no second job or run; `idempotency_key` in the body wins.",
);

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/jobs", Access::Editor, submit)
            .says("Submit a job")
            .reads(IDEMPOTENCY_KEY)
            .reads(TRACEPARENT)
            .takes::<SubmitJob>()
            .answers::<Submitted>(201)
            .answers::<Submitted>(200)
            .refuses(&REFUSED),
        Route::post("/api/v1/jobs/batch", Access::Editor, submit_many)
            .says("Submit many jobs in one transaction")
            .reads(TRACEPARENT)
            .takes::<SubmitMany>()
            .answers::<SubmittedMany>(200)
            .refuses(&REFUSED)
            .body_max(MANY_BODY_MAX),
        Route::get("/api/v1/jobs", Access::Viewer, list)
            .says("List jobs, newest first, or by name")
            .query::<ListJobs>()
            .answers::<Page<Job>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/jobs/{id}", Access::Any, show)
            .says("One job, with payload, result and past attempts")
            .answers::<Job>(200)
            .refuses(&[Code::NotFound]),
        Route::get("/api/v1/jobs/{id}/wait", Access::Any, wait)
            .says("Wait until a job has ended, or the time is up; returns the job")
            .query::<WaitJob>()
            .answers::<Job>(200)
            .refuses(&[Code::NotFound]),
        Route::post("/api/v1/jobs/{id}/cancel", Access::Editor, cancel)
            .says("Cancel a job; the worker of a running job is told at once")
            .query::<CancelJob>()
            .answers::<Job>(200)
            .refuses(&[Code::NotFound, Code::Final]),
        Route::post("/api/v1/jobs/{id}/retry", Access::Editor, retry)
            .says("Run a finished job again, as a new job; a job that was retried before only with `again`")
            .query::<RetryJob>()
            .answers::<Submitted>(201)
            .refuses(&[Code::NotFound, Code::Invalid]),
    ]
}

/// The key in a header, for callers that leave bodies alone.
pub(super) struct IdempotencyKey(pub Option<String>);

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        Ok(Self(IDEMPOTENCY_KEY.of(&parts.headers)?.map(str::to_owned)))
    }
}

async fn submit(
    State(app): State<App>,
    ask: Ask,
    IdempotencyKey(key): IdempotencyKey,
    Sent(mut body): Sent<SubmitJob>,
) -> Result<Answer<Submitted>> {
    body.idempotency_key = body.idempotency_key.or(key);
    let mut room = None;
    let mut command = command(&app, &ask, &body, &mut room).await?;
    let mut span = app.options.traces.begin("submit", ask.trace);
    span.stamp(&mut command.job);
    let submitted = convert::submitted(app.engine.run(command).await?);
    let status = if submitted.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Answer(status, submitted))
}

async fn submit_many(State(app): State<App>, ask: Ask, Sent(body): Sent<SubmitMany>) -> Result<Answer<SubmittedMany>> {
    if body.jobs.len() > MANY_MAX {
        let why = format!("{} jobs in one request; at most {MANY_MAX}", body.jobs.len());
        return Err(Problem::new(Code::TooLarge, why).at("jobs"));
    }
    let mut jobs = Vec::with_capacity(body.jobs.len());
    let mut span = app.options.traces.begin("submit", ask.trace);
    let mut room = None;
    for (at, job) in body.jobs.iter().enumerate() {
        let mut job = command(&app, &ask, job, &mut room).await.map_err(|problem| in_job(at, problem));
        if let Ok(job) = &mut job {
            span.stamp(&mut job.job);
        }
        jobs.push(job);
    }
    let jobs = if body.atomic { all_or_none(&app, jobs).await? } else { each_by_itself(&app, jobs).await? };
    Ok(ok(SubmittedMany { jobs }))
}

/// Says which of several jobs a problem is about.
fn in_job(at: usize, mut problem: Problem) -> Problem {
    let field = problem.0.field.take().map(|field| format!(".{field}")).unwrap_or_default();
    problem.at(format!("jobs[{at}]{field}"))
}

async fn all_or_none(app: &App, jobs: Vec<Result<Submit>>) -> Result<Vec<Each<Submitted>>> {
    let jobs: Vec<Submit> = jobs.into_iter().collect::<Result<_, _>>()?;
    let submitted = app.engine.run(AllOf(jobs)).await?;
    Ok(submitted.into_iter().map(|job| Each::Done(convert::submitted(job))).collect())
}

async fn each_by_itself(app: &App, jobs: Vec<Result<Submit>>) -> Result<Vec<Each<Submitted>>> {
    let mut answers: Vec<Option<Problem>> = Vec::with_capacity(jobs.len());
    let mut commands = Vec::with_capacity(jobs.len());
    for job in jobs {
        match job {
            Ok(job) => {
                commands.push(job);
                answers.push(None);
            }
            Err(problem) => answers.push(Some(problem)),
        }
    }
    let mut replies = app.engine.run_many(commands).await?.into_iter();
    let answer = |(at, refused): (usize, Option<Problem>)| match refused {
        Some(problem) => Each::Refused { problem: *problem.0 },
        None => match replies.next().expect("each command has a reply") {
            Ok(submitted) => Each::Done(convert::submitted(submitted)),
            Err(refusal) => Each::Refused { problem: wire(in_job(at, refusal.into())) },
        },
    };
    Ok(answers.into_iter().enumerate().map(answer).collect())
}

pub fn wire(problem: Problem) -> WireProblem {
    *problem.0
}

/// What a definition adds takes room as if it had been sent: a small request could ask for much of it.
async fn command(app: &App, ask: &Ask, body: &SubmitJob, room: &mut Option<Room>) -> Result<Submit> {
    let job = new_job(app, &ask.namespace, body, owner(&ask.caller)).await?;
    if body.payload.is_none() && job.payload.len() > ADDED_FREE {
        let added = job.payload.len() as u64;
        match room {
            Some(room) => room.grow(added)?,
            None => *room = Some(app.rooms.take(&ask.caller.root, added)?),
        }
        tokio::task::yield_now().await;
    }
    Ok(Submit { namespace: ask.namespace.clone(), job })
}

/// The job as the rules take it: with its definition's settings where it is silent, and a payload the definition allows.
pub async fn new_job(app: &App, namespace: &Namespace, body: &SubmitJob, owner: Option<Arc<str>>) -> Result<NewJob> {
    let id = body.id.map_or_else(ids::job_id, JobId);
    let Some(name) = &body.definition else { return convert::new_job(body, id, None, owner) };
    let reference = find_definition(app, namespace, name).await?;
    let definition = app.schemas.get(namespace, &reference).await?;
    let filled = definition::fill(body, &definition.body)?;
    let job = convert::new_job(&filled, id, Some(reference), owner)?;
    app.schemas.check(namespace, &definition, Part::Payload, &job.payload).await?;
    // The key stands for what was sent: a new version of the definition must not make a repetition look different.
    Ok(NewJob { unique: convert::unique(body)?, ..job })
}

pub(super) fn owner(caller: &Caller) -> Option<Arc<str>> {
    Some(caller.name.clone())
}

/// `name`, or `name@version`.
async fn find_definition(app: &App, namespace: &Namespace, text: &str) -> Result<DefinitionRef> {
    let (name, version) = match text.rsplit_once('@') {
        Some((name, version)) => {
            let version = version.parse().map_err(|_| {
                Problem::invalid("definition", format!("{version:?} is not a version; write name or name@3"))
            })?;
            (name, Some(version))
        }
        None => (text, None),
    };
    let head =
        app.engine.read_record::<DefinitionHead>(namespace, name).await?.filter(|head| head.deleted_at.is_none());
    let head = head.ok_or_else(|| Problem::not_found("definition", name).at("definition"))?;
    Ok(DefinitionRef { name: name.into(), version: version.unwrap_or(head.latest) })
}

async fn list(State(app): State<App>, ask: Ask, Query(query): Query<ListJobs>) -> Result<Response> {
    let question = || format!("jobs {} {query:?}", ask.namespace);
    app.once.or_fresh(question, query.max_age_ms, page(&app, &ask.namespace, &query)).await
}

async fn page(app: &App, namespace: &Namespace, query: &ListJobs) -> Result<Page<Job>> {
    let limit = page_size(query.limit)?;
    let mut jobs = job_query(namespace, query, limit)?;
    let mut first = JobId::from_u128(0);
    if query.id.is_some() && query.name.is_some() {
        return Err(Problem::invalid("name", "give either name or id, not both"));
    }
    if let Some(prefix) = query.id.as_deref() {
        let (low, above) = id_range(prefix)?;
        first = low;
        let above = above.map(|above| (namespace.clone(), above));
        jobs.before = match (jobs.before, above) {
            (Some(cursor), Some(above)) => Some(if cursor.1 < above.1 { cursor } else { above }),
            (cursor, above) => cursor.or(above),
        };
    }
    let (found, more) = pages::jobs(app, jobs).await?;
    // Newest first means highest id first: whatever follows one that is too low is too low as well.
    let fits = found.iter().take_while(|job| job.key.id >= first);
    let mut items: Vec<Job> = fits.map(convert::job).collect();
    if query.commands {
        tell_commands(app, namespace, &mut items).await?;
    }
    let next = found.last().filter(|_| more && items.len() == found.len()).map(|job| cursor(job, query));
    Ok(Page { items, next })
}

/// What jobs of commands run. Only of payloads that are small, so that a page costs what its length says.
async fn tell_commands(app: &App, namespace: &Namespace, items: &mut [Job]) -> Result<()> {
    let keys: Vec<JobKey> = items.iter().map(|job| JobKey::new(namespace, JobId(job.id))).collect();
    let payloads = app.engine.store().small_payloads(&keys, COMMAND_BYTES_MAX).await?;
    let mut commands: HashMap<Uuid, String> =
        payloads.iter().filter_map(|(key, payload)| Some((key.id.0, convert::command(payload.as_bytes())?))).collect();
    items.iter_mut().for_each(|job| job.command = commands.remove(&job.id));
    Ok(())
}

/// The lowest id that begins so, and the first one above them all, if there is one.
pub fn id_range(prefix: &str) -> Result<(JobId, Option<JobId>)> {
    let digits: String = prefix.chars().filter(|c| *c != '-').collect();
    if prefix.len() < ID_PREFIX_MIN || digits.len() > 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let why = format!("give at least {ID_PREFIX_MIN} characters of a job's id, from its beginning");
        return Err(Problem::invalid("id", why));
    }
    let bits = u128::from_str_radix(&digits, 16).map_err(|_| Problem::invalid("id", "is not part of a job's id"))?;
    let open = 128 - 4 * digits.len() as u32;
    let low = bits.checked_shl(open).unwrap_or(0);
    let above = 1u128.checked_shl(open).map_or(low.checked_add(1), |count| low.checked_add(count));
    Ok((JobId::from_u128(low), above.map(JobId::from_u128)))
}

pub fn page_size(limit: Option<u32>) -> Result<usize> {
    match limit.map_or(PAGE, |limit| limit as usize) {
        limit if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
        limit => Err(Problem::invalid("limit", format!("{limit} is not between 1 and {PAGE_MAX}"))),
    }
}

pub fn job_query(namespace: &Namespace, query: &ListJobs, limit: usize) -> Result<JobQuery> {
    let unknown = || Problem::invalid("cursor", "hand back `next` as it came");
    let (cursor, named) = match (query.cursor.as_deref(), &query.name) {
        (Some(cursor), Some(_)) => {
            cursor.split_once('.').map(|(id, name)| (Some(id), Some(name))).ok_or_else(unknown)?
        }
        (cursor, _) => (cursor, None),
    };
    let id = cursor.map(|cursor| cursor.parse::<JobId>().map_err(|_| unknown())).transpose()?;
    let name = query.name.as_deref().map(|prefix| name_prefix(prefix, named)).transpose()?;
    Ok(JobQuery {
        namespace: Some(namespace.clone()),
        states: query.state.as_deref().map_or(Ok(Vec::new()), states)?,
        facet: query.facet.as_deref().map(facet).transpose()?,
        run: query.run.map(RunId),
        holder: query.worker.as_deref().map(WorkerId::new).transpose()?,
        name,
        before: id.map(|id| (namespace.clone(), id)),
        limit,
    })
}

/// What the next page begins after: an id, and in a list by name the name as well.
fn cursor(last: &windlass_core::Job, query: &ListJobs) -> String {
    match &last.spec.name {
        Some(name) if query.name.is_some() => format!("{}.{name}", last.key.id),
        _ => last.key.id.to_string(),
    }
}

fn name_prefix(prefix: &str, before: Option<&str>) -> Result<NamePrefix> {
    match name_fault(prefix) {
        Some(fault) => Err(Problem::invalid("name", fault)),
        None => Ok(NamePrefix { prefix: prefix.into(), before: before.map(Into::into) }),
    }
}

fn states(text: &str) -> Result<Vec<JobState>> {
    let known = |name: &str| JobState::ALL.into_iter().find(|state| state.name() == name);
    let all = JobState::ALL.map(JobState::name).join(", ");
    let find = |name: &str| {
        known(name.trim()).ok_or_else(|| Problem::invalid("state", format!("{name:?} is not a state; there are {all}")))
    };
    text.split(',').map(find).collect()
}

fn facet(text: &str) -> Result<Facet> {
    let named = text.split_once(':').filter(|(name, _)| !name.is_empty());
    let (name, value) = named.ok_or_else(|| Problem::invalid("facet", "write it as name:value"))?;
    Ok(Facet::new(name, value))
}

async fn show(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<Job>> {
    whole(&app, &JobKey::new(&ask.namespace, JobId(id))).await.map(ok)
}

/// The row is read last: a body that is newer than its row would show a result on a running job.
async fn whole(app: &App, key: &JobKey) -> Result<Job> {
    let missing = || Problem::not_found("job", key.id);
    let body = app.engine.store().body(key).await?.ok_or_else(missing)?;
    let job = app.engine.store().job(key).await?.ok_or_else(missing)?;
    let mut job = convert::whole_job(&job, &body);
    let template = app.options.values.some(table::trace_url);
    job.trace_url = template.zip(job.trace.as_deref()).map(|(template, trace)| template.replace("{trace}", trace));
    Ok(job)
}

async fn wait(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    Query(query): Query<WaitJob>,
) -> Result<Answer<Job>> {
    let key = JobKey::new(&ask.namespace, JobId(id));
    let wait = Duration::from_millis(query.wait_ms.unwrap_or(WAIT_MS).min(WAIT_MS_MAX));
    ask.waits();
    app.engine.watch(&key, wait).await?.ok_or_else(|| Problem::not_found("job", id))?;
    whole(&app, &key).await.map(ok)
}

async fn cancel(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    Query(query): Query<CancelJob>,
) -> Result<Answer<Job>> {
    let mode = query.mode.map(convert::cancel);
    let cancel = Cancel {
        namespace: ask.namespace.clone(),
        job: JobId(id),
        by: ask.caller.name.clone(),
        mode,
        message: "".into(),
    };
    Ok(ok(convert::job(&*app.engine.run(cancel).await?)))
}

async fn retry(
    State(app): State<App>,
    ask: Ask,
    Path(id): Path<Uuid>,
    Query(query): Query<RetryJob>,
) -> Result<Answer<Submitted>> {
    let retry = Retry { namespace: ask.namespace.clone(), job: JobId(id), id: ids::job_id(), again: query.again };
    Ok(Answer(StatusCode::CREATED, convert::submitted(app.engine.run(retry).await?)))
}
