//! Files of an item's revisions, which jobs read.
//!
//! A revision is history, so a file of it is never replaced: another one of the same name is refused, and the same one once
//! more changes nothing. Files of the next revision, the one that is not there yet, may be put and replaced, so that the
//! jobs a revision sets off find its files. They go with their item.

use super::{
    body::{Here, Json, Listed, Params, Path, created, ok, page, time},
    error::{HttpError, Result},
    namespace, products,
};
use crate::{
    app::App,
    auth::Caller,
    content, product,
    quota::{Grant, Owner},
};
use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use serde_json::{Value, json};
use windlass_api::Uuid;
use windlass_core::Timestamp;
use windlass_engine::ids;
use windlass_product::{
    Products,
    files::{self, File},
    items,
    records::{self, Change},
    revisions,
    rules::item::Item,
    write_change,
};

/// Of one revision, or of one job.
pub const FILES_MAX: usize = 1_000;
const PARTS_MAX: usize = 16;

pub fn shown(file: &File) -> Value {
    json!({
        "name": file.name,
        "size": file.size,
        "sha256": file.sha256,
        "content_type": file.content_type,
        "created_at": time(file.created_at),
        "created_by": file.created_by,
    })
}

/// A relative path below some folder, on any system: no way up, nothing hidden in it.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let parts = || name.split('/');
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.ends_with([' ', '.']);
    let fits = (1..=content::NAME_BYTES_MAX).contains(&name.len())
        && parts().count() <= PARTS_MAX
        && parts().all(plain)
        && !name.chars().any(|c| c.is_control() || matches!(c, '\\' | ':'));
    if fits {
        return Ok(());
    }
    let max = content::NAME_BYTES_MAX;
    Err(HttpError::invalid(format!(
        "{what}: {name:?} must be a relative path of at most {max} bytes and {PARTS_MAX} parts, without . and .., \\, : \
         and control characters"
    )))
}

/// An item and a revision that is there, or the one that will be next.
async fn revision(products: &Products, part: &str, number: &str) -> Result<(Item, u32)> {
    let item = items::find(products, part).await?.value;
    let number = number.parse().map_err(|_| HttpError::missing("revision", number))?;
    check_revision(products, &item, number).await?;
    Ok((item, number))
}

async fn check_revision(products: &Products, item: &Item, number: u32) -> Result<()> {
    if Some(number) != item.current_revision.checked_add(1) {
        revisions::find(products, item, number).await?;
    }
    Ok(())
}

/// A file comes in; its record is written by the caller.
pub struct Incoming {
    pub id: Uuid,
    pub size: u64,
    pub sha256: String,
    pub content_type: Option<String>,
    /// Its room on the disk, to be kept with it.
    pub grant: Grant,
}

impl Incoming {
    fn file(&self, name: &str, item: Uuid, now: Timestamp, by: &str) -> File {
        File {
            name: name.to_owned(),
            item,
            content: self.id,
            size: self.size,
            sha256: self.sha256.clone(),
            content_type: self.content_type.clone(),
            created_at: now,
            created_by: by.to_owned(),
        }
    }
}

/// Where a file of a revision belongs.
struct FileAddress<'a> {
    part: &'a str,
    number: u32,
    name: &'a str,
}

pub async fn receive(app: &App, job: Option<Uuid>, params: &Params, request: Request) -> Result<Incoming> {
    let wanted = content::announced(params.get("sha256"))?;
    let (id, content_type) = (ids::job_id().0, content::content_type(request.headers()));
    let owner = Owner { namespace: namespace(), job };
    let (size, sha256, grant) = content::receive(app, &owner, id, request, wanted.as_deref()).await?;
    Ok(Incoming { id, size, sha256, content_type, grant })
}

