//! `/api/v1/artifacts`: files a job reads or leaves.
//!
//! The content lies in an object store (a folder, by default) under ids drawn here; a name given by a caller is never part
//! of a path. A file is complete or not there at all: its record is written after its content, and content without a
//! record is swept away. Artifacts of a job go when the job does.

use super::jobs::page_size;
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, ok},
    auth::{Caller, hex, home},
    problem::Problem,
    route::{Access, Header, Route},
    wire_time::text,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart, path::Path as Place};
use sha2::{Digest, Sha256};
use std::{fmt::Display, str::FromStr, sync::Arc, time::Duration};
use windlass_api::{
    Uuid,
    artifact::{Artifact, ListArtifacts, UploadArtifact},
    page::Page,
};
use windlass_core::{
    Facet, Job, JobId, JobKey, LeaseId, Namespace, RecordKey, Timestamp,
    commands::records::{DeleteRecord, Expect, PutRecord},
    principal::Role,
};
use windlass_engine::{ids, store::RecordQuery};

const KIND: &str = "artifact";
/// Where no other limit is set.
pub const BYTES_MAX: u64 = 1 << 30;
/// The route's own limit is above every limit that can be set, which is counted while the file arrives.
const ROUTE_MAX: usize = 1 << 44;
const NAME_BYTES_MAX: usize = 255;
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 2;
const SWEEP_PAGE: usize = 500;
/// Content younger than this may be of an upload under way.
const ORPHAN_AGE: Duration = Duration::from_secs(86_400);

const LEASE: Header = Header::text("Windlass-Lease", "The lease of the job; a worker has to send it.");

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/artifacts", Access::Any, upload)
            .says("Upload a file; a worker names the lease of the job it is for in the header `Windlass-Lease`")
            .query::<UploadArtifact>()
            .reads(LEASE)
            .takes_bytes("application/octet-stream")
            .answers::<Artifact>(201)
            .refuses(&["invalid", "too-large", "not-found", "lease-lost", "not-held", "not-holder", "unavailable"])
            .body_max(ROUTE_MAX),
        Route::get("/api/v1/artifacts", Access::Any, list)
            .says("List artifacts, of one job where asked")
            .query::<ListArtifacts>()
            .answers::<Page<Artifact>>(200)
            .refuses(&["invalid"]),
        Route::get("/api/v1/artifacts/{id}", Access::Any, show)
            .says("About one artifact")
            .answers::<Artifact>(200)
            .refuses(&["not-found"]),
        Route::get("/api/v1/artifacts/{id}/content", Access::Any, content)
            .says("The file itself")
            .answers_with(200, "application/octet-stream")
            .refuses(&["not-found", "unavailable"]),
        Route::delete("/api/v1/artifacts/{id}", Access::Editor, delete)
            .says("Delete an artifact")
            .answers_with(204, "")
            .refuses(&["not-found", "unavailable"]),
    ]
}

/// Opens where artifacts are kept: a folder's path, or the URL of an object store this server was built for.
pub fn open(place: &str) -> Result<Arc<dyn ObjectStore>, String> {
    if !place.contains("://") {
        std::fs::create_dir_all(place).map_err(|error| format!("the folder {place} cannot be made: {error}"))?;
        let folder = object_store::local::LocalFileSystem::new_with_prefix(place)
            .map_err(|error| format!("the folder {place} cannot be used: {error}"))?;
        return Ok(Arc::new(folder));
    }
    let url = parsed(place)?;
    let (store, prefix) = object_store::parse_url(&url).map_err(|error| format!("{place} cannot be used: {error}"))?;
    Ok(Arc::new(object_store::prefix::PrefixStore::new(store, prefix)))
}

/// Leaves it to the object store which type of URL it takes.
fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{text} is no URL: {error}"))
}

fn store(app: &App) -> Result<&Arc<dyn ObjectStore>, Problem> {
    app.options.artifacts.as_ref().ok_or_else(|| Problem::new("unavailable", "this server keeps no artifacts"))
}

