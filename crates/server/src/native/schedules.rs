//! `/api/v1/schedules`: jobs made again and again.

use super::{
    jobs::{IDEMPOTENCY_KEY, IdempotencyKey, new_job, owner},
    records_page,
};
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, Sent, ok},
    calendar::Calendar,
    convert,
    problem::{Code, Problem, Result},
    route::{Access, Route},
    scheduler::{Pointer, pointer},
    wire_time::{maybe, millis, text},
};
use axum::extract::State;
use http::StatusCode;
use windlass_api::{
    job::Submitted,
    page::{Page, Paging},
    schedule::{Firing, Missed as WireMissed, PutSchedule, Schedule},
};
use windlass_core::{
    Command, JobKey, Namespace, Timestamp,
    commands::{
        all::All,
        audited::Audited,
        fire,
        records::{DeleteRecord, Expect, PutRecord},
        submit::NewJob,
    },
    record::Kind,
    schedule::{Missed, Rule, Schedule as Row, Template},
};
use windlass_engine::ids;

/// Times shown ahead.
const SHOWN: usize = 5;
pub fn routes() -> Vec<Route> {
    vec![
        Route::put("/api/v1/schedules/{name}", Access::Editor, put)
            .says("Store a schedule: a job and when to create it; the definition's version is fixed now")
            .takes::<PutSchedule>()
            .answers::<Schedule>(200)
            .refuses(&[Code::Invalid, Code::Schema, Code::TooLarge, Code::NotFound]),
        Route::get("/api/v1/schedules/{name}", Access::Viewer, show)
            .says("One schedule, with its next five times and the last jobs it created")
            .answers::<Schedule>(200)
            .refuses(&[Code::NotFound]),
        Route::delete("/api/v1/schedules/{name}", Access::Editor, delete)
            .says("Delete a schedule; jobs it created stay")
            .answers_with(204, "")
            .refuses(&[Code::NotFound]),
        Route::post("/api/v1/schedules/{name}/run", Access::Editor, run)
            .says("Create a schedule's job now; its times stay, and a paused schedule stays paused")
            .reads(IDEMPOTENCY_KEY)
            .answers::<Submitted>(201)
            .answers::<Submitted>(200)
            .refuses(&[Code::NotFound, Code::KeyReused]),
        Route::get("/api/v1/schedules", Access::Viewer, list)
            .says("List schedules by name")
            .query::<Paging>()
            .answers::<Page<Schedule>>(200)
            .refuses(&[Code::Invalid]),
    ]
}

fn rule(body: &PutSchedule) -> Result<Rule> {
    match (&body.cron, body.every_ms) {
        (Some(cron), None) => {
            Calendar::new(cron, body.time_zone.as_deref())?;
            Ok(Rule::Calendar(Calendar::stored(cron, body.time_zone.as_deref()).into()))
        }
        (None, Some(_)) if body.time_zone.is_some() => {
            Err(Problem::invalid("time_zone", "only a cron expression has one; an interval is the same everywhere"))
        }
        (None, Some(every)) => Ok(Rule::Every(millis(every))),
        _ => Err(Problem::invalid("cron", "give exactly one of cron and every_ms")),
    }
}

/// The first time after `now`.
/// Intervals go by the time that decides, calendars by the clock on the wall.
async fn first(app: &App, rule: &Rule) -> Result<Timestamp> {
    match rule {
        Rule::Every(every) => Ok(app.engine.now().await? + *every),
        Rule::Calendar(text) => {
            let next = Calendar::restore(text)?.after(app.engine.wall().await?);
            next.ok_or_else(|| Problem::invalid("cron", "this time never comes"))
        }
    }
}

/// What each firing submits. Fields that make sense for one job only are refused.
fn template(body: &PutSchedule, job: NewJob) -> Result<Template> {
    let refused = [
        ("job.id", body.job.id.is_some()),
        ("job.run_at", body.job.run_at.is_some()),
        ("job.delay_ms", body.job.delay_ms.is_some()),
        ("job.after", !body.job.after.is_empty()),
        ("job.idempotency_key", body.job.idempotency_key.is_some()),
    ];
    if let Some((field, _)) = refused.into_iter().find(|(_, there)| *there) {
        return Err(Problem::invalid(field, "makes no sense for a job that is made again and again"));
    }
    Ok(fire::template(NewJob { extra: None, ..job }))
}

