//! What superusers do about others.

use super::{
    super::{
        Joblib,
        body::{Json, Path, Sent, ok},
        error::{HttpError, Result},
        who::Who,
    },
    ADDRESS, GONE, USER, access_changed,
    accounts::Change,
    address_key, bearer, busy, find, mint,
};
use crate::app::App;
use axum::extract::State;
use http::StatusCode;
use serde_json::Value;
use windlass_api::Uuid;
use windlass_core::{
    Refusal, Timestamp,
    commands::{all::All, records::Expect},
};
use windlass_engine::Error;

fn missing() -> HttpError {
    HttpError::plain(StatusCode::NOT_FOUND, "Not Found")
}

/// What cannot be an id is nobody's.
fn id(text: &str) -> Result<Uuid> {
    Uuid::parse_str(text).map_err(|_| missing())
}

pub async fn one(State(app): State<App>, Path(text): Path<String>) -> Result<Json<Value>> {
    let user = find(&app, id(&text)?).await?.ok_or_else(missing)?;
    Ok(ok(user.value.show()))
}

pub async fn change(State(joblib): State<Joblib>, Path(text): Path<String>, Sent(body): Sent) -> Result<Json<Value>> {
    let change = Change::read(body, true)?;
    change.apply(&joblib, id(&text)?, missing).await
}

pub async fn delete(State(joblib): State<Joblib>, Path(text): Path<String>) -> Result<StatusCode> {
    let id = id(&text)?;
    let user = find(&joblib, id).await?.ok_or_else(missing)?;
    let name = id.to_string();
    // As long as a token of theirs may be about, they are not made again at the sight of it.
    let mut gone = GONE.put(&name, &(), Expect::Anything);
    let lifetime = joblib.own.settings.token_lifetime;
    gone.expires_at = Some(Timestamp(joblib.engine.now().await?.0.saturating_add(lifetime.0)));
    let address = ADDRESS.delete(&address_key(&user.value.email), Expect::Anything);
    let commands = vec![USER.delete(&name, user.unchanged()).into(), address.into(), gone.into()];
    match joblib.engine.run(All { commands }).await {
        Ok(_) => {}
        Err(Error::Refused(Refusal::NotFound { .. } | Refusal::VersionMismatch { .. })) => return Err(busy()),
        Err(error) => return Err(error.into()),
    }
    access_changed(&joblib).await;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn token_for(State(joblib): State<Joblib>, who: Who, Path(text): Path<String>) -> Result<Json<Value>> {
    let missing = || HttpError::plain(StatusCode::NOT_FOUND, "User not found");
    let id = Uuid::parse_str(&text).map_err(|_| missing())?;
    let user = find(&joblib, id).await?.ok_or_else(missing)?;
    Ok(ok(bearer(&mint(&joblib, &user.value, Some(who.id)).await?)))
}
