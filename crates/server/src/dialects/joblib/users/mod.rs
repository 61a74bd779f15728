//! Users: who they are, and how they are kept. Beside each lies a record under its address, so that no two have the same one.

mod accounts;
mod admin;
mod device;
mod guest;
pub mod jwt;
mod login;
pub mod password;
pub mod start;
pub mod token;
pub mod tries;

use super::{
    Joblib, Own,
    error::{HttpError, Result},
    fault::Fault,
};
use crate::{
    app::App,
    dialect::Mount,
    dialects::joblib::namespace,
    problem::Problem,
    records::Records,
    route::{Access, Route},
    streams::rights_changed,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::OnceCell;
use windlass_api::Uuid;
use windlass_core::{
    Command, Refusal, Timestamp,
    commands::{all::All, records::Expect},
};
use windlass_engine::{Error, records::Kept};

const USER: Records<User> = Records::new("joblib_user", namespace);
/// The id of the user who has an address, by the address in small letters.
const ADDRESS: Records<Uuid> = Records::new("joblib_user_address", namespace);
/// Who was deleted, for as long as a token may still name them.
const GONE: Records<()> = Records::new("joblib_user_gone", namespace);

pub const ADDRESS_BYTES_MAX: usize = 200;
const USERS_MAX: usize = 100_000;

/// Shows itself to nobody.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub id: Uuid,
    pub email: String,
    /// None: no password is right.
    hash: Option<String>,
    pub is_active: bool,
    pub is_superuser: bool,
    pub is_verified: bool,
    created_at: Timestamp,
    /// Tokens issued before are void.
    tokens_since: Timestamp,
    /// Guests end by themselves.
    until: Option<Timestamp>,
}

impl User {
    fn new(email: String, hash: Option<String>, now: Timestamp) -> Self {
        Self {
            id: windlass_engine::ids::secret(),
            email,
            hash,
            is_active: true,
            is_superuser: false,
            is_verified: false,
            created_at: now,
            tokens_since: now,
            until: None,
        }
    }

    /// What was issued so far is void.
    fn end_tokens(&mut self, now: Timestamp) {
        self.tokens_since = Timestamp(now.max(self.tokens_since).0.saturating_add(1));
    }

    fn show(&self) -> Value {
        json!({
            "id": self.id,
            "email": self.email,
            "is_active": self.is_active,
            "is_superuser": self.is_superuser,
            "is_verified": self.is_verified,
        })
    }
}

/// What the handlers of this part share.
#[derive(Default)]
pub struct Users {
    key: OnceCell<jwt::Key>,
    known: token::Remembered,
    passwords: password::Passwords,
    tries: tries::Tries,
    /// Devices and guests that an address has begun.
    begun: tries::Tries,
}

/// Tells somebody who came too often how long to wait.
fn too_many(why: &'static str) -> impl Fn(Duration) -> HttpError {
    move |wait| HttpError::plain(http::StatusCode::TOO_MANY_REQUESTS, why).retry_after(wait.as_secs() + 1)
}

/// After a user was changed: what was let in before is asked again, and what was under way writes nothing.
async fn access_changed(joblib: &Joblib) {
    joblib.own.users.known.forget();
    rights_changed(joblib).await;
}

fn address_key(email: &str) -> String {
    email.to_lowercase()
}

async fn find(app: &App, id: Uuid) -> Result<Option<Kept<User>>, Problem> {
    USER.find(app, &id.to_string()).await
}

async fn with_address(app: &App, email: &str) -> Result<Option<Kept<User>>, Problem> {
    match ADDRESS.find(app, &address_key(email)).await? {
        Some(id) => find(app, id.value).await,
        None => Ok(None),
    }
}

/// Why a user could not be written.
enum Unwritten {
    /// Somebody else has the address.
    Taken,
    /// Somebody was faster.
    Changed,
    Other(Problem),
}

/// `before` is what was read of it; none: it is new.
async fn write(app: &App, before: Option<&Kept<User>>, user: &User) -> Result<(), Unwritten> {
    let id = user.id.to_string();
    let mut commands: Vec<Command> = Vec::new();
    let address = address_key(&user.email);
    let old = before.map(|before| address_key(&before.value.email));
    if old.as_ref() != Some(&address) {
        let mut put = ADDRESS.put(&address, &user.id, Expect::Nothing);
        put.expires_at = user.until;
        commands.push(put.into());
        commands.extend(old.map(|old| ADDRESS.delete(&old, Expect::Anything).into()));
    }
    let mut put = USER.put(&id, user, before.map_or(Expect::Nothing, Kept::unchanged));
    put.expires_at = user.until;
    commands.push(put.into());
    match app.engine.run(All { commands }).await {
        Ok(_) => Ok(()),
        Err(Error::Refused(Refusal::Exists { .. })) => Err(Unwritten::Taken),
        Err(Error::Refused(Refusal::VersionMismatch { .. } | Refusal::NotFound { .. })) => Err(Unwritten::Changed),
        Err(error) => Err(Unwritten::Other(error.into())),
    }
}

