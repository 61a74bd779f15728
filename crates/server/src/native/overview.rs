//! `/api/v1/overview` and `/api/v1/history`: how it stands and how it went; and what the dashboard says about the server itself.

use super::{stats, why};
use crate::{
    app::App,
    ask::{Answer, Ask, Query, ok},
    auth::Caller,
    history::{self, HOUR_MS},
    problem::{Code, Problem, Result},
    route::{Access, Route},
    spoken::Voice,
    wire_time::{maybe, text},
};
use axum::{extract::State, response::Response};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use windlass_api::overview::{
    Dialect, Dialects, Failing, History, Lane, Namespaces, OtherJobs, Overview, Point, ReadHistory, Setting, Settings,
    Sign, Span, WaitingStep,
};
use windlass_core::{
    Job, JobKey, Millis, Namespace, Timestamp, record::Kind, run::Run, stage::Waiting, worker::Worker,
};
use windlass_engine::{
    history::{Figures, MINUTE_MS, Whose},
    store::RecordQuery,
};

/// So old an answer may be: it is made once for all who ask.
const FRESH: Duration = Duration::from_secs(1);
const SHOWN: usize = 20;
/// Lanes whose oldest job is asked why it waits.
const EXPLAINED: usize = 5;
const COUNT_MAX: usize = 1_000;
const NAMESPACES_MAX: usize = 1_000;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/overview", Access::Viewer, overview)
            .says("How it stands: jobs and workers by state, what waits longest and why, what fails")
            .answers::<Overview>(200),
        Route::get("/api/v1/history", Access::Viewer, read_history)
            .says("What was done: a day by the minute, a month by the hour")
            .query::<ReadHistory>()
            .answers::<History>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/namespaces", Access::Viewer, namespaces)
            .says("List the namespaces that the caller may see")
            .answers::<Namespaces>(200),
        Route::get("/api/v1/settings", Access::Admin, settings)
            .says("The settings in effect and where each comes from; secrets are not shown")
            .answers::<Settings>(200),
        Route::get("/api/v1/dialects", Access::Viewer, dialects)
            .says("The protocols that are served, and who called last in each")
            .answers::<Dialects>(200),
    ]
}

async fn overview(State(app): State<App>, ask: Ask) -> Result<Response> {
    let question = format!("overview {}", ask.namespace);
    app.once.answer(question, FRESH, make(&app, &ask.namespace)).await
}

