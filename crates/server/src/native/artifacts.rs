//! `/api/v1/artifacts`: files a job reads or leaves. Those of a job go when the job does.

use super::{
    jobs::page_size,
    leases::{LEASE, sent_holder},
};
pub use crate::content::{BYTES_MAX, open};
use crate::{
    app::App,
    artifacts::{KIND, forget, of_job, of_namespace, put, record_key},
    ask::{Answer, Ask, Path, Query, ok},
    auth::system_namespace,
    content::{self, NAME_BYTES_MAX, ROUTE_MAX},
    problem::{Code, Problem, Result},
    quota::Owner,
    route::{Access, Route},
    wire_time::text,
};
use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use windlass_api::{
    Uuid,
    artifact::{Artifact, ListArtifacts, UploadArtifact},
    page::Page,
};
use windlass_core::{
    Command, JobId, JobKey, Namespace,
    commands::{all::All, holds::Holds},
    principal::Role,
};
use windlass_engine::{ids, store::RecordQuery};

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/artifacts", Access::Any, upload)
            .says("Upload a file; a worker sends the lease of its job in the header `Windlass-Lease`")
            .query::<UploadArtifact>()
            .reads(LEASE)
            .takes_bytes("application/octet-stream")
            .answers::<Artifact>(201)
            .refuses(&[
                Code::Invalid,
                Code::TooLarge,
                Code::NotFound,
                Code::LeaseLost,
                Code::NotHeld,
                Code::NotHolder,
                Code::Unavailable,
            ])
            .body_max(ROUTE_MAX),
        Route::get("/api/v1/artifacts", Access::Any, list)
            .says("List artifacts, optionally of one job")
            .query::<ListArtifacts>()
            .answers::<Page<Artifact>>(200)
            .refuses(&[Code::Invalid]),
        Route::get("/api/v1/artifacts/{id}", Access::Any, show)
            .says("About one artifact")
            .answers::<Artifact>(200)
            .refuses(&[Code::NotFound]),
        Route::get("/api/v1/artifacts/{id}/content", Access::Any, content)
            .says("Download the file")
            .answers_with(200, "application/octet-stream")
            .refuses(&[Code::NotFound, Code::Unavailable]),
        Route::delete("/api/v1/artifacts/{id}", Access::Editor, delete)
            .says("Delete an artifact")
            .answers_with(204, "")
            .refuses(&[Code::NotFound, Code::Unavailable]),
    ]
}

fn check_name(name: &str) -> Result<()> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(Problem::invalid("name", format!("must have 1 to {NAME_BYTES_MAX} bytes and no control characters")))
}

/// A worker adds to a job it holds, and to nothing else; people add to what they like. Whose lease has to hold when the
/// file is there.
async fn check_right(app: &App, ask: &Ask, headers: &HeaderMap, job: Option<Uuid>) -> Result<Option<Holds>> {
    let role = ask.caller.role;
    if role != Role::Worker && !role.includes(Role::Editor) {
        return Err(Problem::new(Code::Forbidden, "a viewer may not upload"));
    }
    let Some(id) = job else {
        let no_job = || Problem::invalid("job", "a worker uploads to a job it holds");
        return if role == Role::Worker { Err(no_job()) } else { Ok(None) };
    };
    let key = JobKey::new(&ask.namespace, JobId(id));
    if app.engine.store().job(&key).await?.is_none() {
        return Err(Problem::not_found("job", id).at("job"));
    }
    let Some(holder) = sent_holder(&ask.caller, &ask.namespace, headers)? else { return Ok(None) };
    if holder.job_key() != key {
        return Err(Problem::invalid(LEASE.name, "this is the lease of another job"));
    }
    let holds = Holds { holder };
    // Before a long upload. What counts is said once more when its record is written.
    app.engine.run(holds.clone()).await?;
    Ok(Some(holds))
}

async fn upload(
    State(app): State<App>,
    ask: Ask,
    Query(query): Query<UploadArtifact>,
    request: Request,
) -> Result<Answer<Artifact>> {
    check_name(&query.name)?;
    let holds = check_right(&app, &ask, request.headers(), query.job).await?;
    let wanted = content::announced(query.sha256.as_deref())?;
    let content_type = content::content_type(request.headers());
    let id = ids::job_id().0;
    let owner = Owner { namespace: ask.namespace.clone(), job: query.job };
    let (size, sha256, grant) = content::receive(&app, &owner, id, request, wanted.as_deref()).await?;
    let artifact = Artifact {
        id,
        namespace: ask.namespace.to_string(),
        name: query.name,
        size,
        sha256,
        content_type,
        job: query.job,
        created_at: text(app.engine.now().await?),
    };
    if let Err(problem) = write(&app, &ask.namespace, &artifact, holds).await {
        content::remove(&app, id).await;
        return Err(problem);
    }
    grant.keep(size);
    Ok(Answer(StatusCode::CREATED, artifact))
}

/// The lease may have run out while the file came in.
async fn write(app: &App, namespace: &Namespace, artifact: &Artifact, holds: Option<Holds>) -> Result<()> {
    let commands = holds.map(Command::from).into_iter().chain([put(namespace, artifact)?]).collect();
    app.engine.run(All { commands }).await?;
    Ok(())
}

async fn find(app: &App, ask: &Ask, id: Uuid) -> Result<Artifact> {
    let record = app.engine.store().record(&record_key(id)).await?;
    let found = record.and_then(|record| serde_json::from_str::<Artifact>(&record.value).ok());
    let found = found.filter(|artifact| artifact.namespace == ask.namespace.as_str());
    found.ok_or_else(|| Problem::not_found("artifact", id))
}

async fn show(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<Artifact>> {
    find(&app, &ask, id).await.map(ok)
}

async fn content(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Response> {
    let artifact = find(&app, &ask, id).await?;
    let answer = content::answer(&app, id, &artifact.name, artifact.size, &artifact.sha256).await?;
    answer.ok_or_else(|| Problem::not_found("content of the artifact", id))
}

async fn delete(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<StatusCode> {
    let artifact = find(&app, &ask, id).await?;
    let engine = &app.engine;
    let forget = || async move { Ok(engine.run(forget(id)).await?) };
    content::freeing(&app, async { Ok(vec![id]) }, forget).await?;
    content::remove(&app, id).await;
    app.usage.forget(&Owner { namespace: ask.namespace, job: artifact.job }, artifact.size);
    Ok(StatusCode::NO_CONTENT)
}

async fn list(State(app): State<App>, ask: Ask, Query(query): Query<ListArtifacts>) -> Result<Answer<Page<Artifact>>> {
    let limit = page_size(query.limit)?;
    let facet = match query.job {
        Some(job) => of_job(&ask.namespace, job),
        None => of_namespace(&ask.namespace),
    };
    let records = RecordQuery {
        facet: Some(facet),
        after: query.cursor.as_deref().map(Into::into),
        limit,
        ..RecordQuery::all(system_namespace(), KIND)
    };
    let found = app.engine.store().records(&records).await?;
    let next = (found.len() == limit).then(|| found.last().map(|record| record.key.key.to_string())).flatten();
    let items = found.iter().filter_map(|record| serde_json::from_str(&record.value).ok()).collect();
    Ok(ok(Page { items, next }))
}
