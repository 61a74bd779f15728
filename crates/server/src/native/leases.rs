//! `/api/v1/leases`: claim, keep, report. Lease ids travel in bodies only.

use super::{
    jobs::{MANY_MAX, WAIT_MS_MAX, wire},
    said::Said,
};
use crate::{
    app::App,
    ask::{Answer, Ask, Sent, ok},
    auth::Caller,
    convert::{self, lease},
    problem::{Code, Problem, Result},
    route::{Access, Header, Route},
    wire_time::{maybe, millis},
};
use axum::extract::State;
use http::HeaderMap;
use std::{sync::Arc, time::Duration};
use windlass_api::{
    job::Answer as Each,
    lease::{
        AppendLog, Batch, BatchDone, Claim, Claimed, Complete, Do, Ended, Fail, LeaseOnly, Leased, Logged, Operation,
        OperationDone, Release, Renewed, ReportProgress, Sync, Synced, SyncedLease,
    },
};
use windlass_core::{
    Job, Namespace, Refusal, State as JobState, Timestamp, WorkerId,
    commands::{
        self as core,
        ask::Asked,
        claim::{Offer, Unknown},
        holder::Holder,
    },
    policy::WorkerPolicy,
    principal::Role,
    reply,
    worker::Worker,
};
use windlass_engine::ids;

/// A batch carries many results.
const BATCH_BODY_MAX: usize = 16 << 20;

pub fn routes() -> Vec<Route> {
    let post = |path, summary| (path, summary);
    let lost = &[Code::LeaseLost, Code::NotHeld, Code::NotHolder, Code::NotFound, Code::Invalid];
    let row = |(path, summary): (&'static str, &'static str), route: fn(&'static str) -> Route| {
        route(path).says(summary).refuses(lost)
    };
    vec![
        row(post("/api/v1/leases/claim", "Claim jobs; with `wait_ms`, wait for some"), |path| {
            Route::post(path, Access::Worker, claim).takes::<Claim>().answers::<Claimed>(200)
        })
        .refuses(&[Code::WorkerNotOnline, Code::WorkerDraining, Code::Forbidden]),
        row(post("/api/v1/leases/renew", "Renew a lease"), |path| {
            Route::post(path, Access::Worker, renew).takes::<LeaseOnly>().answers::<Renewed>(200)
        }),
        row(
            post("/api/v1/leases/progress", "Report a job's progress; the first report changes its state to running"),
            |path| Route::post(path, Access::Worker, progress).takes::<ReportProgress>().answers::<Renewed>(200),
        ),
        row(post("/api/v1/leases/logs", "Append to a job's log"), |path| {
            Route::post(path, Access::Worker, logs).takes::<AppendLog>().answers::<Logged>(200)
        })
        .refuses(&[Code::TooLarge]),
        row(
            post("/api/v1/leases/complete", "Report success, and optionally claim the next jobs in the same call"),
            |path| Route::post(path, Access::Worker, complete).takes::<Complete>().answers::<Ended>(200),
        )
        .refuses(&[Code::TooLarge, Code::Schema]),
        row(
            post("/api/v1/leases/fail", "Report failure, and optionally claim the next jobs in the same call"),
            |path| Route::post(path, Access::Worker, fail).takes::<Fail>().answers::<Ended>(200),
        )
        .refuses(&[Code::TooLarge]),
        row(post("/api/v1/leases/release", "Give a job back without using up an attempt"), |path| {
            Route::post(path, Access::Worker, release).takes::<Release>().answers::<Ended>(200)
        }),
        row(
            post("/api/v1/leases/sync", "Heartbeat, renewals, progress and logs of a whole worker in one call"),
            |path| {
                Route::post(path, Access::Worker, sync).takes::<Sync>().answers::<Synced>(200).body_max(BATCH_BODY_MAX)
            },
        )
        .refuses(&[Code::TooLarge]),
        row(post("/api/v1/leases/batch", "Many reports in one transaction, and a claim after them"), |path| {
            Route::post(path, Access::Worker, batch).takes::<Batch>().answers::<BatchDone>(200).body_max(BATCH_BODY_MAX)
        })
        .refuses(&[Code::TooLarge, Code::Schema]),
    ]
}

