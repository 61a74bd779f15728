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
    find, mint, too_many,
};
use crate::{app::App, auth, dialects::joblib::namespace, problem::Problem, records::Records, secret::Secret};
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
const DEVICES_MAX: usize = 1_000;
const LETTERS: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

#[derive(Clone, Serialize, Deserialize)]
struct Device {
    /// Of its secret.
    hash: String,
    until: Timestamp,
    approved_by: Option<Uuid>,
}

fn missing() -> HttpError {
    HttpError::plain(StatusCode::NOT_FOUND, "Not Found")
}

fn code() -> String {
    let letter = |_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]);
    (0..8).map(letter).collect()
}

pub async fn begin(State(joblib): State<Joblib>, Address(from): Address) -> Result<Json<Value>> {
    let begun = joblib.own.users.begun.take(from, "device", Instant::now());
    begun.map_err(too_many("too many devices began to log in from this address"))?;
    let app: &App = &joblib;
    if app.engine.store().count_records(&DEVICE.query()).await? >= DEVICES_MAX {
        let why = "too many devices wait to be approved";
        return Err(HttpError::plain(StatusCode::TOO_MANY_REQUESTS, why).retry_after(60));
    }
    let random: [u8; 32] = rand::random();
    let (code, secret) = (code(), windlass_api::hex(&random));
    let now = app.engine.now().await?;
    let device =
        Device { hash: auth::hash(&secret), until: Timestamp(now.0.saturating_add(LIVES_MS)), approved_by: None };
    write(app, &code, &device, Expect::Nothing).await?;
    let approve = format!("/auth/cli-login/{code}");
    Ok(ok(json!({"code": code, "secret": secret, "approve_url": approve})))
}

async fn write(app: &App, code: &str, device: &Device, expect: Expect) -> Result<()> {
    let mut put = DEVICE.put(code, device, expect);
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
    let user = find(&joblib, by).await?.filter(|user| user.value.is_active).ok_or_else(missing)?;
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
            let device = Device { approved_by: Some(who.id), ..found.value.clone() };
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