async fn make(app: &App, namespace: &Namespace) -> Result<Overview> {
    let now = app.engine.now().await?;
    let (workers, lost_workers) = workers(app, namespace, now).await?;
    let (failing, failing_others) = failing(app, namespace, now).await?;
    Ok(Overview {
        namespace: namespace.to_string(),
        now: text(now),
        jobs: stats::jobs(app, namespace, None).await?,
        workers,
        lanes: lanes(app, namespace).await?,
        failing,
        failing_others,
        lost_workers,
        waiting_steps: waiting_steps(app, namespace).await?,
        store_full: app.engine.is_full(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: app.options.store.to_owned(),
    })
}

async fn workers(app: &App, namespace: &Namespace, now: Timestamp) -> Result<(BTreeMap<String, u64>, Vec<String>)> {
    let query = RecordQuery { limit: COUNT_MAX, ..RecordQuery::all(namespace.clone(), Worker::KIND) };
    let names = ["online", "unreachable", "offline", "draining"];
    let mut counts = BTreeMap::from(names.map(|state| (state.to_owned(), 0)));
    let mut lost = Vec::new();
    for record in app.engine.store().records(&query).await? {
        let Ok(worker) = serde_json::from_str::<Worker>(&record.value) else { continue };
        let liveness = worker.liveness(now);
        *counts.entry(liveness.name().to_owned()).or_default() += 1;
        *counts.entry("draining".to_owned()).or_default() += u64::from(worker.draining);
        if worker.is_lost(now) {
            lost.push((worker.last_seen, record.key.key.to_string()));
        }
    }
    lost.sort_by(|a, b| b.cmp(a));
    Ok((counts, lost.into_iter().map(|(_, name)| name).take(SHOWN).collect()))
}

async fn lanes(app: &App, namespace: &Namespace) -> Result<Vec<Lane>> {
    let heads = app.engine.store().queue_heads(namespace, 5 * SHOWN).await?;
    let mut found: Vec<Job> = Vec::new();
    for head in heads {
        if found.len() < SHOWN && found.iter().all(|known| known.lane != head.lane) {
            found.push(head);
        }
    }
    let mut lanes = Vec::with_capacity(found.len());
    for (at, job) in found.into_iter().enumerate() {
        lanes.push(lane(app, job, at < EXPLAINED).await?);
    }
    Ok(lanes)
}

async fn lane(app: &App, job: Job, explained: bool) -> Result<Lane> {
    // All of the lane go before one that would be the very last.
    let last = Job { priority: i32::MAX, seq: i64::MAX, ..job.clone() };
    let waiting = app.engine.store().ahead(&last, COUNT_MAX + 1).await?;
    let why = if explained { Some(why::of(app, job.clone()).await?) } else { None };
    Ok(Lane {
        tags: job.spec.tags.iter().map(ToString::to_string).collect(),
        waiting: stats::capped(waiting),
        oldest: job.key.id.0,
        oldest_name: job.spec.name.as_ref().map(ToString::to_string),
        since: maybe(job.live.pending_since),
        reason: why.as_ref().map(|why| why.summary.clone()),
        reason_code: why.and_then(|why| why.reasons.first().map(|reason| reason.code.clone())),
    })
}

/// By definition; and all that ended in the same time beside.
async fn failing(app: &App, namespace: &Namespace, now: Timestamp) -> Result<(Vec<Failing>, Option<OtherJobs>)> {
    let found = history::definitions(app, namespace, now).await?;
    let all = history::lately(app, namespace, now).await?;
    let sum = |of: fn(&Figures) -> u64| found.values().map(of).sum::<u64>();
    let others = OtherJobs {
        completed: all.completed.saturating_sub(sum(|figures| figures.completed)),
        failed: all.failed.saturating_sub(sum(|figures| figures.failed)),
    };
    let mut failing: Vec<Failing> = found
        .into_iter()
        .filter(|(_, figures)| figures.failed > 0)
        .map(|(name, figures)| Failing {
            definition: name.to_string(),
            completed: figures.completed,
            failed: figures.failed,
        })
        .collect();
    failing.sort_by_key(|one| std::cmp::Reverse(one.failed));
    failing.truncate(SHOWN);
    Ok((failing, (others.failed > 0).then_some(others)))
}

async fn waiting_steps(app: &App, namespace: &Namespace) -> Result<Vec<WaitingStep>> {
    let query = RecordQuery { limit: SHOWN, ..RecordQuery::all(namespace.clone(), Waiting::KIND) };
    let mut steps = Vec::new();
    for record in app.engine.store().records(&query).await? {
        let Ok(waiting) = serde_json::from_str::<Waiting>(&record.value) else { continue };
        let run = waiting.run.to_string();
        let row = app.engine.read_record::<Run>(namespace, &run).await?;
        let job = app.engine.store().job(&JobKey::new(namespace, waiting.job)).await?;
        // Either may have ended since the list was read.
        let (Some(row), Some(job)) = (row, job.filter(|job| !job.state.is_final())) else { continue };
        steps.push(WaitingStep {
            run: waiting.run.0,
            workflow: row.definition.map(|definition| definition.name.to_string()),
            step: job.spec.node.as_ref().map(|node| node.name.to_string()).unwrap_or_default(),
            job: waiting.job.0,
            event: waiting.event.map(|event| event.to_string()),
            until: maybe(job.live.hold_until),
        });
    }
    Ok(steps)
}

async fn read_history(State(app): State<App>, ask: Ask, Query(query): Query<ReadHistory>) -> Result<Response> {
    let question = || format!("history {} {:?} {:?}", ask.namespace, query.span, query.definition);
    app.once.or_fresh(question, query.max_age_ms, points(&app, &ask.namespace, &query)).await
}

async fn points(app: &App, namespace: &Namespace, query: &ReadHistory) -> Result<History> {
    let definition: Option<Arc<str>> = query.definition.as_deref().map(Into::into);
    let by_minute = query.span.unwrap_or_default() == Span::Day && definition.is_none();
    let length = if query.span == Some(Span::Month) { 30 * 24 * HOUR_MS } else { 24 * HOUR_MS };
    let since = Timestamp(app.engine.now().await?.0 - Millis(length).0);
    let whose = Whose { namespace: namespace.clone(), definition };
    let step = if by_minute { MINUTE_MS } else { HOUR_MS };
    let rows = history::rows(app, &whose, by_minute, since).await?;
    let points = rows.iter().map(|(at, figures)| point(Timestamp(at * step), figures)).collect();
    Ok(History { step_ms: step as u64, points })
}

fn point(at: Timestamp, figures: &Figures) -> Point {
    Point {
        at: text(at),
        submitted: figures.submitted,
        claimed: figures.claimed,
        requeued: figures.requeued,
        completed: figures.completed,
        failed: figures.failed,
        cancelled: figures.cancelled,
        skipped: figures.skipped,
        wait_p50_ms: figures.wait.quantile_ms(0.5),
        wait_p95_ms: figures.wait.quantile_ms(0.95),
        run_p50_ms: figures.run.quantile_ms(0.5),
        run_p95_ms: figures.run.quantile_ms(0.95),
    }
}

async fn namespaces(State(app): State<App>, caller: Caller) -> Result<Answer<Namespaces>> {
    // A caller limited to some namespaces sees those, whether or not anything is in them yet.
    let found = match caller.namespaces.is_empty() {
        true => [app.engine.store().namespaces(NAMESPACES_MAX).await?, vec![Namespace::default()]].concat(),
        false => caller.namespaces.to_vec(),
    };
    let seen: BTreeSet<&Namespace> = found.iter().filter(|one| caller.check_namespace(one).is_ok()).collect();
    Ok(ok(Namespaces { items: seen.into_iter().map(Namespace::to_string).collect() }))
}

async fn settings(State(app): State<App>, caller: Caller) -> Result<Answer<Settings>> {
    if !caller.rules_all() {
        return Err(Problem::new(Code::Forbidden, "settings concern all namespaces; use the token of an admin of all"));
    }
    let one = |(name, value, origin): (&str, &str, &str)| Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        origin: origin.to_owned(),
    };
    Ok(ok(Settings { items: app.options.values.shown().map(one).collect() }))
}

async fn dialects(State(app): State<App>, caller: Caller) -> Result<Answer<Dialects>> {
    let now = app.engine.now().await?;
    let one = |voice: Arc<Voice>, signs: Vec<Sign>| {
        let heard = voice.last();
        let at = heard.seconds_ago.map(|ago| text(Timestamp(now.0 - i64::try_from(ago * 1_000).unwrap_or(0))));
        Dialect {
            name: voice.name.to_owned(),
            namespace: voice.namespace.map(str::to_owned),
            calls: heard.calls,
            last_call: at,
            // Others may call in namespaces that are not this caller's.
            last_caller: heard.who.filter(|_| caller.namespaces.is_empty()).map(|who| who.to_string()),
            signs,
        }
    };
    let mut items = Vec::new();
    for voice in app.voices.all() {
        let own = voice.namespace.and_then(|name| Namespace::new(name).ok());
        let signs = match own.is_some_and(|own| caller.check_namespace(&own).is_ok()) {
            true => app.dialects.signs(&app, voice.name).await?,
            false => Vec::new(),
        };
        items.push(one(voice, signs));
    }
    Ok(ok(Dialects { items }))
}
