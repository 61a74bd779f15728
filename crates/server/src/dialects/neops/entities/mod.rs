//! Devices, interfaces and groups, each a record. Their passwords are for workers and for admins who ask for one entity: they are in
//! no list, no event and no log.

mod apply;
mod rows;

use super::{Neops, Own, namespace};
use crate::{
    app::App,
    ask::{Answer, Path},
    auth::Caller,
    dialect::Mount,
    guard,
    problem::{Code, Problem},
    route::{Access, Route},
};
use axum::{
    extract::{FromRequestParts, Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};
use rows::{find, page, write};
use serde_json::{Value, json};
use windlass_core::principal::Role;
use windlass_plan::neops::{
    entity::{self, KEPT},
    reference::EntityType,
};

pub use apply::apply;
pub use rows::{expand, get_many};

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_000;

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/api/v1/entities", Access::Viewer, list).says("Devices, interfaces or groups, without passwords"),
        on.get("/api/v1/entities/{type}/{id}", Access::Viewer, get).says("One entity; with its password for admins"),
        on.put("/api/v1/entities/{type}/{id}", Access::Editor, put)
            .says("Create an entity or replace what is known of it"),
        on.delete("/api/v1/entities/{type}/{id}", Access::Editor, delete).says("Delete an entity"),
    ]
}

/// Whether the caller may see passwords.
struct Sees(bool);

impl<S: Sync> FromRequestParts<S> for Sees {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller: Caller = guard::caller(parts)?;
        Ok(Self(caller.role == Role::Admin))
    }
}

fn kept(text: &str) -> Result<EntityType, Problem> {
    let found = EntityType::parse(text).filter(|entity| KEPT.iter().any(|(kept, _)| kept == entity));
    found.ok_or_else(|| Problem::invalid("type", format!("must be device, interface or group, not {text:?}")))
}

fn number(text: &str) -> Result<u64, Problem> {
    let found = text.parse().ok().filter(|id| (1..=entity::ID_MAX).contains(id));
    found.ok_or_else(|| {
        Problem::invalid("id", format!("must be a whole number from 1 to {}, not {text:?}", entity::ID_MAX))
    })
}

fn unknown(entity: EntityType, id: u64) -> Problem {
    Problem::not_found(entity.as_str(), id)
}

/// By id. `next` is what `after` of the next page is.
async fn list(State(app): State<App>, params: super::body::Params) -> Result<Response, Problem> {
    let entity = kept(params.get("type").ok_or_else(|| Problem::invalid("type", "is missing"))?)?;
    let odd = |_| Problem::invalid("limit", format!("must be a number from 1 to {LIMIT_MAX}"));
    let limit = params.get("limit").map_or(Ok(LIMIT), |text| text.parse().map_err(odd))?;
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid("limit", format!("must be a number from 1 to {LIMIT_MAX}")));
    }
    let after = params.get("after").map(number).transpose()?;
    let found = page(&app, entity, after, limit).await?;
    let next = found.last().filter(|_| found.len() == limit).and_then(entity::id_of);
    let items: Vec<Value> = found.iter().map(entity::without_secrets).collect();
    Ok(Answer(StatusCode::OK, json!({"items": items, "next": next})).into_response())
}

async fn get(
    State(app): State<App>,
    Path((entity, id)): Path<(String, String)>,
    Sees(all): Sees,
) -> Result<Response, Problem> {
    let (entity, id) = (kept(&entity)?, number(&id)?);
    let found = find(&app, entity, id).await?.ok_or_else(|| unknown(entity, id))?;
    let shown = if all { found.value } else { entity::without_secrets(&found.value) };
    Ok(Answer(StatusCode::OK, shown).into_response())
}

/// Replaces everything but a password that is left out: whoever may not see it could not send it back.
async fn put(
    State(neops): State<Neops>,
    Path((entity, id)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (entity, id) = (kept(&entity)?, number(&id)?);
    let bytes = crate::ask::read(request.into_body()).await?;
    let mut value: Value = crate::ask::parse(&neops, namespace, bytes).await?;
    if value.get("id").is_none() {
        value["id"] = json!(id);
    }
    let faulty = |faults: Vec<windlass_plan::neops::read::Fault>| {
        let texts: Vec<String> = faults.iter().take(20).map(ToString::to_string).collect();
        Problem::new(Code::Invalid, texts.join("; ")).at(faults[0].place.clone())
    };
    if entity::check(entity, &value, "").map_err(faulty)? != id {
        return Err(Problem::invalid("id", format!("must be {id}, as in the path")));
    }
    let (status, outcome) = match write(&neops, entity, id, value).await? {
        rows::Wrote::Created => (StatusCode::CREATED, "created"),
        rows::Wrote::Updated => (StatusCode::OK, "updated"),
        rows::Wrote::Nothing => (StatusCode::OK, "unchanged"),
    };
    Ok(Answer(status, json!({"type": entity.as_str(), "id": id, "outcome": outcome})).into_response())
}

async fn delete(State(neops): State<Neops>, Path((entity, id)): Path<(String, String)>) -> Result<Response, Problem> {
    let (entity, id) = (kept(&entity)?, number(&id)?);
    rows::delete(&neops, entity, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
