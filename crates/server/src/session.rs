//! Sessions of pages: the cookie they come with, the key that shows that a call comes from our own page, and one-time codes.
//!
//! A session is a token of its own that was made with the one it was exchanged for: it expires by itself, it ends with that one,
//! and it is found in the list of tokens. The cookie holds nothing else.

use crate::{
    auth::{Caller, hash},
    host::host_of,
    owners::OwnedEntries,
    problem::{Code, Problem, Result},
    secret::Secret,
};
use axum::extract::Request;
use http::{HeaderName, header};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use subtle::ConstantTimeEq;

/// What tokens of sessions begin with. No other token is taken from a cookie.
pub const PREFIX: &str = "wl_page_";
pub const PAGE_KEY: HeaderName = HeaderName::from_static("windlass-page-key");
const COOKIE: &str = "windlass_session";
/// Codes of one principal, with those it makes tokens for, that wait to be used; and of all.
const CODES_PER_PRINCIPAL: usize = 20;
const CODES_MAX: usize = 2_000;
pub const CODE_LIFE: Duration = Duration::from_secs(600);

/// Cookies do not tell ports apart, and several servers may run on one machine.
pub fn cookie_name(request: &Request) -> String {
    let port = host_of(request).and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("{COOKIE}_{port}"),
        None => COOKIE.to_owned(),
    }
}

/// The token of the session a request comes with. A call that changes something must also know the key of the page: a browser
/// sends the cookie by itself, also for others, but the key only our own page can read.
pub fn token(request: &Request, changes: bool) -> Result<Option<&str>> {
    if !request.headers().contains_key(header::COOKIE) {
        return Ok(None);
    }
    let name = cookie_name(request);
    let lines = request.headers().get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let Some((_, token)) = pairs.find(|(key, value)| *key == name && value.starts_with(PREFIX)) else {
        return Ok(None);
    };
    let key = request.headers().get(PAGE_KEY).map_or(&b""[..], |value| value.as_bytes());
    if changes && !bool::from(key.ct_eq(page_key(token).as_bytes())) {
        let why = "a call with the dashboard's cookie must have the key of the page; load the page again";
        return Err(Problem::new(Code::ForeignOrigin, why).at(PAGE_KEY.as_str()));
    }
    Ok(Some(token))
}

/// Cannot be told without the cookie, and does not tell the cookie.
pub fn page_key(token: &str) -> String {
    windlass_api::hex(&Sha256::digest(format!("page key of {token}"))[..16])
}

/// One-time codes, by their hashes. In memory: a code is used within minutes, on the server that made it.
pub struct Codes(Mutex<OwnedEntries<Arc<str>, String, Caller>>);

impl Default for Codes {
    fn default() -> Self {
        Self(Mutex::new(OwnedEntries::new(CODES_PER_PRINCIPAL, CODES_MAX, CODE_LIFE)))
    }
}

impl Codes {
    pub fn add(&self, code: &Secret, caller: Caller) {
        self.0.lock().add(caller.root.clone(), hash(code.reveal()), caller, Instant::now());
    }

    /// Whom the code stands for; it does so only once.
    pub fn take(&self, code: &str) -> Option<Caller> {
        self.0.lock().take(&hash(code), Instant::now())
    }
}