/// What a worker writes beside its job is sent with the lease of that job.
pub const LEASE: Header = Header::text("Windlass-Lease", "The lease of the job. Required for workers.");

fn holder(ask: &Ask, text: &str) -> Result<Holder> {
    holder_as(&ask.caller, &ask.namespace, text)
}

fn holder_as(caller: &Caller, namespace: &Namespace, text: &str) -> Result<Holder> {
    Ok(Holder { principal: Some(caller.name.clone()), ..Holder::lease(namespace, lease(text)?) })
}

/// The holder that a request's header names. A worker has to name one; whoever names one is held to it.
pub fn sent_holder(caller: &Caller, namespace: &Namespace, headers: &HeaderMap) -> Result<Option<Holder>> {
    match LEASE.of(headers)? {
        Some(text) => holder_as(caller, namespace, text).map(Some),
        None if caller.role == Role::Worker => Err(Problem::invalid(LEASE.name, "send the lease the claim gave")),
        None => Ok(None),
    }
}

async fn claim(State(app): State<App>, ask: Ask, Sent(body): Sent<Claim>) -> Result<Answer<Claimed>> {
    Ok(ok(Claimed { leases: claim_jobs(&app, &ask, &body).await? }))
}

pub async fn claim_jobs(app: &App, ask: &Ask, body: &Claim) -> Result<Vec<Leased>> {
    let max = body.max.unwrap_or(1);
    let most = app.engine.settings().limits.claim_max;
    if max == 0 || max as usize > most {
        return Err(Problem::invalid("max", format!("{max} is not between 1 and {most}")));
    }
    let wait = body.wait_ms.unwrap_or(0);
    if wait > WAIT_MS_MAX {
        return Err(Problem::invalid("wait_ms", format!("{wait} is more than {WAIT_MS_MAX}")));
    }
    let claim = core::claim::Claim {
        namespace: ask.namespace.clone(),
        worker: WorkerId::new(&body.worker)?,
        offer: body.tags.as_ref().map_or(Offer::Registered, |tags| Offer::Tags(convert::tags(tags))),
        secrets: ids::secrets(max as usize),
        lease: body.lease_ms.map(millis),
        unknown: if body.registered { Unknown::Refuse } else { Unknown::Create(WorkerPolicy::default()) },
        principal: Some(ask.caller.name.clone()),
        request_id: body.request_id.as_deref().map(Into::into),
    };
    let leases = app.engine.claim(claim, Duration::from_millis(wait)).await?;
    for leased in leases.iter().filter(|leased| leased.job.spec.definition.is_none()) {
        app.schemas.note_plain(leased.job.key.id);
    }
    app.options.traces.claimed(&leases);
    Ok(leases.iter().map(convert::leased).collect())
}

async fn renew(State(app): State<App>, ask: Ask, Sent(body): Sent<LeaseOnly>) -> Result<Answer<Renewed>> {
    let holder = holder(&ask, &body.lease)?;
    let renewed = app.engine.run(core::renew::Renew { holder, length: None }).await?;
    Ok(ok(Renewed { until: maybe(renewed.until), cancelled: renewed.cancelled }))
}

async fn progress(State(app): State<App>, ask: Ask, Sent(body): Sent<ReportProgress>) -> Result<Answer<Renewed>> {
    let holder = holder(&ask, &body.lease)?;
    let message = message(&body.message);
    let report = core::progress::ReportProgress { holder, percent: body.percent, message };
    let done = Done::from(app.engine.run(report).await?);
    Ok(ok(Renewed { until: maybe(done.until), cancelled: done.cancelled }))
}

async fn logs(State(app): State<App>, ask: Ask, Sent(body): Sent<AppendLog>) -> Result<Answer<Logged>> {
    let said = Said { data: &body.data, stream: body.stream, time_ms: body.time_ms, chunks: &body.chunks };
    let append = said.append(holder(&ask, &body.lease)?)?;
    let logged = app.engine.run(append).await?;
    Ok(ok(Logged { dropped_bytes: logged.dropped_bytes, cancelled: logged.cancelled }))
}

