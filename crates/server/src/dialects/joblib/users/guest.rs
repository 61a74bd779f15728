//! Guests: users without a password, who end by themselves.

use super::{
    super::{
        Joblib,
        body::{Json, ok},
        error::{HttpError, Result},
        local::{Address, Local},
    },
    User, add, bearer, busy, mint, too_many,
};
use axum::extract::State;
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Instant;
use windlass_core::Timestamp;

const STAYS_MS: i64 = 7 * 24 * 3_600_000;

pub async fn create(State(joblib): State<Joblib>, local: Local, Address(from): Address) -> Result<Json<Value>> {
    if !local.is(joblib.own.settings.guests) {
        let why = "guests from another machine are not admitted here (setting joblib_guests)";
        return Err(HttpError::plain(StatusCode::FORBIDDEN, why));
    }
    if !local.0 {
        let begun = joblib.own.users.begun.take_from(from, Instant::now());
        begun.map_err(too_many("too many guests came from this address"))?;
    }
    let name = windlass_engine::ids::secret().simple().to_string();
    let mut user = User::new(format!("{name}@guest.invalid"), None, joblib.engine.wall().await?);
    user.until = Some(Timestamp(joblib.engine.now().await?.0.saturating_add(STAYS_MS)));
    add(&joblib, &user).await?.ok_or_else(busy)?;
    let mut told = bearer(&mint(&joblib, &user, None).await?);
    told["email"] = json!(user.email);
    Ok(ok(told))
}
