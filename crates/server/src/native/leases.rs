//! `/api/v1/leases`: claim, keep, report. Lease ids travel in bodies only.

use super::{
    convert::{self, lease},
    jobs::{MANY_MAX, WAIT_MS_MAX, wire},
    said::Said,
};
use crate::{
    app::App,
    ask::{Answer, Ask, Sent, ok},
    auth::{Auth, Caller, not_valid},
    problem::Problem,
    route::{Access, Header, Route},
    wire_time::{maybe, millis},
};
use axum::extract::State;
use http::HeaderMap;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_api::{
    job::Answer as Each,
    lease::{
        AppendLog, Batch, BatchDone, Claim, Claimed, Complete, Do, Ended, Fail, LeaseOnly, Leased, Logged, Operation,
        OperationDone, Release, Renewed, ReportProgress, Sync, Synced, SyncedLease,
    },
};
use windlass_core::{
    Command, Namespace, Refusal, Reply, State as JobState, WorkerId,
    commands::{
        self as core,
        claim::{Offer, Unknown},
        holder::Holder,
    },
    policy::WorkerPolicy,
    principal::Role,
};
use windlass_engine::ids;

/// A batch carries many results.
const BATCH_BODY_MAX: usize = 16 << 20;

pub fn routes() -> Vec<Route> {
    let post = |path, summary| (path, summary);
    let lost = &["lease-lost", "not-held", "not-holder", "not-found", "invalid"];
    let row = |(path, summary): (&'static str, &'static str), route: fn(&'static str) -> Route| {
        route(path).says(summary).refuses(lost)
    };
    vec![
        row(post("/api/v1/leases/claim", "Claim jobs; with `wait_ms`, wait for some"), |path| {
            Route::post(path, Access::Worker, claim).takes::<Claim>().answers::<Claimed>(200)
        })
        .refuses(&["worker-not-online", "worker-draining", "forbidden"]),
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
        .refuses(&["too-large"]),
        row(
            post("/api/v1/leases/complete", "Report success, and optionally claim the next jobs in the same call"),
            |path| Route::post(path, Access::Worker, complete).takes::<Complete>().answers::<Ended>(200),
        )
        .refuses(&["too-large", "schema"]),
        row(
            post("/api/v1/leases/fail", "Report failure, and optionally claim the next jobs in the same call"),
            |path| Route::post(path, Access::Worker, fail).takes::<Fail>().answers::<Ended>(200),
        )
        .refuses(&["too-large"]),
        row(post("/api/v1/leases/release", "Give a job back without using up an attempt"), |path| {
            Route::post(path, Access::Worker, release).takes::<Release>().answers::<Ended>(200)
        }),
        row(
            post("/api/v1/leases/sync", "Heartbeat, renewals, progress and logs of a whole worker in one call"),
            |path| {
                Route::post(path, Access::Worker, sync).takes::<Sync>().answers::<Synced>(200).body_max(BATCH_BODY_MAX)
            },
        )
        .refuses(&["too-large"]),
        row(post("/api/v1/leases/batch", "Many reports in one transaction, and a claim after them"), |path| {
            Route::post(path, Access::Worker, batch).takes::<Batch>().answers::<BatchDone>(200).body_max(BATCH_BODY_MAX)
        })
        .refuses(&["too-large", "schema"]),
    ]
}

/// What a worker writes beside its job is sent with the lease of that job.
pub const LEASE: Header = Header::text("Windlass-Lease", "The lease of the job. Required for workers.");

fn holder(ask: &Ask, text: &str) -> Result<Holder, Problem> {
    holder_as(&ask.caller, &ask.namespace, text)
}

fn holder_as(caller: &Caller, namespace: &Namespace, text: &str) -> Result<Holder, Problem> {
    Ok(Holder { principal: Some(caller.name.clone()), ..Holder::lease(namespace, lease(text)?) })
}