async fn complete(State(app): State<App>, ask: Ask, Sent(body): Sent<Complete>) -> Result<Answer<Ended>> {
    let holder = holder(&ask, &body.lease)?;
    let report = core::complete::Complete { holder, result: convert::payload(body.result.as_ref()) };
    check_result(&app, &report).await?;
    end(&app, &ask, report, body.next.as_ref()).await
}

async fn fail(State(app): State<App>, ask: Ask, Sent(body): Sent<Fail>) -> Result<Answer<Ended>> {
    let report = core::fail::Fail {
        holder: holder(&ask, &body.lease)?,
        message: body.message.as_str().into(),
        retryable: !body.permanent,
        result: Default::default(),
    };
    end(&app, &ask, report, body.next.as_ref()).await
}

async fn release(State(app): State<App>, ask: Ask, Sent(body): Sent<Release>) -> Result<Answer<Ended>> {
    let holder = holder(&ask, &body.lease)?;
    let job = match body.delay_ms {
        Some(delay) => app.engine.run(pass_on(holder, delay, &body.message)).await?,
        None => app.engine.run(core::release::Release { holder }).await?,
    };
    Ok(ok(ended(&job, false, Next::default())))
}

fn pass_on(holder: Holder, delay_ms: u64, why: &str) -> core::release::PassOn {
    core::release::PassOn { holder, delay: millis(delay_ms), why: why.into() }
}

/// Report and claim go into the queue together and share a batch; the claim waits, if it has to, after the report is durable.
async fn end<R: core::ask::Ask<Reply = reply::Ended>>(
    app: &App,
    ask: &Ask,
    report: R,
    next: Option<&Claim>,
) -> Result<Answer<Ended>> {
    let taken = |report: reply::Ended, next: Next| {
        app.options.traces.ended("complete", &report.job);
        Ok(ok(ended(&report.job, report.replayed, next)))
    };
    let Some(next) = next else { return taken(app.engine.run(report).await?, Next::default()) };
    let at_once = Claim { wait_ms: None, ..next.clone() };
    let (reply, first) = tokio::join!(app.engine.run(report), claim_jobs(app, ask, &at_once));
    match reply {
        Ok(report) => taken(report, go_on(app, ask, next, first).await),
        // The report was refused, so its sender must hear that; what was claimed beside it goes back.
        Err(error) => {
            give_back(app, ask, &first.unwrap_or_default()).await;
            Err(error.into())
        }
    }
}

/// What a claim beside reports came to. That it was refused must not hide that the reports were taken.
#[derive(Default)]
struct Next {
    leases: Vec<Leased>,
    problem: Option<Problem>,
}

/// Waits, where the claim asks for it and nothing was there at once.
async fn go_on(app: &App, ask: &Ask, claim: &Claim, first: Result<Vec<Leased>>) -> Next {
    let claimed = match first {
        Ok(leases) if leases.is_empty() && claim.wait_ms.is_some() => claim_jobs(app, ask, claim).await,
        first => first,
    };
    match claimed {
        Ok(leases) => Next { leases, problem: None },
        Err(problem) => Next { leases: Vec::new(), problem: Some(problem) },
    }
}

async fn give_back(app: &App, ask: &Ask, leases: &[Leased]) {
    let releases = leases.iter().filter_map(|leased| {
        let holder = holder(ask, &leased.lease).ok()?;
        Some(core::release::Release { holder })
    });
    if let Err(error) = app.engine.run_many(releases.collect()).await {
        tracing::warn!(%error, "claimed jobs could not be given back; their leases will expire");
    }
}

fn ended(job: &Job, replayed: bool, next: Next) -> Ended {
    let claim_problem = next.problem.map(wire);
    Ended { job: job.key.id.0, state: convert::state(job.state), replayed, leases: next.leases, claim_problem }
}

