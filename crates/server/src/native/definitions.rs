//! `/api/v1/definitions`: named, versioned recipes for jobs.

use super::{convert, jobs::page_size, pages, records_page};
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, Sent, ok},
    history::{self, HOUR_MS},
    problem::{Code, Problem},
    route::{Access, Route},
    schema::Compiled,
    wire_time::text,
};
use axum::extract::State;
use http::StatusCode;
use std::sync::Arc;
use windlass_api::{
    definition::{Definition, DefinitionBody},
    job::SubmitJob,
    overview::DefinitionFigures,
    page::{Page, Paging},
};
use windlass_core::{
    JobId, JobKey, Limits, Namespace, Refusal, Timestamp,
    commands::{
        audited::Audited,
        definitions::{DeleteDefinition, PutDefinition},
    },
    definition::{Definition as Row, DefinitionHead, version_key},
    record::Kind,
};
use windlass_engine::{
    history::{Figures, Whose},
    store::RecordQuery,
};

/// A definition as text, schemas included.
pub const BYTES_MAX: usize = 256 << 10;

pub fn routes() -> Vec<Route> {
    vec![
        Route::put("/api/v1/definitions/{name}", Access::Editor, put)
            .says("Store a definition; a changed body is a new version, the same body changes nothing")
            .takes::<DefinitionBody>()
            .answers::<Definition>(200)
            .refuses(&[Code::Invalid, Code::Schema, Code::TooLarge])
            .body_max(BYTES_MAX),
        Route::get("/api/v1/definitions/{name}", Access::Any, show)
            .says("A definition's latest version")
            .answers::<Definition>(200)
            .refuses(&[Code::NotFound]),
        Route::delete("/api/v1/definitions/{name}", Access::Editor, delete)
            .says("Delete a definition; its versions stay readable for the jobs created from them")
            .answers_with(204, "")
            .refuses(&[Code::NotFound]),
        Route::get("/api/v1/definitions", Access::Any, list)
            .says("List definitions by name, each with its latest version")
            .query::<Paging>()
            .answers::<Page<Definition>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/definitions/{name}/figures", Access::Viewer, figures)
            .says("What became of a definition's jobs in the last day, how long they ran, and the last ones")
            .answers::<DefinitionFigures>(200),
        Route::get("/api/v1/definitions/{name}/versions", Access::Any, versions)
            .says("All versions of a definition, oldest first")
            .query::<Paging>()
            .answers::<Page<Definition>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/definitions/{name}/versions/{version}", Access::Any, version)
            .says("One version of a definition, also of a deleted one")
            .answers::<Definition>(200)
            .refuses(&[Code::NotFound]),
    ]
}

/// Everything that can be wrong with a definition is found when it is written, not when a job is made from it.
pub fn check(name: &str, body: &DefinitionBody, limits: &Limits) -> Result<(), Problem> {
    if name.contains('@') {
        return Err(Problem::invalid("name", "may not hold an @: that is how a version is named"));
    }
    let size = serde_json::to_vec(body).map_or(usize::MAX, |bytes| bytes.len());
    if size > BYTES_MAX {
        return Err(Problem::new(Code::TooLarge, format!("{size} bytes; a definition may have {BYTES_MAX}")).at("body"));
    }
    let compiled = Compiled::new(body.clone())?;
    let job = convert::new_job(&fill(&SubmitJob::default(), body)?, JobId::from_u128(0), None, None)?;
    job.check(limits).map_err(|refusal| match refusal {
        Refusal::Invalid { field: "name", .. } => Problem::from(refusal).at("job_name"),
        other => other.into(),
    })?;
    match body.payload {
        Some(_) => compiled.check_payload(&job.payload).map_err(|problem| {
            let at = problem.0.field.clone().unwrap_or_default();
            problem.at(format!("payload{at}"))
        }),
        None => Ok(()),
    }
}

/// The text of a definition that was found in order, aside.
pub async fn checked(app: &App, namespace: &Namespace, name: &str, body: DefinitionBody) -> Result<Arc<str>, Problem> {
    let (name, limits) = (name.to_owned(), app.engine.settings().limits);
    let work = move || check(&name, &body, &limits).and_then(|()| stored(&body));
    app.aside.run(namespace, work).await?
}

/// A job with its definition's settings where it is silent itself.
pub fn fill(job: &SubmitJob, body: &DefinitionBody) -> Result<SubmitJob, Problem> {
    let payload = match (&job.payload, &body.payload) {
        (Some(own), _) => Some(own.clone()),
        (None, Some(value)) => Some(
            serde_json::value::to_raw_value(value).map_err(|error| Problem::new(Code::Internal, error.to_string()))?,
        ),
        (None, None) => None,
    };
    Ok(SubmitJob { payload, settings: job.settings.clone().or(&body.settings()), ..job.clone() })
}

