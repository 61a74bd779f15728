//! What an operator can set about this dialect, under our names and under those its users know.

use crate::{
    config::{
        adjusted::{Adjusted, limited},
        table::{Foreign, From, Kind, NOTHING, as_it_is},
        value,
        values::Values,
    },
    secret::Secret,
    settings,
};
use std::time::Duration;
use windlass_core::Millis;

const WHO: &[&str] = &["local", "anyone", "nobody"];

settings! { TABLE:
    joblib_categories: Kind::List, "modifiers,selections,analysis", "Categories that jobs may have";
    joblib_worker_timeout: Kind::Time, "60s", "How long after its last heartbeat a JobManager worker is removed, and its tasks fail";
    joblib_doubt: Kind::Time, "15s", "How long a worker may stay silent after its last Socket.IO connection is lost, from 1s to 10m; then it is removed";
    joblib_wait_max: Kind::Time, "60s", "Longest wait for a task to end (Prefer: wait)";
    joblib_locked_rooms: Kind::List, "", "Rooms in which nothing may be registered or submitted (423)";
    joblib_provider_categories: Kind::List, "", "Categories that providers may have. Default: any";
    joblib_provider_result_max: Kind::Bytes, "16MiB", "Largest answer of a provider";
    joblib_provider_result_kept: Kind::Time, "5m", "How long a provider's answer is kept";
    joblib_provider_asked_for: Kind::Time, "30s", "How long the same question is not put to a provider again";
    joblib_provider_wait: Kind::Time, "5s", "How long a reader waits for a provider if it does not say";
    joblib_provider_wait_max: Kind::Time, "30s", "Longest wait for a provider";
    joblib_secret: Kind::Secret, "", "Key that signs users' tokens, at least 16 characters, shared with a ZnDraw whose tokens are to be good here. Default: drawn once and kept in the store";
    joblib_token_lifetime: Kind::Time, "1h", "How long a user's token is good";
    joblib_admin_email: Kind::Text, "", "Address of the default admin, who is made, or made superuser, at the start. Default: none";
    joblib_admin_password: Kind::Secret, "", "Password of the default admin when it is made";
    joblib_registration: Kind::Choice(WHO), "local", "Who may register as a user: local (programs on this machine, as without_token has it), anyone or nobody";
    joblib_guests: Kind::Choice(WHO), "local", "Who may become a guest: local, anyone or nobody";
    joblib_development: Kind::Choice(WHO), "local", "Who becomes superuser by registering as long as there is no default admin: local, anyone or nobody";
    joblib_foreign_users: Kind::Flag, "false", "Make a user of whoever brings a good token of a user unknown here. For tokens of a ZnDraw with the same secret";
}

/// Who may do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whoever {
    Local,
    Anyone,
    Nobody,
}

/// What an operator chose about this dialect.
pub struct Settings {
    pub categories: Vec<String>,
    pub worker_timeout: Millis,
    pub doubt: Millis,
    pub wait_max: Duration,
    pub locked_rooms: Vec<String>,
    /// Empty: any.
    pub provider_categories: Vec<String>,
    pub provider_result_max: usize,
    pub provider_result_kept: Millis,
    pub provider_asked_for: Millis,
    pub provider_wait: Duration,
    pub provider_wait_max: Duration,
    pub secret: Option<Secret>,
    pub token_lifetime: Millis,
    pub admin: Option<(String, Secret)>,
    pub registration: Whoever,
    pub guests: Whoever,
    pub development: Whoever,
    pub foreign_users: bool,
}

impl Settings {
    pub fn read(read: &Values) -> Self {
        let second = Millis(1_000);
        let list = |setting| value::list(read.text(setting));
        let whoever = |setting| match read.text(setting) {
            "anyone" => Whoever::Anyone,
            "nobody" => Whoever::Nobody,
            _ => Whoever::Local,
        };
        let password = || Secret::new(read.text(joblib_admin_password));
        Self {
            categories: list(joblib_categories),
            worker_timeout: read.millis(joblib_worker_timeout).max(second),
            doubt: read.millis(joblib_doubt).clamp(second, Millis(600_000)),
            wait_max: read.time(joblib_wait_max),
            locked_rooms: list(joblib_locked_rooms),
            provider_categories: list(joblib_provider_categories),
            provider_result_max: read.bytes(joblib_provider_result_max),
            provider_result_kept: read.millis(joblib_provider_result_kept).max(second),
            provider_asked_for: read.millis(joblib_provider_asked_for).max(second),
            provider_wait: read.time(joblib_provider_wait),
            provider_wait_max: read.time(joblib_provider_wait_max),
            secret: read.some(joblib_secret).map(Secret::new),
            token_lifetime: read.millis(joblib_token_lifetime).max(second),
            admin: read.some(joblib_admin_email).map(|email| (email.to_owned(), password())),
            registration: whoever(joblib_registration),
            guests: whoever(joblib_guests),
            development: whoever(joblib_development),
            foreign_users: read.flag(joblib_foreign_users),
        }
    }
}