/// What became of one operation, whichever it was.
struct Done {
    state: JobState,
    replayed: bool,
    cancelled: bool,
    until: Option<Timestamp>,
    dropped_bytes: u64,
    draining: bool,
    report: Option<Box<Job>>,
}

impl Done {
    fn new(state: JobState) -> Self {
        let (replayed, cancelled, draining) = (false, false, false);
        Self { state, replayed, cancelled, until: None, dropped_bytes: 0, draining, report: None }
    }

    fn wire(self) -> OperationDone {
        let Self { state, replayed, cancelled, until, .. } = self;
        OperationDone { state: convert::state(state), replayed, cancelled, until: maybe(until) }
    }
}

impl From<reply::Renewed> for Done {
    fn from(renewed: reply::Renewed) -> Self {
        Self { until: renewed.until, cancelled: renewed.cancelled, ..Self::new(JobState::Running) }
    }
}

impl From<reply::Logged> for Done {
    fn from(logged: reply::Logged) -> Self {
        let reply::Logged { dropped_bytes, cancelled, .. } = logged;
        Self { dropped_bytes, cancelled, ..Self::new(JobState::Running) }
    }
}

impl From<reply::Ended> for Done {
    fn from(ended: reply::Ended) -> Self {
        let reply::Ended { job, replayed } = ended;
        Self { replayed, state: job.state, report: Some(job), ..Self::new(JobState::Running) }
    }
}

impl From<Box<Job>> for Done {
    fn from(job: Box<Job>) -> Self {
        let until = job.live.lease.as_ref().and_then(|lease| lease.until);
        Self { cancelled: job.live.cancel.is_some(), until, ..Self::new(job.state) }
    }
}

impl From<Box<Worker>> for Done {
    fn from(worker: Box<Worker>) -> Self {
        Self { draining: worker.draining, ..Self::new(JobState::Running) }
    }
}

async fn batch(State(app): State<App>, ask: Ask, Sent(body): Sent<Batch>) -> Result<Answer<BatchDone>> {
    check_count("operations", body.operations.len())?;
    let mut commands: Vec<Result<Asked<Done>>> = Vec::with_capacity(body.operations.len());
    for operation in &body.operations {
        commands.push(operation_command(&app, &ask, operation).await);
    }
    let (refused, commands): (Vec<Option<Problem>>, Vec<Option<Asked<Done>>>) =
        commands.into_iter().map(|command| command.map_or_else(|p| (Some(p), None), |c| (None, Some(c)))).unzip();
    let run = app.engine.run_mixed(commands.into_iter().flatten().collect());
    let (replies, next) = match &body.claim {
        None => (run.await?, Next::default()),
        Some(claim) => {
            let at_once = Claim { wait_ms: None, ..claim.clone() };
            match tokio::join!(run, claim_jobs(&app, &ask, &at_once)) {
                (Ok(replies), first) => (replies, go_on(&app, &ask, claim, first).await),
                (Err(error), first) => {
                    give_back(&app, &ask, &first.unwrap_or_default()).await;
                    return Err(error.into());
                }
            }
        }
    };
    for job in replies.iter().flatten().filter_map(|done| done.report.as_ref()) {
        app.options.traces.ended("complete", job);
    }
    let mut replies = replies.into_iter();
    let answer = |refused: Option<Problem>| match refused {
        Some(problem) => Each::Refused { problem: wire(problem) },
        None => match replies.next().expect("each command has a reply") {
            Ok(done) => Each::Done(done.wire()),
            Err(refusal) => Each::Refused { problem: wire(refusal.into()) },
        },
    };
    let operations = refused.into_iter().map(answer).collect();
    Ok(ok(BatchDone { operations, leases: next.leases, claim_problem: next.problem.map(wire) }))
}

/// A result that its definition does not allow is refused before the rules see it; the job stays held.
async fn check_result(app: &App, complete: &core::complete::Complete) -> Result<()> {
    let key = complete.holder.job_key();
    app.schemas.check_result(&key, &complete.result).await
}

