//! Who a token stands for: a user's JWT, or one of our own tokens.
//!
//! What a token was found to be is remembered for a second, as it is for our own: a user who is deactivated on another server calls at
//! most that much longer here.

use super::super::namespace;
use super::{
    super::{Joblib, Own, error::UNAUTHORIZED, who::Who},
    GONE, USER, Unwritten, User, find,
    jwt::{Key, Said, Wrong},
    write,
};
use crate::records::Records;
use crate::{
    auth::{Caller, not_valid},
    dialect::With,
    guard,
    problem::{Code, Problem},
    route::Identify,
};
use axum::extract::Request;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_api::Uuid;
use windlass_core::{Millis, Refusal, Timestamp, commands::records::Expect, credential::Credential};
use windlass_engine::{Error, records::Kept};

const REMEMBERED: Duration = Duration::from_secs(1);
const REMEMBERED_MAX: usize = 10_000;

/// What signs tokens where nobody configured it. All servers on a store share it.
const SECRET: Records<String> = Records::new("joblib_secret", namespace);
const SECRET_KEY: &str = "jwt";

/// What signs and checks tokens.
pub async fn key(joblib: &Joblib) -> Result<&Key, Problem> {
    let make = || async {
        Ok(match &joblib.own.settings.secret {
            Some(secret) => Key::new(secret.reveal().as_bytes()),
            None => Key::new(stored_secret(joblib).await?.as_bytes()),
        })
    };
    joblib.own.users.key.get_or_try_init(make).await
}

