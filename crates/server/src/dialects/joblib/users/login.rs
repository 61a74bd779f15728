//! Logging in, with a form as OAuth has it, and logging out, which ends nothing: tokens are not kept.

use super::{
    super::{
        Joblib,
        body::{Json, ok},
        error::{HttpError, Result},
        fault::Fault,
        local::Address,
    },
    bearer, mint, password, too_many, with_address,
};
use crate::{app::App, ask};
use axum::extract::{FromRef, FromRequest, Request, State};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use std::{net::IpAddr, time::Instant};

/// What the form says, and where it comes from. Shows itself to nobody.
pub struct Form {
    username: String,
    password: String,
    from: IpAddr,
}

impl<S: Sync> FromRequest<S> for Form
where
    App: FromRef<S>,
{
    type Rejection = HttpError;
    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let Address(from) = Address::of(&parts, &App::from_ref(state));
        let is_form = parts.headers.get(header::CONTENT_TYPE).is_some_and(is_form);
        let bytes = ask::read(body).await?;
        let sent = if is_form { &*bytes } else { &[] };
        let field = |name: &str| {
            let found = form_urlencoded::parse(sent).filter(|(key, _)| key == name).last();
            found.map(|(_, value)| value.into_owned()).ok_or_else(|| Fault::missing(&["body", name], Value::Null))
        };
        match (field("username"), field("password")) {
            (Ok(username), Ok(password)) => Ok(Self { username, password, from }),
            (username, password) => {
                Err(HttpError::Invalid([username.err(), password.err()].into_iter().flatten().collect()))
            }
        }
    }
}

fn is_form(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or("").split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

fn bad() -> HttpError {
    HttpError::plain(StatusCode::BAD_REQUEST, "LOGIN_BAD_CREDENTIALS")
}

pub async fn login(State(joblib): State<Joblib>, form: Form) -> Result<Json<Value>> {
    let Form { username, password, from } = form;
    if username.len() > super::ADDRESS_BYTES_MAX || password.len() > password::BYTES_MAX {
        return Err(bad());
    }
    let account = super::address_key(&username);
    let once = joblib.own.users.tries.take(from, &account, Instant::now());
    let once = once.map_err(too_many("too many failed logins; wait before the next one"))?;
    let app: &App = &joblib;
    let user = with_address(app, &username).await?.map(|found| found.value);
    let stored = user.as_ref().and_then(|user| user.hash.as_deref());
    let fits = joblib.own.users.passwords.fits(&joblib.engine, password, stored).await?;
    let user = user.filter(|user| fits && user.is_active).ok_or_else(bad)?;
    joblib.own.users.tries.was_right(once);
    Ok(ok(bearer(&mint(&joblib, &user, None).await?)))
}

pub async fn logout() -> StatusCode {
    StatusCode::NO_CONTENT
}