fn broken(error: object_store::Error) -> Problem {
    if is_full(&error) {
        tracing::error!(%error, "there is no room for artifacts");
        return Problem::new("store-full", "there is no room for artifacts; make some where they are kept")
            .retry_after(1_000);
    }
    tracing::error!(%error, "the store of artifacts failed");
    Problem::new("unavailable", "the store of artifacts failed; the server's log says why").retry_after(1_000)
}

/// Whether somewhere among the reasons is a disk without room.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let mut reason = Some(error);
    while let Some(error) = reason {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| matches!(io.kind(), StorageFull | QuotaExceeded)) {
            return true;
        }
        reason = error.source();
    }
    false
}

/// Spread over folders, because some file systems dislike many files in one.
fn place(id: Uuid) -> Place {
    let name = id.simple().to_string();
    Place::from_iter([&name[30..], name.as_str()])
}

fn record_key(id: Uuid) -> RecordKey {
    RecordKey { namespace: home(), kind: KIND.into(), key: id.to_string().into() }
}

fn check_name(name: &str) -> Result<(), Problem> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(Problem::invalid("name", format!("must have 1 to {NAME_BYTES_MAX} bytes and no control characters")))
}

/// A worker adds to a job it holds, and to nothing else; people add to what they like.
async fn check_right(app: &App, ask: &Ask, headers: &HeaderMap, job: Option<Uuid>) -> Result<(), Problem> {
    let row = match job {
        Some(id) => {
            let found = app.engine.store().job(&JobKey::new(&ask.namespace, JobId(id))).await?;
            Some(found.ok_or_else(|| Problem::not_found("job", id).at("job"))?)
        }
        None => None,
    };
    match ask.caller.role {
        Role::Worker => {
            let row = row.ok_or_else(|| Problem::invalid("job", "a worker uploads to a job it holds"))?;
            let lease = LEASE.of(headers)?;
            let lease = lease.ok_or_else(|| Problem::invalid(LEASE.name, "send the lease the claim gave"))?;
            check_lease(&row, super::convert::lease(lease)?, &ask.caller, app.engine.now().await?)
        }
        role if role.includes(Role::Editor) => Ok(()),
        _ => Err(Problem::new("forbidden", "a viewer may not upload")),
    }
}

fn check_lease(job: &Job, lease: LeaseId, caller: &Caller, now: Timestamp) -> Result<(), Problem> {
    if lease.job != job.key.id {
        return Err(Problem::invalid(LEASE.name, "this is the lease of another job"));
    }
    let held = job.held_by(lease.secret)?;
    if held.principal.as_ref().is_some_and(|principal| *principal != caller.name) {
        return Err(windlass_core::Refusal::NotHolder.into());
    }
    match job.overdue(now) {
        Some(_) => Err(windlass_core::Refusal::LeaseLost { state: job.state }.into()),
        None => Ok(()),
    }
}

async fn upload(
    State(app): State<App>,
    ask: Ask,
    Query(query): Query<UploadArtifact>,
    request: Request,
) -> Result<Answer<Artifact>, Problem> {
    check_name(&query.name)?;
    check_right(&app, &ask, request.headers(), query.job).await?;
    let wanted = query.sha256.as_deref().map(str::to_ascii_lowercase);
    if wanted.as_ref().is_some_and(|wanted| wanted.len() != 64 || !wanted.bytes().all(|b| b.is_ascii_hexdigit())) {
        return Err(Problem::invalid("sha256", "must be 64 hexadecimal digits"));
    }
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.filter(|value| value.len() <= NAME_BYTES_MAX).map(str::to_owned);
    let headers = request.headers().clone();
    let id = ids::job_id().0;
    let (size, sha256) = receive(&app, id, request.into_body(), wanted.as_deref()).await?;
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
    // The lease may have run out while the file came in.
    let written = match check_right(&app, &ask, &headers, query.job).await {
        Ok(()) => write(&app, &ask.namespace, &artifact).await,
        refused => refused,
    };
    if let Err(problem) = written {
        remove(&app, id).await;
        return Err(problem);
    }
    Ok(Answer(StatusCode::CREATED, artifact))
}