async fn put(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    Sent(body): Sent<PutSchedule>,
) -> Result<Answer<Schedule>> {
    let rule = rule(&body)?;
    let in_job = |mut problem: Problem| {
        problem.0.field = problem.0.field.map(|field| format!("job.{field}"));
        problem
    };
    let job = new_job(&app, &ask.namespace, &body.job, None).await.map_err(in_job)?;
    let template = template(&body, job)?;
    let source = serde_json::to_string(&body).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let row = Row {
        missed: match body.missed {
            WireMissed::Once => Missed::Once,
            WireMissed::Skip => Missed::Skip,
        },
        paused: body.paused,
        extra: Some(source.into()),
        ..Row::new(&name, rule.clone(), first(&app, &rule).await?, template)
    };
    let value = Pointer { namespace: ask.namespace.clone(), name: name.clone() };
    let value = serde_json::to_string(&value).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let points = PutRecord {
        key: pointer(&ask.namespace, &name),
        expect: Expect::Anything,
        parent: None,
        value: value.into(),
        facets: Vec::new(),
        expires_at: None,
    };
    let put = fire::PutSchedule { namespace: ask.namespace.clone(), schedule: row };
    app.engine.run(Audited::new(&ask.caller.name, All { commands: vec![put.into(), points.into()] })).await?;
    app.schedules_changed.notify_one();
    one(&app, &ask.namespace, &name).await.map(ok)
}

async fn one(app: &App, namespace: &Namespace, name: &str) -> Result<Schedule> {
    let row = app.engine.read_record::<Row>(namespace, name).await?;
    wire(namespace, &row.ok_or_else(|| Problem::not_found("schedule", name))?)
}

fn wire(namespace: &Namespace, row: &Row) -> Result<Schedule> {
    let schedule = match &row.extra {
        Some(source) => serde_json::from_str(source).map_err(|error| {
            Problem::new(Code::Damaged, format!("the schedule {} cannot be read: {error}", row.name))
        })?,
        None => PutSchedule::default(),
    };
    let next = if row.paused { Vec::new() } else { ahead(row)? };
    Ok(Schedule {
        name: row.name.to_string(),
        namespace: namespace.to_string(),
        schedule,
        fired: row.fired,
        next: next.into_iter().map(text).collect(),
        recent: Vec::new(),
    })
}

/// The next times. The first one is written down; the others follow from it.
fn ahead(row: &Row) -> Result<Vec<Timestamp>> {
    let rest = match &row.rule {
        Rule::Every(every) => (1..SHOWN as i64).map(|n| Timestamp(row.next_at.0 + n * every.0)).collect(),
        Rule::Calendar(text) => Calendar::restore(text)?.some_after(row.next_at, SHOWN - 1),
    };
    Ok(std::iter::once(row.next_at).chain(rest).collect())
}

async fn show(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<Answer<Schedule>> {
    let row = app.engine.read_record::<Row>(&ask.namespace, &name).await?;
    let row = row.ok_or_else(|| Problem::not_found("schedule", &name))?;
    let recent = recent(&app, &ask.namespace, &row).await?;
    Ok(ok(Schedule { recent, ..wire(&ask.namespace, &row)? }))
}

async fn recent(app: &App, namespace: &Namespace, row: &Row) -> Result<Vec<Firing>> {
    let keys: Vec<JobKey> = row.recent.iter().map(|firing| JobKey::new(namespace, firing.job)).collect();
    let jobs = app.engine.store().jobs_named(&keys).await?;
    let told = row.recent.iter().rev().map(|firing| {
        let job = jobs.iter().find(|job| job.key.id == firing.job);
        Firing {
            at: text(firing.at),
            job: firing.job.0,
            state: job.map(|job| convert::state(job.state)),
            finished_at: job.and_then(|job| maybe(job.live.finished_at)),
        }
    });
    Ok(told.collect())
}

async fn run(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
) -> Result<Answer<Submitted>> {
    let run = fire::RunSchedule {
        namespace: ask.namespace.clone(),
        unique: key.map(|key| convert::unique_for(&key, &format!("schedule {name}"))),
        name: name.into(),
        id: ids::job_id(),
        owner: owner(&ask.caller),
    };
    let submitted = convert::submitted(app.engine.run(run).await?);
    let status = if submitted.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Answer(status, submitted))
}

async fn delete(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<StatusCode> {
    let key = pointer(&ask.namespace, &name);
    let mut commands: Vec<Command> =
        vec![fire::DeleteSchedule { namespace: ask.namespace.clone(), name: name.into() }.into()];
    if app.engine.store().record(&key).await?.is_some() {
        commands.push(DeleteRecord { key, expect: Expect::Anything }.into());
    }
    app.engine.run(Audited::new(&ask.caller.name, All { commands })).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn list(State(app): State<App>, ask: Ask, Query(query): Query<Paging>) -> Result<Answer<Page<Schedule>>> {
    let (found, next) = records_page(&app, &ask.namespace, Row::KIND, &query).await?;
    let rows = found.iter().filter_map(|record| serde_json::from_str::<Row>(&record.value).ok());
    let items = rows.map(|row| wire(&ask.namespace, &row)).collect::<Result<_, _>>()?;
    Ok(ok(Page { items, next }))
}
