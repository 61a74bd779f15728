//! Files that a job reads, those of its items, and files that it leaves.
//!
//! The runner that holds the job has them, and nobody else with a runner's token. What a job leaves is replaced by another
//! upload under the same key; it is an artifact of the native API as well, and goes when its job goes.

use super::{
    body::{Json, Listed, Params, Path, created, ok, page},
    error::{HttpError, Result},
    files::{self, FILES_MAX, Incoming},
    namespace, products,
    show::{self, ScopeItem},
    work,
};
use crate::{app::App, artifacts, auth::Caller, content, product, wire_time};
use axum::{
    extract::{Request, State},
    response::Response,
};
use serde_json::{Value, json};
use windlass_api::{Uuid, artifact::Artifact};
use windlass_core::Job;
use windlass_product::{files as kept, items, records, rules::item::Item};

/// Of all items of a job's scope together.
const SCOPE_FILES_MAX: usize = 10_000;

async fn scope(app: &App, job: &Job) -> Result<Vec<ScopeItem>> {
    let body = app.engine.store().body(&job.key).await?.unwrap_or_default();
    Ok(show::detail(&body.payload)?.items)
}

/// The item and revision a held job is about, or another one that its scope names.
async fn target(app: &App, job: &Job, params: &Params) -> Result<(Item, u32)> {
    let (part, id, number) = match params.get("part_number") {
        Some(part) => {
            let of_scope = scope(app, job).await?.into_iter().find(|item| item.part_number == part);
            let item =
                of_scope.ok_or_else(|| HttpError::invalid(format!("part_number: {part} is not in the job's scope")))?;
            (item.part_number, Some(item.item_id), Some(item.revision_number))
        }
        None => {
            let extra = show::extra(job)?;
            let part =
                extra.part_number.ok_or_else(|| HttpError::invalid("the job has no item; name one of its scope"))?;
            (part, extra.item_id, extra.revision_number)
        }
    };
    let item = items::find(&products(app), &part).await?.value;
    // Another item may have its part number by now.
    if Some(item.id) != id {
        return Err(HttpError::missing("item", part));
    }
    let number = number.unwrap_or(item.current_revision);
    Ok((item, number))
}

/// With the items they belong to. An item that is gone has none.
async fn all_of_scope(app: &App, job: &Job) -> Result<Vec<Value>> {
    let (products, mut found) = (products(app), Vec::new());
    for of_scope in scope(app, job).await? {
        let item = records::get(&products, records::ITEM, &of_scope.part_number).await?;
        let Some(item) = item else { continue };
        if item.value.id != of_scope.item_id {
            continue;
        }
        for file in kept::all(&products, &item.value, of_scope.revision_number).await? {
            let mut file = files::shown(&file);
            file["part_number"] = of_scope.part_number.as_str().into();
            found.push(file);
        }
        if found.len() > SCOPE_FILES_MAX {
            return Err(HttpError::invalid(format!(
                "the job's scope has more than {SCOPE_FILES_MAX} files; name its items"
            )));
        }
    }
    Ok(found)
}

/// For the runner that holds the job, and nobody else with a runner's token.
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<Vec<Value>>> {
    let job = work::held(&app, &caller, &id).await?;
    if params.get("scope") == Some("all") {
        return Ok(ok(all_of_scope(&app, &job).await?));
    }
    let (item, number) = target(&app, &job, &params).await?;
    Ok(ok(kept::all(&products(&app), &item, number).await?.iter().map(files::shown).collect()))
}

pub async fn download(
    State(app): State<App>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
    params: Params,
) -> Result<Response> {
    let job = work::held(&app, &caller, &id).await?;
    let (item, number) = target(&app, &job, &params).await?;
    files::give(&app, &item, number, &name).await
}

fn shown(artifact: &Artifact) -> Value {
    json!({
        "key": artifact.name,
        "size": artifact.size,
        "sha256": artifact.sha256,
        "content_type": artifact.content_type,
        "created_at": artifact.created_at,
    })
}

/// By key; of several that came at once the last one counts.
async fn artifacts_of(app: &App, job: &Job) -> Result<Vec<Artifact>> {
    let found = artifacts::all_of_job(app, &namespace(), job.key.id.0).await?;
    let by_key: std::collections::BTreeMap<String, Artifact> =
        found.into_iter().map(|artifact| (artifact.name.clone(), artifact)).collect();
    Ok(by_key.into_values().collect())
}

pub async fn leave(
    State(app): State<App>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
    params: Params,
    request: Request,
) -> Result<Json<Value>> {
    let job = work::held(&app, &caller, &id).await?;
    files::check_name("key", &key)?;
    // The path of another protocol's call.
    if key == "cancelled" {
        return Err(HttpError::invalid("key: an artifact cannot be called cancelled"));
    }
    let incoming = files::receive(&app, Some(job.key.id.0), &params, request).await?;
    match keep_artifact(&app, &caller, &job, &key, &incoming).await {
        Ok((artifact, before)) => {
            incoming.grant.keep(incoming.size);
            let new = before.is_empty();
            product::files::remove(&app, before).await;
            let shown = shown(&artifact);
            Ok(if new { created(shown) } else { ok(shown) })
        }
        Err(error) => {
            content::remove(&app, incoming.id).await;
            Err(error)
        }
    }
}

/// The artifact, and the content of those it replaces. The job may have been lost while the file came in.
async fn keep_artifact(
    app: &App,
    caller: &Caller,
    job: &Job,
    key: &str,
    incoming: &Incoming,
) -> Result<(Artifact, Vec<Uuid>)> {
    let all = artifacts::all_of_job(app, &namespace(), job.key.id.0).await?;
    let before: Vec<Uuid> = all.iter().filter(|artifact| artifact.name == key).map(|artifact| artifact.id).collect();
    if all.len() - before.len() >= FILES_MAX {
        return Err(HttpError::invalid(format!("a job may leave {FILES_MAX} files")));
    }
    let artifact = Artifact {
        id: incoming.id,
        namespace: namespace().to_string(),
        name: key.to_owned(),
        size: incoming.size,
        sha256: incoming.sha256.clone(),
        content_type: incoming.content_type.clone(),
        job: Some(job.key.id.0),
        created_at: wire_time::text(app.engine.now().await?),
    };
    let mut commands = vec![work::holds(caller, job).into(), artifacts::put(&namespace(), &artifact)?];
    commands.extend(before.iter().copied().map(artifacts::forget));
    records::commit(&products(app), commands)
        .await?
        .ok_or_else(|| HttpError::conflict("the artifact was just written; try again"))?;
    Ok((artifact, before))
}

pub async fn artifacts(State(app): State<App>, Path(id): Path<String>, params: Params) -> Result<Listed<Value>> {
    let job = show::find(&app, &id).await?;
    let Listed(found, total) = page(artifacts_of(&app, &job).await?, params.page()?);
    Ok(Listed(found.iter().map(shown).collect(), total))
}

pub async fn artifact(State(app): State<App>, Path((id, key)): Path<(String, String)>) -> Result<Response> {
    let job = show::find(&app, &id).await?;
    let missing = || HttpError::missing("artifact", &key);
    let found = artifacts_of(&app, &job).await?.into_iter().find(|artifact| artifact.name == key);
    let found = found.ok_or_else(missing)?;
    let answer = content::answer(&app, found.id, &found.name, found.size, &found.sha256).await?;
    answer.ok_or_else(missing)
}
