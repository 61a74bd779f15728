//! `/api/v1/workflows`: definitions of workflows, and runs started from them.

use super::{
    jobs::{self, IDEMPOTENCY_KEY, page_size},
    records_page,
    runs::{key_of, started},
};
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, Sent, ok},
    flows::{
        start::{self, Wanted},
        stored::{self, HEAD, Version},
    },
    problem::{Code, Problem, Result},
    route::{Access, Route},
    wire_time::text,
};
use axum::extract::{Request, State};
use http::{HeaderMap, StatusCode};
use windlass_api::{
    page::{Page, Paging},
    workflow::{PutWorkflow, StartRun, StartedRun, Workflow},
};
use windlass_core::{Namespace, RunId, job::DefinitionRef};
use windlass_plan::format::BYTES_MAX;

const REFUSED: [Code; 4] = [Code::Invalid, Code::TooLarge, Code::NotFound, Code::VersionMismatch];

pub fn routes() -> Vec<Route> {
    vec![
        Route::put("/api/v1/workflows/{name}", Access::Editor, put).behind()
            .says("Store a workflow as YAML or JSON; a changed definition is a new version, the same definition changes nothing")
            .query::<PutWorkflow>()
            .takes_bytes("application/yaml")
            .answers::<Workflow>(200)
            .refuses(&REFUSED)
            .body_max(BYTES_MAX),
        Route::post("/api/v1/workflows", Access::Editor, create).behind()
            .says("Store a workflow under the name in its definition")
            .query::<PutWorkflow>()
            .takes_bytes("application/yaml")
            .answers::<Workflow>(200)
            .refuses(&REFUSED)
            .body_max(BYTES_MAX),
        Route::get("/api/v1/workflows", Access::Viewer, list)
            .says("List workflows by name, each with its latest version")
            .query::<Paging>()
            .answers::<Page<Workflow>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/workflows/{name}", Access::Viewer, show)
            .says("A workflow's latest version, with its definition")
            .answers::<Workflow>(200)
            .refuses(&[Code::NotFound]),
        Route::get("/api/v1/workflows/{name}/versions", Access::Viewer, versions)
            .says("All versions of a workflow, oldest first")
            .query::<Paging>()
            .answers::<Page<Workflow>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/workflows/{name}/versions/{version}", Access::Viewer, version)
            .says("One version of a workflow, also of a deleted one")
            .answers::<Workflow>(200)
            .refuses(&[Code::NotFound]),
        Route::delete("/api/v1/workflows/{name}", Access::Editor, delete)
            .says("Delete a workflow; its versions and runs stay readable")
            .answers_with(204, "")
            .refuses(&[Code::NotFound, Code::VersionMismatch]),
        Route::post("/api/v1/workflows/{name}/runs", Access::Editor, run).behind()
            .says("Start a run of a workflow")
            .reads(IDEMPOTENCY_KEY)
            .takes::<StartRun>()
            .answers::<StartedRun>(201)
            .answers::<StartedRun>(200)
            .refuses(&jobs::REFUSED),
    ]
}

async fn source_of(request: Request) -> Result<String> {
    let bytes = crate::ask::read(request.into_body()).await?;
    String::from_utf8(bytes.into())
        .map_err(|_| Problem::new(Code::BadRequest, "the definition is not UTF-8").at("body"))
}

fn wire(namespace: &Namespace, version: &Version, source: Option<String>) -> Workflow {
    Workflow {
        name: version.name.clone(),
        namespace: namespace.to_string(),
        version: version.version,
        created_at: text(version.created_at),
        description: version.description.clone(),
        steps: version.steps,
        staged: version.staged,
        source,
    }
}

async fn put(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    Query(how): Query<PutWorkflow>,
    request: Request,
) -> Result<Answer<Workflow>> {
    let source = source_of(request).await?;
    write(&app, &ask, Some(&name), source, how.dry_run).await
}

async fn create(
    State(app): State<App>,
    ask: Ask,
    Query(how): Query<PutWorkflow>,
    request: Request,
) -> Result<Answer<Workflow>> {
    let source = source_of(request).await?;
    write(&app, &ask, None, source, how.dry_run).await
}