/// Takes the file in piece by piece. Whatever goes wrong, nothing of it stays.
async fn receive(app: &App, id: Uuid, body: Body, wanted: Option<&str>) -> Result<(u64, String), Problem> {
    let upload = store(app)?.put_multipart(&place(id)).await.map_err(broken)?;
    let mut file = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    let taken = take_in(&mut file, body, app.options.artifact_bytes_max).await;
    let checked = taken.and_then(|(size, sha256)| match wanted {
        Some(wanted) if wanted != sha256 => {
            let why = format!("the file's digest is {sha256}: it was changed on the way, or another file was meant");
            Err(Problem::invalid("sha256", why))
        }
        _ => Ok((size, sha256)),
    });
    match checked {
        Ok(done) => file.finish().await.map(|_| done).map_err(broken),
        Err(problem) => {
            if let Err(error) = file.abort().await {
                tracing::warn!(%error, "a half upload could not be removed; the next sweep will");
            }
            Err(problem)
        }
    }
}

async fn take_in(file: &mut WriteMultipart, body: Body, bytes_max: u64) -> Result<(u64, String), Problem> {
    let (mut size, mut hash) = (0u64, Sha256::new());
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Problem::new("bad-request", "the file ended early").at("body"))?;
        size += piece.len() as u64;
        if size > bytes_max {
            return Err(Problem::new("too-large", format!("a file may have at most {bytes_max} bytes")).at("body"));
        }
        hash.update(&piece);
        file.wait_for_capacity(PARTS_AT_ONCE).await.map_err(broken)?;
        file.put(piece);
    }
    Ok((size, hex(&hash.finalize())))
}

async fn write(app: &App, namespace: &Namespace, artifact: &Artifact) -> Result<(), Problem> {
    let value = serde_json::to_string(artifact).map_err(|error| Problem::new("internal", error.to_string()))?;
    let mut facets = vec![Facet::new("namespace", namespace.as_str())];
    facets.extend(artifact.job.map(|job| of_job(namespace, job)));
    let put = PutRecord {
        key: record_key(artifact.id),
        expect: Expect::Nothing,
        parent: None,
        value: value.into(),
        facets,
        expires_at: None,
    };
    app.engine.run(put).await?;
    Ok(())
}

fn of_job(namespace: &Namespace, job: Uuid) -> Facet {
    Facet::new("job", &format!("{namespace}/{job}"))
}

async fn remove(app: &App, id: Uuid) {
    let Ok(store) = store(app) else { return };
    match store.delete(&place(id)).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
        Err(error) => tracing::warn!(%error, "an artifact's content could not be removed; the next sweep will"),
    }
}

async fn find(app: &App, ask: &Ask, id: Uuid) -> Result<Artifact, Problem> {
    let record = app.engine.store().record(&record_key(id)).await?;
    let found = record.and_then(|record| serde_json::from_str::<Artifact>(&record.value).ok());
    let found = found.filter(|artifact| artifact.namespace == ask.namespace.as_str());
    found.ok_or_else(|| Problem::not_found("artifact", id))
}