pub async fn upload(
    State(app): State<App>,
    caller: Caller,
    Path((part, number, name)): Path<(String, String, String)>,
    params: Params,
    request: Request,
) -> Result<Json<Value>> {
    let products = products(&app);
    let (_, number) = revision(&products, &part, &number).await?;
    check_name("name", &name)?;
    let incoming = receive(&app, None, &params, request).await?;
    let written = keep(&products, &FileAddress { part: &part, number, name: &name }, &incoming, &caller.name).await;
    if matches!(written, Ok((_, true, _))) {
        incoming.grant.keep(incoming.size);
    } else {
        content::remove(&app, incoming.id).await;
    }
    let (file, taken, before) = written?;
    let new = taken && before.is_none();
    product::files::remove(&app, before.into_iter().collect()).await;
    Ok(if new { created(shown(&file)) } else { ok(shown(&file)) })
}

/// The file as it is kept, whether it is this one, and the content of the one it replaces.
async fn keep(
    products: &Products,
    place: &FileAddress<'_>,
    incoming: &Incoming,
    by: &str,
) -> Result<(File, bool, Option<Uuid>)> {
    let FileAddress { part, number, name } = *place;
    write_change!(products, HttpError, {
        let kept = items::find(products, part).await?;
        let item = &kept.value;
        check_revision(products, item, number).await?;
        let mut commands = Vec::new();
        let before = files::at(products, item, number, name).await?;
        let same = before.as_ref().map(|before| &before.value).filter(|file| file.item == item.id);
        if let Some(same) = same {
            if same.sha256 == incoming.sha256 {
                return Ok(Change { commands, answer: (same.clone(), false, None) });
            }
            if number <= item.current_revision {
                return Err(HttpError::conflict(format!(
                    "revision {number} of {part} has another file {name} (sha256 {}); make a new revision, or delete it first",
                    same.sha256
                )));
            }
            // So that the revision does not come into being meanwhile, with the file that is replaced.
            commands.push(items::put(products, item, kept.unchanged())?);
        } else if files::all(products, item, number).await?.len() >= FILES_MAX {
            return Err(HttpError::invalid(format!("a revision may have {FILES_MAX} files")));
        }
        let file = incoming.file(name, item.id, products.engine().now().await?, by);
        commands.push(files::put(products, (item, number), &file, records::as_found(before.as_ref()))?);
        Ok(Change { commands, answer: (file, true, before.as_ref().map(|before| before.value.content)) })
    })
}

pub async fn list(
    Here(products): Here,
    Path((part, number)): Path<(String, String)>,
    params: Params,
) -> Result<Listed<Value>> {
    let (item, number) = revision(&products, &part, &number).await?;
    let Listed(found, total) = page(files::all(&products, &item, number).await?, params.page()?);
    Ok(Listed(found.iter().map(shown).collect(), total))
}

pub async fn give(app: &App, item: &Item, number: u32, name: &str) -> Result<Response> {
    let missing = || HttpError::missing("file", name);
    let file = files::find(&products(app), item, number, name).await?.ok_or_else(missing)?.value;
    let answer = content::answer(app, file.content, &file.name, file.size, &file.sha256).await?;
    answer.ok_or_else(missing)
}

pub async fn download(
    State(app): State<App>,
    Path((part, number, name)): Path<(String, String, String)>,
) -> Result<Response> {
    let (item, number) = revision(&products(&app), &part, &number).await?;
    give(&app, &item, number, &name).await
}

pub async fn delete(
    State(app): State<App>,
    Path((part, number, name)): Path<(String, String, String)>,
) -> Result<StatusCode> {
    let products = products(&app);
    let (item, number) = revision(&products, &part, &number).await?;
    let file = files::find(&products, &item, number, &name).await?.ok_or_else(|| HttpError::missing("file", &name))?;
    let (held, kept) = (&products, &file);
    let delete = || async move {
        let delete = records::delete(held, windlass_product::files::FILE, &kept.key, kept.unchanged());
        Ok(records::commit(held, vec![delete]).await?)
    };
    if content::freeing(&app, async { Ok(vec![kept.value.content]) }, delete).await?.is_none() {
        return Err(HttpError::conflict(format!("the file {name} was just changed by somebody else")));
    }
    content::remove(&app, file.value.content).await;
    app.usage.forget(&Owner { namespace: namespace(), job: None }, file.value.size);
    Ok(StatusCode::NO_CONTENT)
}