/// No message leaves the old one.
fn message(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

fn check_count(field: &'static str, count: usize) -> Result<()> {
    if count <= MANY_MAX {
        return Ok(());
    }
    Err(Problem::new(Code::TooLarge, format!("{count} in one request; at most {MANY_MAX}")).at(field))
}

async fn operation_command(app: &App, ask: &Ask, operation: &Operation) -> Result<Asked<Done>> {
    let holder = holder(ask, &operation.lease)?;
    Ok(match operation.what {
        Do::Renew => Asked::new(core::renew::Renew { holder, length: None }),
        Do::Progress => {
            let percent = operation.percent.ok_or_else(|| Problem::invalid("percent", "is needed for progress"))?;
            Asked::new(core::progress::ReportProgress { holder, percent, message: message(&operation.message) })
        }
        Do::Log => {
            let Operation { data, chunks, .. } = operation;
            Asked::new(Said { data, chunks, ..Said::default() }.append(holder)?)
        }
        Do::Complete => {
            let report = core::complete::Complete { holder, result: convert::payload(operation.result.as_ref()) };
            check_result(app, &report).await?;
            Asked::new(report)
        }
        Do::Fail => {
            let message = operation.message.as_str().into();
            Asked::new(core::fail::Fail {
                holder,
                message,
                retryable: !operation.permanent,
                result: Default::default(),
            })
        }
        Do::Release => match operation.delay_ms {
            Some(delay) => Asked::new(pass_on(holder, delay, &operation.message)),
            None => Asked::new(core::release::Release { holder }),
        },
    })
}

/// Renewals, progress and logs are separate commands of one request. A lease counts as held if its renewal was taken.
async fn sync(State(app): State<App>, ask: Ask, Sent(body): Sent<Sync>) -> Result<Answer<Synced>> {
    check_count("leases", body.leases.len())?;
    let worker = WorkerId::new(&body.worker)?;
    let principal = Some(ask.caller.name.clone());
    let heartbeat = core::workers::Heartbeat { namespace: ask.namespace.clone(), worker, principal };
    let mut commands: Vec<Asked<Done>> = vec![Asked::new(heartbeat)];
    let mut firsts = Vec::with_capacity(body.leases.len());
    for lease in &body.leases {
        let holder = holder(&ask, &lease.lease)?;
        firsts.push(commands.len());
        commands.push(Asked::new(core::renew::Renew { holder: holder.clone(), length: None }));
        if let Some(progress) = &lease.progress {
            let message = message(&progress.message);
            let report = core::progress::ReportProgress { holder: holder.clone(), percent: progress.percent, message };
            commands.push(Asked::new(report));
        }
        if !lease.log.is_empty() || !lease.chunks.is_empty() {
            let said = Said { data: &lease.log, chunks: &lease.chunks, ..Said::default() };
            commands.push(Asked::new(said.append(holder)?));
        }
    }
    let replies = app.engine.run_mixed(commands).await?;
    Ok(ok(synced(&replies, &firsts)))
}

fn synced(replies: &[Result<Done, Refusal>], firsts: &[usize]) -> Synced {
    let unknown_worker = matches!(&replies[0], Err(Refusal::NotFound { .. }));
    let draining = replies[0].as_ref().is_ok_and(|done| done.draining);
    let ends = firsts.iter().skip(1).copied().chain([replies.len()]);
    let lease = |(first, end): (&usize, usize)| {
        let own = &replies[*first..end];
        match &own[0] {
            Ok(renewed) => SyncedLease {
                held: true,
                cancelled: renewed.cancelled,
                until: maybe(renewed.until),
                log_bytes_dropped: own.iter().flatten().map(|done| done.dropped_bytes).sum(),
            },
            Err(refusal) => SyncedLease {
                held: false,
                cancelled: matches!(refusal, Refusal::LeaseLost { state: JobState::Cancelled }),
                until: None,
                log_bytes_dropped: 0,
            },
        }
    };
    Synced { unknown_worker, draining, leases: firsts.iter().zip(ends).map(lease).collect() }
}
