//! Registering, and what users do about themselves.

use super::{
    super::{
        Joblib,
        body::{Json, Sent, created, ok},
        error::{HttpError, Result},
        fields::Fields,
        local::Local,
        settings::Whoever,
        who::Who,
    },
    Unwritten, User, access_changed, add, busy, check_address, check_password, find, write,
};
use crate::app::App;
use axum::extract::State;
use http::StatusCode;
use serde_json::{Value, json};
use windlass_core::Timestamp;

pub async fn register(State(joblib): State<Joblib>, local: Local, Sent(body): Sent) -> Result<Json<Value>> {
    let mut body = body.hidden();
    let (email, password) = (body.text("email"), body.text("password"));
    body.done()?;
    check_address(&email)?;
    check_password(&password)?;
    let settings = &joblib.own.settings;
    if !local.is(settings.registration) {
        let why = "registering from another machine is not open here (setting joblib_registration)";
        return Err(HttpError::plain(StatusCode::FORBIDDEN, why));
    }
    let hash = joblib.own.users.passwords.hash(&joblib.engine, password).await?;
    let mut user = User::new(email, Some(hash), joblib.engine.wall().await?);
    user.is_superuser = settings.admin.is_none() && local.is(settings.development);
    match add(&joblib, &user).await? {
        Some(()) => Ok(created(user.show())),
        None => Err(HttpError::plain(StatusCode::BAD_REQUEST, "REGISTER_USER_ALREADY_EXISTS")),
    }
}

impl Local {
    /// Whether the caller is one of those.
    pub fn is(&self, who: Whoever) -> bool {
        match who {
            Whoever::Local => self.0,
            Whoever::Anyone => true,
            Whoever::Nobody => false,
        }
    }
}

pub async fn me(State(app): State<App>, who: Who) -> Result<Json<Value>> {
    if who.is_user() {
        let user = find(&app, who.id).await?.ok_or_else(HttpError::unauthorized)?;
        return Ok(ok(user.value.show()));
    }
    // A principal of ours has no address, so it gets one that cannot be anybody's.
    let email = format!("{}@windlass.invalid", who.caller.name);
    Ok(ok(json!({
        "id": who.id,
        "email": email,
        "is_active": true,
        "is_superuser": who.superuser,
        "is_verified": true,
    })))
}

pub async fn change_me(State(joblib): State<Joblib>, who: Who, Sent(body): Sent) -> Result<Json<Value>> {
    let change = Change::read(body, false)?;
    if !who.is_user() {
        let why = "this token is no user's; it is managed with `windlass token`";
        return Err(HttpError::plain(StatusCode::BAD_REQUEST, why));
    }
    change.apply(&joblib, who.id, HttpError::unauthorized).await
}

/// What is to be different about a user. Shows itself to nobody.
pub struct Change {
    email: Option<String>,
    password: Option<String>,
    is_active: Option<bool>,
    is_superuser: Option<bool>,
    is_verified: Option<bool>,
}

impl Change {
    /// Only superusers may change more than address and password; what others send of it is ignored.
    pub fn read(body: Fields, by_superuser: bool) -> Result<Self> {
        let mut body = body.hidden();
        let change = Self {
            email: body.maybe_text("email"),
            password: body.maybe_text("password"),
            is_active: body.flag("is_active").filter(|_| by_superuser),
            is_superuser: body.flag("is_superuser").filter(|_| by_superuser),
            is_verified: body.flag("is_verified").filter(|_| by_superuser),
        };
        body.done()?;
        change.email.as_deref().map(check_address).transpose()?;
        change.password.as_deref().map(check_password).transpose()?;
        Ok(change)
    }

    pub async fn apply(self, joblib: &Joblib, id: windlass_api::Uuid, gone: fn() -> HttpError) -> Result<Json<Value>> {
        let before = find(joblib, id).await?.ok_or_else(gone)?;
        let hash = match &self.password {
            Some(password) => Some(joblib.own.users.passwords.hash(&joblib.engine, password.clone()).await?),
            None => None,
        };
        let user = self.changed(&before.value, hash, joblib.engine.wall().await?);
        match write(joblib, Some(&before), &user).await {
            Ok(()) => {
                access_changed(joblib).await;
                Ok(ok(user.show()))
            }
            Err(Unwritten::Taken) => Err(HttpError::plain(StatusCode::BAD_REQUEST, "UPDATE_USER_EMAIL_ALREADY_EXISTS")),
            Err(Unwritten::Changed) => Err(busy()),
            Err(Unwritten::Other(problem)) => Err(problem.into()),
        }
    }

    /// A new password, or no longer being active, ends the tokens so far. A new address has to be verified again.
    fn changed(&self, before: &User, hash: Option<String>, now: Timestamp) -> User {
        let mut user = before.clone();
        if let Some(email) = &self.email
            && *email != user.email
        {
            user.email.clone_from(email);
            user.is_verified = false;
        }
        user.is_active = self.is_active.unwrap_or(user.is_active);
        user.is_superuser = self.is_superuser.unwrap_or(user.is_superuser);
        user.is_verified = self.is_verified.unwrap_or(user.is_verified);
        let ends = hash.is_some() || before.is_active && !user.is_active;
        user.hash = hash.or(user.hash);
        if ends {
            user.end_tokens(now);
        }
        user
    }
}