async fn show(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<Artifact>, Problem> {
    find(&app, &ask, id).await.map(ok)
}

async fn content(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let artifact = find(&app, &ask, id).await?;
    let found = store(&app)?.get(&place(id)).await.map_err(|error| match error {
        object_store::Error::NotFound { .. } => Problem::not_found("content of the artifact", id),
        error => broken(error),
    })?;
    let mut response = Body::from_stream(found.into_stream()).into_response();
    let headers = response.headers_mut();
    // Never shown as a page of this server, whatever somebody uploaded.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(artifact.size));
    headers.insert(header::CONTENT_DISPOSITION, disposition(&artifact.name));
    Ok(response)
}

/// RFC 6266: a plain name for old readers, and the whole one, both harmless in a header. Readers see a file name, never a
/// path.
fn disposition(name: &str) -> HeaderValue {
    let name = match name.rsplit(['/', '\\']).next().unwrap_or_default() {
        "" | "." | ".." => "artifact",
        last => last,
    };
    let keeps = |c: char| c.is_ascii_alphanumeric() || " -_.+=,@()[]".contains(c);
    let plain: String = name.chars().map(|c| if keeps(c) { c } else { '_' }).collect();
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let whole: String = name
        .bytes()
        .map(|byte| if safe(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let value = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}");
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

async fn delete(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<StatusCode, Problem> {
    find(&app, &ask, id).await?;
    app.engine.run(DeleteRecord { key: record_key(id), expect: Expect::Anything }).await?;
    remove(&app, id).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn list(
    State(app): State<App>,
    ask: Ask,
    Query(query): Query<ListArtifacts>,
) -> Result<Answer<Page<Artifact>>, Problem> {
    let limit = page_size(query.limit)?;
    let facet = match query.job {
        Some(job) => of_job(&ask.namespace, job),
        None => Facet::new("namespace", ask.namespace.as_str()),
    };
    let records = RecordQuery {
        namespace: home(),
        kind: KIND.into(),
        parent: None,
        facet: Some(facet),
        after: query.cursor.as_deref().map(Into::into),
        limit,
    };
    let found = app.engine.store().records(&records).await?;
    let next = (found.len() == limit).then(|| found.last().map(|record| record.key.key.to_string())).flatten();
    let items = found.iter().filter_map(|record| serde_json::from_str(&record.value).ok()).collect();
    Ok(ok(Page { items, next }))
}

/// Removes artifacts whose jobs are gone, and content that no record knows. How many went.
pub async fn sweep(app: &App) -> Result<usize, Problem> {
    Ok(sweep_records(app).await? + sweep_content(app).await?)
}

async fn sweep_records(app: &App) -> Result<usize, Problem> {
    let mut query =
        RecordQuery { namespace: home(), kind: KIND.into(), parent: None, facet: None, after: None, limit: SWEEP_PAGE };
    let mut gone = 0;
    loop {
        let found = app.engine.store().records(&query).await?;
        for artifact in found.iter().filter_map(|record| serde_json::from_str::<Artifact>(&record.value).ok()) {
            let (Some(job), Ok(namespace)) = (artifact.job, Namespace::new(&artifact.namespace)) else { continue };
            if app.engine.store().job(&JobKey::new(&namespace, JobId(job))).await?.is_none() {
                app.engine.run(DeleteRecord { key: record_key(artifact.id), expect: Expect::Anything }).await?;
                remove(app, artifact.id).await;
                gone += 1;
            }
        }
        match found.last() {
            Some(last) if found.len() == SWEEP_PAGE => query.after = Some(last.key.key.clone()),
            _ => return Ok(gone),
        }
    }
}

async fn sweep_content(app: &App) -> Result<usize, Problem> {
    let Ok(store) = store(app) else { return Ok(0) };
    let before = app.engine.now().await?.0 - ORPHAN_AGE.as_millis() as i64;
    let mut objects = store.list(None);
    let mut gone = 0;
    while let Some(object) = objects.next().await {
        let object = object.map_err(broken)?;
        let id = object.location.filename().and_then(|name| Uuid::parse_str(name).ok());
        let old = object.last_modified.timestamp_millis() < before;
        let Some(id) = id.filter(|_| old) else { continue };
        if app.engine.store().record(&record_key(id)).await?.is_none() {
            remove(app, id).await;
            gone += 1;
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_header() {
        for (name, plain) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("a\"; filename=\"b", "a__ filename=_b"),
            ("C:\\Windows\\evil.exe", "evil.exe"),
            ("..", "artifact"),
            ("größe.txt", "gr__e.txt"),
        ] {
            let value = disposition(name);
            let text = value.to_str().unwrap();
            assert!(text.starts_with(&format!("attachment; filename=\"{plain}\"; filename*=UTF-8''")), "{text}");
            assert!(!text.contains('\n') && text.is_ascii());
        }
    }
}
