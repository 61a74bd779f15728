//! `/api/v1/definitions`: named, versioned recipes for jobs.

use super::{jobs::page_size, pages, records_page};
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, Sent, ok},
    convert,
    definition::{BYTES_MAX, checked, latest},
    history::{self, HOUR_MS},
    problem::{Code, Problem, Result},
    route::{Access, Route},
    wire_time::text,
};
use axum::extract::State;
use http::StatusCode;
use windlass_api::{
    definition::{Definition, DefinitionBody},
    overview::DefinitionFigures,
    page::{Page, Paging},
};
use windlass_core::{
    JobKey, Namespace, Timestamp,
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

fn wire(namespace: &Namespace, row: &Row) -> Result<Definition> {
    let body = serde_json::from_str(&row.body).map_err(|error| {
        Problem::new(Code::Damaged, format!("the definition {}@{} cannot be read: {error}", row.name, row.version))
    })?;
    let (name, namespace) = (row.name.to_string(), namespace.to_string());
    Ok(Definition { name, namespace, version: row.version, created_at: text(row.created_at), body })
}

async fn put(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    Sent(body): Sent<DefinitionBody>,
) -> Result<Answer<Definition>> {
    let stored = checked(&app, &ask.namespace, &name, body).await?;
    let put = PutDefinition { namespace: ask.namespace.clone(), name: name.into(), body: stored };
    let row = app.engine.run(Audited::new(&ask.caller.name, put)).await?;
    Ok(ok(wire(&ask.namespace, &row)?))
}

async fn delete(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<StatusCode> {
    let delete = DeleteDefinition { namespace: ask.namespace.clone(), name: name.into() };
    app.engine.run(Audited::new(&ask.caller.name, delete)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn show(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<Answer<Definition>> {
    let row = latest(&app, &ask.namespace, &name).await?;
    let row = row.ok_or_else(|| Problem::not_found("definition", &name))?;
    Ok(ok(wire(&ask.namespace, &row)?))
}

async fn version(
    State(app): State<App>,
    ask: Ask,
    Path((name, version)): Path<(String, u32)>,
) -> Result<Answer<Definition>> {
    let row = app.engine.read_record::<Row>(&ask.namespace, &version_key(&name, version)).await?;
    let row = row.ok_or_else(|| Problem::not_found("definition", format!("{name}@{version}")))?;
    Ok(ok(wire(&ask.namespace, &row)?))
}

async fn list(State(app): State<App>, ask: Ask, Query(query): Query<Paging>) -> Result<Answer<Page<Definition>>> {
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
) -> Result<Answer<Page<Definition>>> {
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
async fn figures(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<Answer<DefinitionFigures>> {
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
