//! Registering, listing and deleting providers.

use super::{
    super::{
        Joblib,
        body::{Json, Params, Path, Sent, created, ok, page, paging, path_id},
        error::{FORBIDDEN, HttpError, INVALID_CATEGORY, Result},
        fault::Fault,
        fields::Fields,
        jobs::not_in,
        names::{FullName, GLOBAL, check_room, check_writable, is_special},
        registration::{check_owned, not_owned, registration},
        who::Who,
    },
    ID, LIST_BYTES_MAX, PROVIDER, PROVIDERS_MAX, PROVIDERS_PER_WORKER_MAX, Provider, ROOM, SCHEMA_BYTES_MAX, of_room,
    with_id,
};
use axum::extract::State;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, value::RawValue};
use windlass_api::Uuid;
use windlass_core::{
    Command, Facet, Refusal,
    commands::{all::All, records::Expect},
};
use windlass_engine::{Error, ids, records::Kept, store::RecordQuery};

/// What is to be registered.
struct Wanted {
    full: FullName,
    schema: Box<RawValue>,
    content_type: String,
    worker_id: Option<Uuid>,
}

impl Wanted {
    fn read(room: &str, mut body: Fields) -> Result<Self> {
        let (category, name) = (body.text("category"), body.text("name"));
        let schema = body.object(&["schema", "schema_"]);
        let content_type = if body.has("content_type") { body.text("content_type") } else { "application/json".into() };
        let worker_id = body.maybe_id("worker_id");
        if content_type.len() > 200 || HeaderValue::from_str(&content_type).is_err() {
            body.fault(Fault::value(&["body", "content_type"], "this cannot be a content type"));
        }
        body.done()?;
        let full = FullName::new(room, &category, &name)?;
        if schema.as_ref().is_some_and(|schema| schema.get().len() > SCHEMA_BYTES_MAX) {
            let why = format!("the schema of a provider has at most {SCHEMA_BYTES_MAX} bytes");
            return Err(HttpError::plain(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let empty = || RawValue::from_string("{}".to_owned()).expect("an object");
        Ok(Self { full, schema: schema.unwrap_or_else(empty), content_type, worker_id })
    }
}

pub async fn register(
    State(joblib): State<Joblib>,
    who: Who,
    Path(room): Path<String>,
    Sent(body): Sent,
) -> Result<Json<Value>> {
    check_writable(&joblib.own.settings, &room)?;
    let wanted = Wanted::read(&room, body)?;
    if is_special(&room) && !who.superuser {
        return Err(FORBIDDEN.error(format!("Admin required for {room} provider registration")));
    }
    check_category(&joblib.own.settings.provider_categories, &wanted.full.category)?;
    if let Some(worker) = wanted.worker_id {
        check_owned(&joblib, &who, worker).await?;
    }
    // Again, if somebody else was faster.
    loop {
        if let Some(done) = put(&joblib, &who, &wanted).await? {
            return Ok(done);
        }
    }
}

fn check_category(allowed: &[String], category: &str) -> Result<()> {
    if allowed.is_empty() || allowed.iter().any(|one| one == category) {
        return Ok(());
    }
    Err(INVALID_CATEGORY.error(not_in(category, allowed)))
}

/// Whether there may be one more, of all and of this worker's.
async fn check_space(joblib: &Joblib, worker: Option<Uuid>) -> Result<()> {
    let (store, all) = (joblib.engine.store(), PROVIDER.query());
    let full = |why| Err(HttpError::plain(StatusCode::TOO_MANY_REQUESTS, why).retry_after(60));
    if store.count_records(&all).await? >= PROVIDERS_MAX {
        return full(format!("there are {PROVIDERS_MAX} providers; no more can register"));
    }
    let Some(worker) = worker else { return Ok(()) };
    let own = RecordQuery { parent: Some(worker.to_string().into()), ..all };
    if store.count_records(&own).await? >= PROVIDERS_PER_WORKER_MAX {
        return full(format!("this worker has {PROVIDERS_PER_WORKER_MAX} providers, as many as one may have"));
    }
    Ok(())
}

/// None: what was read has changed meanwhile.
async fn put(joblib: &Joblib, who: &Who, wanted: &Wanted) -> Result<Option<Json<Value>>> {
    let name = wanted.full.to_string();
    let before = PROVIDER.find(joblib, &name).await?;
    if let Some(before) = &before
        && before.value.user_id != who.id
        && !who.superuser
    {
        return Err(FORBIDDEN.error("Provider already registered by another user"));
    }
    if before.is_none() {
        check_space(joblib, wanted.worker_id).await?;
    }
    let worker = wanted.worker_id.unwrap_or_else(ids::secret);
    let provider = Provider {
        id: before.as_ref().map_or_else(ids::secret, |before| before.value.id),
        created_at: match &before {
            Some(before) => before.value.created_at,
            None => joblib.engine.now().await?,
        },
        room_id: wanted.full.room.clone(),
        category: wanted.full.category.clone(),
        name: wanted.full.name.clone(),
        schema: wanted.schema.clone(),
        content_type: wanted.content_type.clone(),
        user_id: who.id,
        worker_id: worker,
    };
    let mut commands: Vec<Command> = Vec::new();
    if wanted.worker_id.is_none() {
        commands.push(registration(joblib, worker, who.id).into());
    }
    let mut put = PROVIDER.put(&name, &provider, before.as_ref().map_or(Expect::Nothing, Kept::unchanged));
    put.parent = Some(worker.to_string().into());
    put.facets = vec![Facet::new(ID, &provider.id.to_string()), Facet::new(ROOM, &provider.room_id)];
    commands.push(put.into());
    match joblib.engine.run(All { commands }).await {
        Ok(_) if before.is_some() => Ok(Some(ok(provider.show()))),
        Ok(_) => Ok(Some(created(provider.show()))),
        Err(Error::Refused(Refusal::Exists { .. } | Refusal::VersionMismatch { .. })) => Ok(None),
        // It went between the look and the write.
        Err(Error::Refused(Refusal::NotFound { what: "worker", .. })) => Err(not_owned(worker)),
        Err(error) => Err(error.into()),
    }
}

pub async fn list(State(joblib): State<Joblib>, Path(room): Path<String>, params: Params) -> Result<Json<Value>> {
    let paging = paging(&params)?;
    check_room(&room)?;
    let mut all = of_room(&joblib, &room).await?;
    if room != GLOBAL {
        all.extend(of_room(&joblib, GLOBAL).await?);
    }
    all.sort();
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for (_, _, name) in all.iter().skip(paging.offset).take(paging.limit) {
        if bytes > LIST_BYTES_MAX {
            break;
        }
        // One that went meanwhile is not missed.
        let Some(found) = PROVIDER.find(&joblib, name).await? else { continue };
        bytes += found.value.schema.get().len();
        shown.push(found.value.show());
    }
    Ok(page(shown, all.len(), paging))
}

pub async fn delete(State(joblib): State<Joblib>, who: Who, Path(id): Path<String>) -> Result<StatusCode> {
    let found = with_id(&joblib, path_id("provider_id", &id)?).await?;
    if found.value.user_id != who.id && !who.superuser {
        return Err(FORBIDDEN.error("Provider belongs to different user"));
    }
    match joblib.engine.run(PROVIDER.delete(&found.value.full_name(), Expect::Anything)).await {
        // Somebody else was faster; it is gone, as was asked for.
        Ok(_) | Err(Error::Refused(Refusal::NotFound { .. })) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(error.into()),
    }
}