/// The holder that a request's header names. A worker has to name one; whoever names one is held to it.
pub fn sent_holder(caller: &Caller, namespace: &Namespace, headers: &HeaderMap) -> Result<Option<Holder>, Problem> {
    match LEASE.of(headers)? {
        Some(text) => holder_as(caller, namespace, text).map(Some),
        None if caller.role == Role::Worker => Err(Problem::invalid(LEASE.name, "send the lease the claim gave")),
        None => Ok(None),
    }
}

async fn claim(State(app): State<App>, ask: Ask, Sent(body): Sent<Claim>) -> Result<Answer<Claimed>, Problem> {
    Ok(ok(Claimed { leases: claim_jobs(&app, &ask, &body).await? }))
}

pub async fn claim_jobs(app: &App, ask: &Ask, body: &Claim) -> Result<Vec<Leased>, Problem> {
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
        unknown: Unknown::Create(WorkerPolicy::default()),
        principal: Some(ask.caller.name.clone()),
        request_id: body.request_id.as_deref().map(Into::into),
    };
    let begun = Instant::now();
    let leases = app.engine.claim(claim, Duration::from_millis(wait)).await?;
    if !leases.is_empty() && !Auth::is_fresh(begun.elapsed()) {
        // A token that was ended while its claim waited gets nothing. Boxed, since few claims get here.
        let still = Box::pin(app.auth.still_holds(&ask.caller)).await;
        if !matches!(still, Ok(true)) {
            let leases: Vec<Leased> = leases.iter().map(convert::leased).collect();
            Box::pin(give_back(app, ask, &leases)).await;
            return Err(still.err().unwrap_or_else(not_valid));
        }
    }
    for leased in leases.iter().filter(|leased| leased.job.spec.definition.is_none()) {
        app.native.schemas.note_plain(leased.job.key.id);
    }
    app.options.traces.claimed(&leases);
    Ok(leases.iter().map(convert::leased).collect())
}

async fn renew(State(app): State<App>, ask: Ask, Sent(body): Sent<LeaseOnly>) -> Result<Answer<Renewed>, Problem> {
    let holder = holder(&ask, &body.lease)?;
    renewed(app.engine.run(core::renew::Renew { holder, length: None }).await?)
}

fn renewed(reply: Reply) -> Result<Answer<Renewed>, Problem> {
    let done = done(&reply);
    Ok(ok(Renewed { until: done.until, cancelled: done.cancelled }))
}

async fn progress(
    State(app): State<App>,
    ask: Ask,
    Sent(body): Sent<ReportProgress>,
) -> Result<Answer<Renewed>, Problem> {
    let holder = holder(&ask, &body.lease)?;
    let message = message(&body.message);
    renewed(app.engine.run(core::progress::ReportProgress { holder, percent: body.percent, message }).await?)
}

async fn logs(State(app): State<App>, ask: Ask, Sent(body): Sent<AppendLog>) -> Result<Answer<Logged>, Problem> {
    let said = Said { data: &body.data, stream: body.stream, time_ms: body.time_ms, chunks: &body.chunks };
    let append = said.append(holder(&ask, &body.lease)?)?;
    match app.engine.run(append).await? {
        Reply::Logged { dropped_bytes, cancelled, .. } => Ok(ok(Logged { dropped_bytes, cancelled })),
        other => unreachable!("an append answers what it dropped, not {other:?}"),
    }
}

async fn complete(State(app): State<App>, ask: Ask, Sent(body): Sent<Complete>) -> Result<Answer<Ended>, Problem> {
    let holder = holder(&ask, &body.lease)?;
    let report = core::complete::Complete { holder, result: convert::payload(body.result.as_ref()) }.into();
    check_result(&app, &report).await?;
    end(&app, &ask, report, body.next.as_ref()).await
}

async fn fail(State(app): State<App>, ask: Ask, Sent(body): Sent<Fail>) -> Result<Answer<Ended>, Problem> {
    let report = core::fail::Fail {
        holder: holder(&ask, &body.lease)?,
        message: body.message.as_str().into(),
        retryable: !body.permanent,
    };
    end(&app, &ask, report.into(), body.next.as_ref()).await
}

async fn release(State(app): State<App>, ask: Ask, Sent(body): Sent<Release>) -> Result<Answer<Ended>, Problem> {
    end(&app, &ask, release_command(holder(&ask, &body.lease)?, body.delay_ms, &body.message), None).await
}

