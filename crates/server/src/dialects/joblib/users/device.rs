//! Logging a device in that has no keyboard to speak of: it shows a code, somebody who is logged in approves it, and the device, which
//! kept a secret, fetches its token once.

use super::{
    super::{
        Joblib,
        body::{Json, Params, Path, ok},
        error::{HttpError, Result},
        fault::Fault,
        local::Address,
        who::Who,
    },
    User, find, mint, too_many,
};
use crate::{
    app::App, auth, dialects::joblib::namespace, owners::oldest_beyond, peer::network, problem::Problem,
    records::Records, secret::Secret,
};
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Instant;
use windlass_api::Uuid;
use windlass_core::{Refusal, Timestamp, commands::records::Expect};
use windlass_engine::{Error, records::Kept};

const DEVICE: Records<Device> = Records::new("joblib_device", namespace);
const LIVES_MS: i64 = 300_000;
/// How long it is known that a code has expired.
const REMEMBERED_MS: i64 = 3_600_000;
const DEVICES_MAX: usize = 10_000;
/// Begun from one address (IPv6: one /64), those that are only remembered included.
const DEVICES_PER_ADDRESS: usize = 20;
const LETTERS: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

#[derive(Clone, Serialize, Deserialize)]
struct Device {
    /// Of its secret.
    hash: String,
    /// The network of the address that it was begun from.
    #[serde(default)]
    from: String,
    until: Timestamp,
    approved_by: Option<Uuid>,
    /// Since when the tokens of that user are good. A password that was changed since takes the approval back.
    #[serde(default)]
    tokens_since: Option<Timestamp>,
}

fn missing() -> HttpError {
    HttpError::plain(StatusCode::NOT_FOUND, "Not Found")
}

fn code() -> String {
    let letter = |_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]);
    (0..8).map(letter).collect()
}

pub async fn begin(State(joblib): State<Joblib>, Address(from): Address) -> Result<Json<Value>> {
    let begun = joblib.own.users.begun.take_from(from, Instant::now());
    begun.map_err(too_many("too many devices began to log in from this address"))?;
    let app: &App = &joblib;
    let random: [u8; 32] = rand::random();
    let (code, secret) = (code(), windlass_api::hex(&random));
    let until = Timestamp(app.engine.now().await?.0.saturating_add(LIVES_MS));
    let device = Device {
        hash: auth::hash(&secret),
        from: network(from).to_string(),
        until,
        approved_by: None,
        tokens_since: None,
    };
    make_room(app, &device.from).await?;
    write(app, &code, &device, Expect::Nothing).await?;
    let approve = format!("/auth/cli-login/{code}");
    Ok(ok(json!({"code": code, "secret": secret, "approve_url": approve})))
}

/// An address that begins one more takes back the oldest that it began.
async fn make_room(app: &App, from: &str) -> Result<()> {
    if app.engine.store().count_records(&DEVICE.query()).await? >= DEVICES_MAX {
        let why = format!("{DEVICES_MAX} devices wait to be approved, and no more may; try again in a minute");
        return Err(HttpError::plain(StatusCode::TOO_MANY_REQUESTS, why).retry_after(60));
    }
    let mut own = Vec::new();
    DEVICE
        .each(app, Some(from), |found| {
            own.push((found.value.until, found.key));
            true
        })
        .await?;
    let gone = oldest_beyond(own, DEVICES_PER_ADDRESS - 1).into_iter();
    let gone: Vec<_> = gone.map(|code| DEVICE.delete(&code, Expect::Anything)).collect();
    if !gone.is_empty() {
        app.engine.run_many(gone).await?;
    }
    Ok(())
}

async fn write(app: &App, code: &str, device: &Device, expect: Expect) -> Result<()> {
    let mut put = DEVICE.put(code, device, expect);
    put.parent = Some(device.from.as_str().into());
    put.expires_at = Some(Timestamp(device.until.0.saturating_add(REMEMBERED_MS)));
    match app.engine.run(put).await {
        Ok(_) => Ok(()),
        Err(Error::Refused(Refusal::Exists { .. } | Refusal::VersionMismatch { .. })) => Err(super::busy()),
        Err(error) => Err(error.into()),
    }
}

/// One that can still be approved or fetched.
async fn live(app: &App, code: &str) -> Result<Kept<Device>> {
    let found = if code.len() == 8 { DEVICE.find(app, code).await? } else { None };
    let found = found.ok_or_else(missing)?;
    if found.value.until <= app.engine.now().await? {
        return Err(HttpError::plain(StatusCode::GONE, "the code has expired"));
    }
    Ok(found)
}

pub async fn poll(State(joblib): State<Joblib>, Path(code): Path<String>, params: Params) -> Result<Json<Value>> {
    let secret = params.get("secret").ok_or_else(|| Fault::missing(&["query", "secret"], Value::Null))?;
    let secret = Secret::new(auth::hash(secret));
    let found = live(&joblib, &code).await?;
    if Secret::new(found.value.hash.as_str()) != secret {
        return Err(missing());
    }
    let Some(by) = found.value.approved_by else {
        return Ok(ok(json!({"status": "pending", "token": null})));
    };
    // Whoever takes it away gets the token, and nobody after that.
    match joblib.engine.run(DEVICE.delete(&code, found.unchanged())).await {
        Ok(_) => {}
        Err(Error::Refused(_)) => return Err(missing()),
        Err(error) => return Err(error.into()),
    }
    let stands = |user: &Kept<User>| user.value.is_active && found.value.tokens_since == Some(user.value.tokens_since);
    let user = find(&joblib, by).await?.filter(stands).ok_or_else(missing)?;
    Ok(ok(json!({"status": "approved", "token": mint(&joblib, &user.value, None).await?})))
}

pub async fn approve(State(joblib): State<Joblib>, who: Who, Path(code): Path<String>) -> Result<Json<Value>> {
    let found = live(&joblib, &code).await?;
    if !who.is_user() {
        return Err(HttpError::plain(
            StatusCode::BAD_REQUEST,
            "this token is no user's, and a device is logged in as a user",
        ));
    }
    match found.value.approved_by {
        Some(by) if by != who.id => return Err(missing()),
        Some(_) => {}
        None => {
            let user = find(&joblib, who.id).await?.ok_or_else(HttpError::unauthorized)?;
            let tokens_since = Some(user.value.tokens_since);
            let device = Device { approved_by: Some(who.id), tokens_since, ..found.value.clone() };
            write(&joblib, &code, &device, found.unchanged()).await?;
        }
    }
    Ok(ok(json!({"status": "approved"})))
}

pub async fn reject(State(app): State<App>, _who: Who, Path(code): Path<String>) -> Result<StatusCode> {
    let found = live(&app, &code).await?;
    match app.engine.run(DEVICE.delete(&code, found.unchanged())).await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(Error::Refused(_)) => Err(missing()),
        Err(error) => Err(Problem::from(error).into()),
    }
}
