//! The content of files: taken in piece by piece, given out again, removed when nobody knows it any more.
//!
//! It lies in an object store (a folder, by default) under ids drawn here; a name given by a caller is never part of a path.
//! A file is complete or not there at all: whoever keeps one writes a record of it after its content, and content that no
//! record knows is swept away.

use crate::{
    app::App,
    artifacts,
    ask::unread,
    problem::{Code, Problem, Result},
    quota::{self, Grant, Owner},
    upload::{self, Upload},
};
use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, header};
use hyper::body::Body as _;
use object_store::{ObjectStore, ObjectStoreExt, path::Path as ObjectPath};
use serde::de::DeserializeOwned;
use std::{
    fmt::Display,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::{Duration, SystemTime},
};
use windlass_api::Uuid;
use windlass_core::{Facet, Namespace};
use windlass_engine::{records::readable, store::RecordQuery};
use windlass_product::files;

/// Where no other limit is set.
pub const BYTES_MAX: u64 = 1 << 30;
/// A route's own limit is above every limit that can be set, which is counted while the file arrives.
pub const ROUTE_MAX: usize = 1 << 44;
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of an upload between two looks at the disk.
const LOOK_EVERY: u64 = 1 << 20;
const PUT_BYTES: usize = 256 << 10;
const PRIVATE: u32 = 0o700;
const OF_OTHERS: u32 = 0o007;
/// Content younger than this may be of an upload under way.
const ORPHAN_AGE: Duration = Duration::from_secs(86_400);
/// A half upload that was not written to for so long has no server any more: bodies that come so slowly are ended.
const HALF_AGE: Duration = Duration::from_secs(3_600);
/// To forget files on a full disk, once their bytes are gone.
const FORGET_TRIES: usize = 5;
const FORGET_PAUSE: Duration = Duration::from_millis(50);

/// Where files are kept.
#[derive(Clone, Debug)]
pub struct Files {
    store: Arc<dyn ObjectStore>,
    /// Where it is a folder of this machine.
    folder: Option<PathBuf>,
    synced: bool,
}

impl Files {
    pub fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Acknowledges files before they are on disk, where they lie in a folder.
    pub fn unsynced(self) -> Self {
        Self { synced: false, ..self }
    }
}

/// Opens where files are kept: a folder's path, or the URL of an object store this server was built for.
pub fn open(place: &str) -> Result<Files, String> {
    if !place.contains("://") {
        let folder = PathBuf::from(place);
        make_private(&folder).map_err(|error| format!("the folder {place} cannot be made: {error}"))?;
        let store = object_store::local::LocalFileSystem::new_with_prefix(place)
            .map_err(|error| format!("the folder {place} cannot be used: {error}"))?;
        return Ok(Files { store: Arc::new(store), folder: Some(folder), synced: true });
    }
    let url = parsed(place)?;
    let (store, prefix) = object_store::parse_url(&url).map_err(|error| format!("{place} cannot be used: {error}"))?;
    Ok(Files { store: Arc::new(object_store::prefix::PrefixStore::new(store, prefix)), folder: None, synced: true })
}

/// Only the server's own user gets at a new folder, and so at everything below it. One that everybody may enter is closed to
/// them; what a group may do there is somebody's decision, and stays.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(PRIVATE).create(folder)?;
    let permissions = fs::metadata(folder)?.permissions();
    if permissions.mode() & OF_OTHERS == 0 {
        return Ok(());
    }
    match fs::set_permissions(folder, Permissions::from_mode(permissions.mode() & !OF_OTHERS)) {
        Ok(()) => tracing::info!(folder = %folder.display(), "removed other users' access to the artifact folder"),
        // It may belong to somebody else, or lie where there are no such rights.
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "other users of this machine can read the artifact folder");
        }
    }
    Ok(())
}

/// What an upload has in memory: parts on their way, and the one that is being filled.
pub fn upload_buffers(app: &App) -> u64 {
    let taken = |files: &Files| if files.folder.is_some() { upload::IN_FOLDER } else { upload::IN_STORE };
    app.options.artifacts.as_ref().map_or(0, taken) as u64
}

/// Leaves it to the object store which type of URL it takes.
fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{text} is not a URL: {error}"))
}

fn store(app: &App) -> Result<&Arc<dyn ObjectStore>> {
    files_of(app).map(|files| &files.store)
}

pub fn files_of(app: &App) -> Result<&Files> {
    app.options.artifacts.as_ref().ok_or_else(|| Problem::new(Code::Unavailable, "this server keeps no artifacts"))
}