fn release_command(holder: Holder, delay_ms: Option<u64>, why: &str) -> Command {
    match delay_ms {
        Some(delay) => core::release::PassOn { holder, delay: millis(delay), why: why.into() }.into(),
        None => core::release::Release { holder }.into(),
    }
}

/// Report and claim go into the queue together and share a batch; the claim waits, if it has to, after the report is durable.
async fn end(app: &App, ask: &Ask, report: Command, next: Option<&Claim>) -> Result<Answer<Ended>, Problem> {
    let Some(next) = next else { return Ok(ok(ended(app, app.engine.run(report).await?, Next::default()))) };
    let at_once = Claim { wait_ms: None, ..next.clone() };
    let (reply, first) = tokio::join!(app.engine.run(report), claim_jobs(app, ask, &at_once));
    match reply {
        Ok(reply) => Ok(ok(ended(app, reply, go_on(app, ask, next, first).await))),
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
async fn go_on(app: &App, ask: &Ask, claim: &Claim, first: Result<Vec<Leased>, Problem>) -> Next {
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
        Some(core::release::Release { holder }.into())
    });
    if let Err(error) = app.engine.run_many(releases.collect()).await {
        tracing::warn!(%error, "claimed jobs could not be given back; their leases will expire");
    }
}

fn ended(app: &App, reply: Reply, next: Next) -> Ended {
    let (job, replayed) = match reply {
        Reply::Ended { job, replayed } => {
            app.options.traces.ended("complete", &job);
            (job, replayed)
        }
        Reply::Job(job) => (job, false),
        other => unreachable!("a report answers with its job, not {other:?}"),
    };
    let claim_problem = next.problem.map(wire);
    Ended { job: job.key.id.0, state: convert::state(job.state), replayed, leases: next.leases, claim_problem }
}

/// What became of one operation, whichever it was.
fn done(reply: &Reply) -> OperationDone {
    let done = |state: JobState| OperationDone {
        state: convert::state(state),
        replayed: false,
        cancelled: false,
        until: None,
    };
    match reply {
        Reply::Renewed { until, cancelled } => {
            OperationDone { until: maybe(*until), cancelled: *cancelled, ..done(JobState::Running) }
        }
        Reply::Logged { cancelled, .. } => OperationDone { cancelled: *cancelled, ..done(JobState::Running) },
        Reply::Ended { job, replayed } => OperationDone { replayed: *replayed, ..done(job.state) },
        Reply::Job(job) => OperationDone {
            cancelled: job.live.cancel.is_some(),
            until: maybe(job.live.lease.as_ref().and_then(|lease| lease.until)),
            ..done(job.state)
        },
        other => unreachable!("an operation on a lease does not answer {other:?}"),
    }
}

async fn batch(State(app): State<App>, ask: Ask, Sent(body): Sent<Batch>) -> Result<Answer<BatchDone>, Problem> {
    check_count("operations", body.operations.len())?;
    let mut commands: Vec<Result<Command, Problem>> = Vec::with_capacity(body.operations.len());
    for operation in &body.operations {
        commands.push(match operation_command(&ask, operation) {
            Ok(command) => check_result(&app, &command).await.map(|()| command),
            refused => refused,
        });
    }
    let (refused, commands): (Vec<Option<Problem>>, Vec<Option<Command>>) =
        commands.into_iter().map(|command| command.map_or_else(|p| (Some(p), None), |c| (None, Some(c)))).unzip();
    let run = app.engine.run_many(commands.into_iter().flatten().collect());
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
    for reply in replies.iter().flatten() {
        if let Reply::Ended { job, .. } = reply {
            app.options.traces.ended("complete", job);
        }
    }
    let mut replies = replies.into_iter();
    let answer = |refused: Option<Problem>| match refused {
        Some(problem) => Each::Refused { problem: wire(problem) },
        None => match replies.next().expect("each command has a reply") {
            Ok(reply) => Each::Done(done(&reply)),
            Err(refusal) => Each::Refused { problem: wire(refusal.into()) },
        },
    };
    let operations = refused.into_iter().map(answer).collect();
    Ok(ok(BatchDone { operations, leases: next.leases, claim_problem: next.problem.map(wire) }))
}