fn wire(namespace: &Namespace, row: &Row) -> Result<Definition, Problem> {
    let body = serde_json::from_str(&row.body).map_err(|error| {
        Problem::new(Code::Damaged, format!("the definition {}@{} cannot be read: {error}", row.name, row.version))
    })?;
    let (name, namespace) = (row.name.to_string(), namespace.to_string());
    Ok(Definition { name, namespace, version: row.version, created_at: text(row.created_at), body })
}

/// The same body makes the same text, so that writing it again is recognised.
fn stored(body: &DefinitionBody) -> Result<Arc<str>, Problem> {
    let text = body.text().map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    Ok(text.into())
}

async fn put(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    Sent(body): Sent<DefinitionBody>,
) -> Result<Answer<Definition>, Problem> {
    let stored = checked(&app, &ask.namespace, &name, body).await?;
    let put = PutDefinition { namespace: ask.namespace.clone(), name: name.into(), body: stored };
    let row = app.engine.run(Audited::new(&ask.caller.name, put)).await?;
    Ok(ok(wire(&ask.namespace, &row)?))
}

async fn delete(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    let delete = DeleteDefinition { namespace: ask.namespace.clone(), name: name.into() };
    app.engine.run(Audited::new(&ask.caller.name, delete)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The latest version, unless the definition is deleted.
pub async fn latest(app: &App, namespace: &Namespace, name: &str) -> Result<Option<Row>, Problem> {
    let head = app.engine.read_record::<DefinitionHead>(namespace, name).await?;
    match head.filter(|head| head.deleted_at.is_none()) {
        Some(head) => Ok(app.engine.read_record::<Row>(namespace, &version_key(name, head.latest)).await?),
        None => Ok(None),
    }
}

async fn show(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<Answer<Definition>, Problem> {
    let row = latest(&app, &ask.namespace, &name).await?;
    let row = row.ok_or_else(|| Problem::not_found("definition", &name))?;
    Ok(ok(wire(&ask.namespace, &row)?))
}

async fn version(
    State(app): State<App>,
    ask: Ask,
    Path((name, version)): Path<(String, u32)>,
) -> Result<Answer<Definition>, Problem> {
    let row = app.engine.read_record::<Row>(&ask.namespace, &version_key(&name, version)).await?;
    let row = row.ok_or_else(|| Problem::not_found("definition", format!("{name}@{version}")))?;
    Ok(ok(wire(&ask.namespace, &row)?))
}

async fn list(
    State(app): State<App>,
    ask: Ask,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<Definition>>, Problem> {
    let (found, mut next) = records_page(&app, &ask.namespace, DefinitionHead::KIND, &query).await?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    for record in &found {
        if let Some(row) = latest(&app, &ask.namespace, &record.key.key).await? {
            bytes += row.body.len();
            items.push(wire(&ask.namespace, &row)?);
        }
        if bytes >= pages::BYTES_MAX {
            next = Some(record.key.key.to_string());
            break;
        }
    }
    Ok(ok(Page { items, next }))
}

async fn versions(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<Definition>>, Problem> {
    let limit = page_size(query.limit)?;
    let records = RecordQuery {
        parent: Some(name.into()),
        after: query.cursor.as_deref().map(Into::into),
        limit,
        ..RecordQuery::all(ask.namespace.clone(), Row::KIND)
    };
    let (found, next) = pages::records(&app, records).await?;
    let row = |value: &str| {
        let row: Row = serde_json::from_str(value)
            .map_err(|error| Problem::new(Code::Damaged, format!("a version cannot be read: {error}")))?;
        wire(&ask.namespace, &row)
    };
    let items = found.iter().map(|record| row(&record.value)).collect::<Result<_, _>>()?;
    Ok(ok(Page { items, next }))
}

/// Also of a deleted one.
async fn figures(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
) -> Result<Answer<DefinitionFigures>, Problem> {
    let whose = Whose { namespace: ask.namespace.clone(), definition: Some(name.into()) };
    let since = Timestamp(app.engine.now().await?.0 - 24 * HOUR_MS);
    let (rows, recent) = history::told(&app, &whose, false, since).await?;
    let mut all = Figures::default();
    rows.values().for_each(|row| all.add(row));
    let keys: Vec<JobKey> = recent.iter().map(|id| JobKey::new(&ask.namespace, *id)).collect();
    let mut jobs = app.engine.store().jobs_named(&keys).await?;
    jobs.sort_by_key(|job| recent.iter().position(|id| *id == job.key.id));
    Ok(ok(DefinitionFigures {
        completed: all.completed,
        failed: all.failed,
        run_p50_ms: all.run.quantile_ms(0.5),
        run_p95_ms: all.run.quantile_ms(0.95),
        recent: jobs.iter().map(convert::job).collect(),
    }))
}