pub fn broken(error: &(dyn std::error::Error + 'static)) -> Problem {
    if is_full(error) {
        tracing::error!(%error, "there is no space for artifacts");
        return Problem::new(Code::StoreFull, "there is no space for artifacts; free some on their disk")
            .retry_after(1_000);
    }
    tracing::error!(%error, "the store of artifacts failed");
    Problem::new(Code::Unavailable, "the store of artifacts failed; the server's log says why").retry_after(1_000)
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
pub fn place(id: Uuid) -> ObjectPath {
    let name = id.simple().to_string();
    ObjectPath::from_iter([&name[30..], name.as_str()])
}

/// A digest that a caller announced, in lower case.
pub fn announced(sha256: Option<&str>) -> Result<Option<String>> {
    let wanted = sha256.map(str::to_ascii_lowercase);
    if wanted.as_ref().is_some_and(|wanted| wanted.len() != 64 || !wanted.bytes().all(|b| b.is_ascii_hexdigit())) {
        return Err(Problem::invalid("sha256", "must be 64 hexadecimal digits"));
    }
    Ok(wanted)
}

/// What the caller says the file is.
pub fn content_type(headers: &HeaderMap) -> Option<String> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    said.filter(|value| value.len() <= NAME_BYTES_MAX).map(str::to_owned)
}

/// Takes the file in piece by piece: its size and digest. Whatever goes wrong, nothing of it stays.
pub async fn receive(
    app: &App,
    owner: &Owner,
    id: Uuid,
    request: Request,
    wanted: Option<&str>,
) -> Result<(u64, String, Grant)> {
    let told = request.body().size_hint().exact().unwrap_or(0);
    let bytes_max = app.options.artifact_bytes_max;
    if told > bytes_max {
        return Err(too_large(bytes_max));
    }
    let mut grant = app.usage.enter(app, owner, told).await?;
    has_room(app, told).await?;
    let mut file = Upload::begin(app, &owner.namespace, id).await?;
    let checked = match take_in(app, &mut file, request.into_body(), &mut grant).await {
        Ok((_, sha256)) if wanted.is_some_and(|wanted| wanted != sha256) => {
            let why = format!("the file's digest is {sha256}: it was changed on the way, or another file was meant");
            Err(Problem::invalid("sha256", why))
        }
        taken => taken,
    };
    match checked {
        Ok((size, sha256)) => file.keep().await.map(|()| (size, sha256, grant)),
        Err(problem) => {
            file.give_up().await;
            Err(problem)
        }
    }
}

async fn take_in(app: &App, file: &mut Upload<'_>, body: Body, grant: &mut Grant) -> Result<(u64, String)> {
    let (bytes_max, mut size, mut looked_at) = (app.options.artifact_bytes_max, 0u64, 0);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(unread)?;
        size += piece.len() as u64;
        if size > bytes_max {
            return Err(too_large(bytes_max));
        }
        if size > looked_at {
            looked_at = size + LOOK_EVERY;
            // Others write to the same disk, and a file that did not say how large it is grows.
            grant.reach(app, size).await?;
            has_room(app, 0).await?;
        }
        // What was all there already comes as one piece: copying it in one go would keep this thread.
        for part in piece.chunks(PUT_BYTES) {
            file.put(part).await?;
        }
    }
    grant.reach(app, size).await?;
    Ok((size, file.digest().await?))
}

fn too_large(bytes_max: u64) -> Problem {
    Problem::new(Code::TooLarge, format!("a file may have at most {bytes_max} bytes (artifact_max)")).at("body")
}

async fn has_room(app: &App, bytes: u64) -> Result<()> {
    let Some(folder) = files_of(app)?.folder.clone() else { return Ok(()) };
    let limits = app.options.files;
    let looked = tokio::task::spawn_blocking(move || quota::has_room(&folder, &limits, bytes)).await;
    looked.unwrap_or(Ok(()))
}

/// Whether there is room for another file.
pub async fn is_roomy(app: &App) -> bool {
    app.options.artifacts.is_none() || has_room(app, 0).await.is_ok()
}

/// Bytes and number of the files that records of a kind keep in mind.
pub async fn total<T: DeserializeOwned>(
    app: &App,
    namespace: Namespace,
    kind: &str,
    facet: Option<Facet>,
    size: fn(&T) -> u64,
) -> Result<(u64, u64)> {
    let mut pages = app.engine.pages(RecordQuery { facet, ..RecordQuery::all(namespace, kind) });
    let (mut bytes, mut count) = (0u64, 0);
    while let Some(found) = pages.next().await? {
        for file in found.iter().filter_map(readable) {
            bytes = bytes.saturating_add(size(&file));
            count += 1;
        }
    }
    Ok((bytes, count))
}