async fn stored_secret(joblib: &Joblib) -> Result<String, Problem> {
    if let Some(found) = SECRET.find(joblib, SECRET_KEY).await? {
        return Ok(found.value);
    }
    let random: [u8; 32] = rand::random();
    let drawn = windlass_api::hex(&random);
    match joblib.engine.run(SECRET.put(SECRET_KEY, &drawn, Expect::Nothing)).await {
        Ok(_) => Ok(drawn),
        // Another server drew one.
        Err(Error::Refused(Refusal::Exists { .. })) => {
            let found = SECRET.find(joblib, SECRET_KEY).await?;
            found.map(|found| found.value).ok_or_else(|| Problem::new(Code::Unavailable, "try again").retry_after(500))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Default)]
pub struct Remembered(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    tokens: HashMap<[u8; 32], Seen>,
    /// Counts how often something was forgotten: what was looked up before that may not be remembered after it.
    forgotten: u64,
}

struct Seen {
    at: Instant,
    /// What is left of its life, at most the time it is remembered.
    left: Duration,
    caller: Caller,
}

impl Remembered {
    fn find(&self, hash: &[u8; 32]) -> Result<Caller, u64> {
        let memory = self.0.lock();
        match memory.tokens.get(hash).filter(|seen| seen.at.elapsed() < seen.left) {
            Some(seen) => Ok(seen.caller.clone()),
            None => Err(memory.forgotten),
        }
    }

    fn keep(&self, hash: [u8; 32], caller: &Caller, left: Millis, forgotten: u64) {
        let mut memory = self.0.lock();
        if memory.forgotten != forgotten {
            return;
        }
        if memory.tokens.len() >= REMEMBERED_MAX {
            memory.tokens.retain(|_, seen| seen.at.elapsed() < seen.left);
        }
        if memory.tokens.len() < REMEMBERED_MAX {
            let left = Duration::from_millis(left.0.max(0) as u64).min(REMEMBERED);
            memory.tokens.insert(hash, Seen { at: Instant::now(), left, caller: caller.clone() });
        }
    }

    /// After a user was changed.
    pub fn forget(&self) {
        let mut memory = self.0.lock();
        memory.tokens.clear();
        memory.forgotten += 1;
    }
}

/// Who calls with this token.
pub async fn caller(joblib: &Joblib, token: &str) -> Result<Caller, Problem> {
    if !is_jwt(token) {
        return joblib.auth.caller(token).await;
    }
    let hash: [u8; 32] = Sha256::digest(token).into();
    let forgotten = match joblib.own.users.known.find(&hash) {
        Ok(caller) => return Ok(caller),
        Err(forgotten) => forgotten,
    };
    let said = key(joblib).await?.check(token).map_err(wrong)?;
    let now = joblib.engine.wall().await?;
    let left = Millis(said.expires_at.0.saturating_sub(now.0));
    if left.0 <= 0 {
        return Err(wrong(Wrong::Token));
    }
    let found = match find(joblib, said.user).await? {
        Some(user) => user,
        None => first_sight(joblib, said.user, now).await?.ok_or_else(|| wrong(Wrong::Payload))?,
    };
    let user = &found.value;
    if !user.is_active || issued_at(&said, joblib.own.settings.token_lifetime) < user.tokens_since {
        return Err(wrong(Wrong::Payload));
    }
    let credential = Credential::record(USER.key(&user.id.to_string()), found.version);
    let caller = Who::user(user.id, user.is_superuser, credential);
    joblib.own.users.known.keep(hash, &caller, left, forgotten);
    Ok(caller)
}

/// One that does not say counts as issued a lifetime before it expires.
fn issued_at(said: &Said, lifetime: Millis) -> Timestamp {
    said.issued_at.unwrap_or(Timestamp(said.expires_at.0.saturating_sub(lifetime.0)))
}

/// A user whom only another server with the same secret knows.
async fn first_sight(joblib: &Joblib, id: Uuid, now: Timestamp) -> Result<Option<Kept<User>>, Problem> {
    if !joblib.own.settings.foreign_users || GONE.find(joblib, &id.to_string()).await?.is_some() {
        return Ok(None);
    }
    let user = User { id, tokens_since: Timestamp(0), ..User::new(format!("{id}@elsewhere.invalid"), None, now) };
    match write(joblib, None, &user).await {
        Ok(()) | Err(Unwritten::Taken | Unwritten::Changed) => find(joblib, id).await,
        Err(Unwritten::Other(problem)) => Err(problem),
    }
}

/// Our own tokens have no dots in them.
fn is_jwt(token: &str) -> bool {
    token.starts_with("eyJ") && token.matches('.').count() == 2
}

fn wrong(wrong: Wrong) -> Problem {
    let [_, token, payload] = UNAUTHORIZED;
    Problem::new(Code::Unauthorized, if wrong == Wrong::Token { token } else { payload })
}

/// How callers say who they are.
pub fn identify(own: &Arc<Own>) -> Identify {
    told(own, |found| found.map_err(|problem| if problem.0.is(Code::Unauthorized) { not_valid() } else { problem }))
}

/// Where nobody may do without a name.
pub fn named(own: &Arc<Own>) -> Identify {
    let found = identify(own);
    Arc::new(move |app, request| {
        let found = found(app, request);
        Box::pin(async move { found.await?.map(Some).ok_or_else(not_valid) })
    })
}

/// Calls that carry a provider's data say exactly what is wrong with a token, and need one wherever they come from.
pub fn exactly(own: &Arc<Own>, is_data: fn(&str) -> bool) -> Identify {
    let [missing, invalid, _] = UNAUTHORIZED;
    let (others, data) = (
        identify(own),
        told(own, move |found| match found {
            Ok(None) => Err(Problem::new(Code::Unauthorized, missing)),
            Err(problem) if problem.0.is(Code::Unauthorized) && !UNAUTHORIZED.contains(&&*problem.0.detail) => {
                Err(Problem::new(Code::Unauthorized, invalid))
            }
            found => found,
        }),
    );
    Arc::new(move |app, request| if is_data(request.uri().path()) { data(app, request) } else { others(app, request) })
}

type Found = Result<Option<Caller>, Problem>;

fn told(own: &Arc<Own>, tell: impl Fn(Found) -> Found + Copy + Send + Sync + 'static) -> Identify {
    let own = own.clone();
    Arc::new(move |app, request: &Request| {
        let token = guard::token(request.headers(), false).map(Cow::into_owned);
        let joblib = With::new(app.clone(), own.clone());
        Box::pin(async move {
            tell(match token {
                Some(token) => caller(&joblib, &token).await.map(Some),
                None => Ok(None),
            })
        })
    })
}