/// What is in effect where that is not what was written.
pub fn adjusted(read: &Values) -> Vec<Adjusted> {
    let now = Settings::read(read);
    let all = [
        (joblib_worker_timeout, now.worker_timeout),
        (joblib_doubt, now.doubt),
        (joblib_provider_result_kept, now.provider_result_kept),
        (joblib_provider_asked_for, now.provider_asked_for),
        (joblib_token_lifetime, now.token_lifetime),
    ];
    all.into_iter().filter_map(|(setting, effective)| limited(read, setting, effective)).collect()
}

/// Seconds, whole or with a fraction.
pub fn seconds(text: &str) -> Result<String, String> {
    let seconds: f64 = text.trim().parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(format!("{text:?} is not between 0 and 1000000000"));
    }
    Ok(format!("{}ms", (seconds * 1_000.0).round() as u64))
}

/// A JSON list of words.
pub fn words(text: &str) -> Result<String, String> {
    let words: Vec<String> =
        serde_json::from_str(text).map_err(|_| format!("{text:?} is not a JSON list such as [\"modifiers\"]"))?;
    match words.iter().find(|word| word.contains(',') || word.trim() != word.as_str()) {
        Some(word) => Err(format!("{word:?} has a comma in it, or a blank at an end")),
        None => Ok(words.join(",")),
    }
}

/// The names its users know.
pub fn foreign() -> Vec<Foreign> {
    let variable = |name, to, convert| Foreign { from: From::Variable(name), to, convert };
    vec![
        variable("ZNDRAW_JOBLIB_ALLOWED_CATEGORIES", joblib_categories, words),
        variable("ZNDRAW_JOBLIB_WORKER_TIMEOUT_SECONDS", joblib_worker_timeout, seconds),
        variable("ZNDRAW_JOBLIB_SWEEPER_INTERVAL_SECONDS", NOTHING, seconds),
        variable("ZNDRAW_JOBLIB_LONG_POLL_MAX_WAIT_SECONDS", joblib_wait_max, seconds),
        variable("ZNDRAW_JOBLIB_CLAIM_MAX_ATTEMPTS", NOTHING, as_it_is),
        variable("ZNDRAW_JOBLIB_CLAIM_BASE_DELAY_SECONDS", NOTHING, seconds),
        variable("ZNDRAW_JOBLIB_INTERNAL_TASK_TIMEOUT_SECONDS", NOTHING, seconds),
        variable("ZNDRAW_JOBLIB_ALLOWED_PROVIDER_CATEGORIES", joblib_provider_categories, words),
        variable("ZNDRAW_JOBLIB_PROVIDER_RESULT_TTL_SECONDS", joblib_provider_result_kept, seconds),
        variable("ZNDRAW_JOBLIB_PROVIDER_INFLIGHT_TTL_SECONDS", joblib_provider_asked_for, seconds),
        variable("ZNDRAW_JOBLIB_PROVIDER_LONG_POLL_DEFAULT_SECONDS", joblib_provider_wait, seconds),
        variable("ZNDRAW_JOBLIB_PROVIDER_LONG_POLL_MAX_SECONDS", joblib_provider_wait_max, seconds),
        variable("ZNDRAW_AUTH_SECRET_KEY", joblib_secret, as_it_is),
        variable("ZNDRAW_AUTH_TOKEN_LIFETIME_SECONDS", joblib_token_lifetime, seconds),
        variable("ZNDRAW_AUTH_DEFAULT_ADMIN_EMAIL", joblib_admin_email, as_it_is),
        variable("ZNDRAW_AUTH_DEFAULT_ADMIN_PASSWORD", joblib_admin_password, as_it_is),
        variable("ZNDRAW_AUTH_RESET_PASSWORD_TOKEN_SECRET", NOTHING, as_it_is),
        variable("ZNDRAW_AUTH_VERIFICATION_TOKEN_SECRET", NOTHING, as_it_is),
    ]
}