/// The file as an answer. None: its content is gone.
pub async fn answer(app: &App, id: Uuid, name: &str, size: u64, sha256: &str) -> Result<Option<Response>> {
    let found = match store(app)?.get(&place(id)).await {
        Ok(found) => found,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(broken(&error)),
    };
    let mut response = Body::from_stream(found.into_stream()).into_response();
    let headers = response.headers_mut();
    // Never shown as a page of this server, whatever somebody uploaded.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(header::CONTENT_DISPOSITION, disposition(name));
    if let Ok(digest) = HeaderValue::from_str(sha256) {
        headers.insert("x-content-sha256", digest);
    }
    Ok(Some(response))
}

/// RFC 6266: a plain name for old readers, and the whole one, both harmless in a header. Readers see a file name, never a
/// path.
pub fn disposition(name: &str) -> HeaderValue {
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

/// All of it, for those who know that it is not too much.
pub async fn bytes(app: &App, id: Uuid) -> Result<Option<bytes::Bytes>> {
    match store(app)?.get(&place(id)).await {
        Ok(found) => found.bytes().await.map(Some).map_err(|error| broken(&error)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(broken(&error)),
    }
}

/// Whether it is gone.
pub async fn remove(app: &App, id: Uuid) -> bool {
    let Ok(store) = store(app) else { return false };
    match store.delete(&place(id)).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => true,
        Err(error) => {
            tracing::warn!(%error, "the content of an artifact could not be removed; the next sweep tries again");
            false
        }
    }
}

/// Deletes records of files. On a full disk not even that can be written; then the bytes go first, which makes room for it.
pub async fn freeing<T, D: Future<Output = Result<T>>>(
    app: &App,
    contents: impl Future<Output = Result<Vec<Uuid>>>,
    delete: impl Fn() -> D,
) -> Result<T> {
    let is_full = |deleted: &Result<T>| deleted.as_ref().is_err_and(|problem| problem.0.is(Code::StoreFull));
    let mut deleted = delete().await;
    if !is_full(&deleted) {
        return deleted;
    }
    for id in contents.await? {
        remove(app, id).await;
    }
    // Others may take the room that was made; but not all the time.
    for _ in 0..FORGET_TRIES {
        deleted = delete().await;
        if !is_full(&deleted) {
            break;
        }
        tokio::time::sleep(FORGET_PAUSE).await;
    }
    deleted
}

/// Removes what a server that was killed left of uploads, which the object store does not list. How many went.
pub async fn sweep_halves(app: &App) -> usize {
    let Some(folder) = files_of(app).ok().and_then(|files| files.folder.clone()) else { return 0 };
    let Ok(before) = ago(app, HALF_AGE).await else { return 0 };
    tokio::task::spawn_blocking(move || halves(&folder, before).filter(|half| fs::remove_file(half).is_ok()).count())
        .await
        .unwrap_or(0)
}

/// A time of which files are that old, by the clock that decides and by the one on the wall, which files are stamped with: what is
/// coming in looks old to neither, whichever way the wall's is set meanwhile.
async fn ago(app: &App, age: Duration) -> Result<SystemTime> {
    let now = app.engine.now().await?.min(app.engine.wall().await?);
    Ok(SystemTime::UNIX_EPOCH + Duration::from_millis(now.0.max(0) as u64).saturating_sub(age))
}

fn halves(folder: &Path, before: SystemTime) -> impl Iterator<Item = PathBuf> {
    let inside = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let old = move |path: &PathBuf| {
        let written = fs::metadata(path).and_then(|told| told.modified());
        written.is_ok_and(|at| at < before)
    };
    let half = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let parts = name.and_then(|name| name.split_once('#'));
        parts.is_some_and(|(id, times)| {
            times.parse::<u32>().is_ok() && Uuid::parse_str(id).is_ok_and(|found| found.simple().to_string() == id)
        })
    };
    inside(folder).flat_map(move |part| inside(&part)).filter(half).filter(old)
}

/// Whether this content is a file of a revision.
async fn is_in_revision(app: &App, id: Uuid) -> Result<bool> {
    for namespace in &app.options.with_files {
        if files::knows(&app.engine, namespace, id).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes what no record knows. How many files went. What is not where we put files is somebody else's.
pub async fn sweep(app: &App) -> Result<usize> {
    let Ok(store) = store(app) else { return Ok(0) };
    let before = ago(app, ORPHAN_AGE).await?;
    let mut objects = store.list(None);
    let mut gone = 0;
    while let Some(object) = objects.next().await {
        let object = object.map_err(|error| broken(&error))?;
        let id = object.location.filename().and_then(|name| Uuid::parse_str(name).ok());
        let old = SystemTime::from(object.last_modified) < before;
        let Some(id) = id.filter(|id| old && object.location == place(*id)) else { continue };
        if !artifacts::knows(app, id).await? && !is_in_revision(app, id).await? && remove(app, id).await {
            gone += 1;
        }
    }
    Ok(gone)
}