/// Adds somebody new. None: the address is taken.
async fn add(app: &App, user: &User) -> Result<Option<()>> {
    if app.engine.store().count_records(&USER.query()).await? >= USERS_MAX {
        let why = format!("there are {USERS_MAX} users; no more can register");
        return Err(HttpError::plain(http::StatusCode::TOO_MANY_REQUESTS, why).retry_after(60));
    }
    match write(app, None, user).await {
        Ok(()) => Ok(Some(())),
        Err(Unwritten::Taken) => Ok(None),
        Err(Unwritten::Changed) => Err(busy()),
        Err(Unwritten::Other(problem)) => Err(problem.into()),
    }
}

fn busy() -> HttpError {
    HttpError::plain(http::StatusCode::SERVICE_UNAVAILABLE, "somebody else changed this user at the same time")
        .retry_after(1)
}

/// Enough to tell an address from something else; whether mail arrives there is not asked.
pub fn check_address(email: &str) -> Result<(), Fault> {
    let sound = email.len() <= ADDRESS_BYTES_MAX
        && !email.chars().any(|c| c.is_control() || c.is_whitespace())
        && email.split_once('@').is_some_and(|(name, domain)| {
            let (labels, dots) = (domain.split('.'), domain.contains('.'));
            !name.is_empty() && dots && !domain.contains('@') && labels.into_iter().all(|label| !label.is_empty())
        });
    match sound {
        true => Ok(()),
        false => Err(Fault::value(&["body", "email"], "the address is not a valid email address")),
    }
}

fn check_password(password: &str) -> Result<(), Fault> {
    match password.len() {
        1..=password::BYTES_MAX => Ok(()),
        _ => {
            let why = format!("a password has 1 to {} bytes", password::BYTES_MAX);
            Err(Fault::value(&["body", "password"], why))
        }
    }
}

/// The same at the package's own place and at ZnDraw's.
pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    let places = [
        ["/auth/jwt/login", "/auth/jwt/logout", "/auth/register", "/auth/cli-login", "/auth/cli-login/{code}"],
        [
            "/v1/auth/jwt/login",
            "/v1/auth/jwt/logout",
            "/v1/auth/register",
            "/v1/auth/cli-login",
            "/v1/auth/cli-login/{code}",
        ],
    ];
    let users = [
        ["/users/me", "/users/{id}", "/admin/users/{id}/token"],
        ["/v1/auth/users/me", "/v1/auth/users/{id}", "/v1/admin/users/{id}/token"],
    ];
    let mut routes = vec![on.post("/v1/auth/guest", Access::Open, guest::create).says("Become a guest")];
    routes.extend(places.into_iter().flat_map(|place| session_routes(on, place)));
    routes.extend(users.into_iter().flat_map(|place| user_routes(on, place)));
    routes
}

fn session_routes(on: &Mount<Own>, [login, logout, register, device, code]: [&'static str; 5]) -> Vec<Route> {
    let named = token::named(&on.0);
    vec![
        on.post(login, Access::Open, login::login).says("Log in, with a form"),
        on.post(logout, Access::Any, login::logout)
            .identified(named)
            .says("Log out; tokens stay good until they expire"),
        on.post(register, Access::Open, accounts::register).says("Register as a user"),
        on.post(device, Access::Open, device::begin).says("Begin to log a device in"),
        on.get(code, Access::Open, device::poll).says("Was the device approved?"),
        on.patch(code, Access::EditorOrWorker, device::approve).says("Log the device in as the caller"),
        on.delete(code, Access::EditorOrWorker, device::reject).says("Turn the device away"),
    ]
}

fn user_routes(on: &Mount<Own>, [me, one, token]: [&'static str; 3]) -> Vec<Route> {
    let named = token::named(&on.0);
    vec![
        on.get(me, Access::Any, accounts::me).identified(named).says("Who the token stands for"),
        on.patch(me, Access::EditorOrWorker, accounts::change_me).says("Change the caller's address or password"),
        on.get(one, Access::Admin, admin::one).says("One user"),
        on.patch(one, Access::Admin, admin::change).says("Change a user"),
        on.delete(one, Access::Admin, admin::delete).says("Delete a user"),
        on.post(token, Access::Admin, admin::token_for).says("A token for a user"),
    ]
}

/// A token for a user.
async fn mint(joblib: &Joblib, user: &User, by: Option<Uuid>) -> Result<String, Problem> {
    let now = joblib.engine.wall().await?.max(user.tokens_since);
    Ok(token::key(joblib).await?.mint(user.id, now, joblib.own.settings.token_lifetime, by))
}

fn bearer(token: &str) -> Value {
    json!({"access_token": token, "token_type": "bearer"})
}