/// Under the name it is given, or its own.
async fn write(app: &App, ask: &Ask, name: Option<&str>, source: String, dry: bool) -> Result<Answer<Workflow>> {
    // All that it contains has to be there, and fit.
    let gathered = start::gather(app, &ask.namespace, source.clone(), Default::default()).await?;
    let own = gathered.main.name.clone();
    let name = name.map(str::to_owned).or(own);
    let name =
        name.ok_or_else(|| Problem::invalid("name", "the definition has no name; add one, or PUT it under one"))?;
    let plan = gathered.plan(app, &ask.namespace, RunId::from_u128(0)).await?;
    let main = &plan.main;
    if dry {
        stored::check_name(&name, main)?;
        return Ok(ok(Workflow {
            name,
            namespace: ask.namespace.to_string(),
            version: 0,
            created_at: text(app.engine.now().await?),
            description: main.description.clone(),
            steps: main.steps.len() as u32,
            staged: main.is_staged(),
            source: None,
        }));
    }
    let (version, _) = stored::put(app, &ask.namespace, &name, (&source, main), &ask.caller.name).await?;
    Ok(ok(wire(&ask.namespace, &version, Some(source))))
}

async fn one(app: &App, ask: &Ask, name: &str, version: Option<u32>) -> Result<Answer<Workflow>> {
    let found = stored::load(app, &ask.namespace, name, version).await?;
    let found = found.ok_or_else(|| Problem::not_found("workflow", name))?;
    let source = stored::source(app, &ask.namespace, &found).await?;
    Ok(ok(wire(&ask.namespace, &found, Some(source))))
}

async fn show(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<Answer<Workflow>> {
    one(&app, &ask, &name, None).await
}

async fn version(
    State(app): State<App>,
    ask: Ask,
    Path((name, version)): Path<(String, u32)>,
) -> Result<Answer<Workflow>> {
    one(&app, &ask, &name, Some(version)).await
}

async fn list(State(app): State<App>, ask: Ask, Query(query): Query<Paging>) -> Result<Answer<Page<Workflow>>> {
    let (found, next) = records_page(&app, &ask.namespace, HEAD, &query).await?;
    let mut items = Vec::with_capacity(found.len());
    for record in &found {
        if let Some(version) = stored::load(&app, &ask.namespace, &record.key.key, None).await? {
            items.push(wire(&ask.namespace, &version, None));
        }
    }
    Ok(ok(Page { items, next }))
}

async fn versions(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<Workflow>>> {
    let limit = page_size(query.limit)?;
    let after = query.cursor.as_deref().map(Into::into);
    let found = stored::versions(&app, &ask.namespace, &name, after, limit).await?;
    let next = (found.len() == limit).then(|| found.last()).flatten();
    let next = next.map(|last| format!("{name}@{:010}", last.version));
    Ok(ok(Page { items: found.iter().map(|version| wire(&ask.namespace, version, None)).collect(), next }))
}

async fn delete(State(app): State<App>, ask: Ask, Path(name): Path<String>) -> Result<StatusCode> {
    stored::delete(&app, &ask.namespace, &name, &ask.caller.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn run(
    State(app): State<App>,
    ask: Ask,
    Path(name): Path<String>,
    headers: HeaderMap,
    Sent(body): Sent<StartRun>,
) -> Result<Answer<StartedRun>> {
    let whole = (&name, &body.input, body.version);
    let idempotency = key_of(&app, &ask.namespace, &headers, body.idempotency_key.as_deref(), whole).await?;
    // A workflow that is deleted starts no more runs, whatever versions there are.
    let latest = stored::load(&app, &ask.namespace, &name, None).await?;
    let latest = latest.ok_or_else(|| Problem::not_found("workflow", &name))?;
    let found = match body.version {
        Some(version) => stored::load(&app, &ask.namespace, &name, Some(version)).await?,
        None => Some(latest),
    };
    let found = found.ok_or_else(|| Problem::not_found("version of the workflow", &name).at("version"))?;
    let wanted = Wanted {
        namespace: &ask.namespace,
        source: stored::source(&app, &ask.namespace, &found).await?,
        workflow: Some(DefinitionRef { name: name.as_str().into(), version: found.version }),
        input: super::runs::input(&app, &ask.namespace, body.input.as_ref()).await?,
        owner: ask.caller.name.clone(),
        idempotency,
    };
    Ok(started(start::start(&app, wanted).await?))
}