/// A result that its definition does not allow is refused before the rules see it; the job stays held.
async fn check_result(app: &App, command: &Command) -> Result<(), Problem> {
    let Command::Complete(complete) = command else { return Ok(()) };
    let key = complete.holder.job_key();
    app.native.schemas.check_result(app, &key, &complete.result).await
}

/// No message leaves the old one.
fn message(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

fn check_count(field: &'static str, count: usize) -> Result<(), Problem> {
    if count <= MANY_MAX {
        return Ok(());
    }
    Err(Problem::new("too-large", format!("{count} in one request; at most {MANY_MAX}")).at(field))
}

fn operation_command(ask: &Ask, operation: &Operation) -> Result<Command, Problem> {
    let holder = holder(ask, &operation.lease)?;
    Ok(match operation.what {
        Do::Renew => core::renew::Renew { holder, length: None }.into(),
        Do::Progress => {
            let percent = operation.percent.ok_or_else(|| Problem::invalid("percent", "is needed for progress"))?;
            core::progress::ReportProgress { holder, percent, message: message(&operation.message) }.into()
        }
        Do::Log => {
            let Operation { data, chunks, .. } = operation;
            Said { data, chunks, ..Said::default() }.append(holder)?.into()
        }
        Do::Complete => core::complete::Complete { holder, result: convert::payload(operation.result.as_ref()) }.into(),
        Do::Fail => {
            let message = operation.message.as_str().into();
            core::fail::Fail { holder, message, retryable: !operation.permanent }.into()
        }
        Do::Release => release_command(holder, operation.delay_ms, &operation.message),
    })
}

/// Renewals, progress and logs are separate commands of one request. A lease counts as held if its renewal was taken.
async fn sync(State(app): State<App>, ask: Ask, Sent(body): Sent<Sync>) -> Result<Answer<Synced>, Problem> {
    check_count("leases", body.leases.len())?;
    let worker = WorkerId::new(&body.worker)?;
    let mut commands: Vec<Command> = vec![
        core::workers::Heartbeat { namespace: ask.namespace.clone(), worker, principal: Some(ask.caller.name.clone()) }
            .into(),
    ];
    let mut firsts = Vec::with_capacity(body.leases.len());
    for lease in &body.leases {
        let holder = holder(&ask, &lease.lease)?;
        firsts.push(commands.len());
        commands.push(core::renew::Renew { holder: holder.clone(), length: None }.into());
        if let Some(progress) = &lease.progress {
            let message = message(&progress.message);
            let report = core::progress::ReportProgress { holder: holder.clone(), percent: progress.percent, message };
            commands.push(report.into());
        }
        if !lease.log.is_empty() || !lease.chunks.is_empty() {
            let said = Said { data: &lease.log, chunks: &lease.chunks, ..Said::default() };
            commands.push(said.append(holder)?.into());
        }
    }
    let replies = app.engine.run_many(commands).await?;
    Ok(ok(synced(&replies, &firsts)))
}

fn synced(replies: &[Result<Reply, Refusal>], firsts: &[usize]) -> Synced {
    let (unknown_worker, draining) = match &replies[0] {
        Ok(Reply::Worker(worker)) => (false, worker.draining),
        Err(Refusal::NotFound { .. }) => (true, false),
        _ => (false, false),
    };
    let ends = firsts.iter().skip(1).copied().chain([replies.len()]);
    let lease = |(first, end): (&usize, usize)| {
        let own = &replies[*first..end];
        let dropped = own.iter().find_map(|reply| match reply {
            Ok(Reply::Logged { dropped_bytes, .. }) => Some(*dropped_bytes),
            _ => None,
        });
        match &own[0] {
            Ok(reply) => {
                let done = done(reply);
                let log_bytes_dropped = dropped.unwrap_or_default();
                SyncedLease { held: true, cancelled: done.cancelled, until: done.until, log_bytes_dropped }
            }
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
