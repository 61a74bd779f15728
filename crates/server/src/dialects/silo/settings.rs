//! What an operator can set about this dialect, under our names and under those its users know.

use crate::{
    config::{
        adjusted::{Adjusted, limited},
        table::{self, Foreign, From, Kind, NOTHING, as_it_is},
        values::Values,
    },
    settings,
};
use std::{path::PathBuf, time::Duration};
use windlass_core::Millis;

settings! { TABLE:
    silo_jobs: Kind::Path, "/etc/silo/jobdefs", "Folder with Silo's job definitions, loaded at the start";
    silo_watch: Kind::Flag, "false", "Load Silo's job definitions again whenever their folder changes";
    silo_runner_timeout: Kind::Time, "90s", "How long after its last heartbeat a Silo runner is offline";
    silo_timeout_check: Kind::Time, "30s", "How often edit locks that nobody keeps are looked for";
    silo_priority: Kind::Whole, "100", "Priority of Silo's jobs whose definition names none; lower goes first";
    silo_heartbeat: Kind::Time, "30s", "How often Silo's event stream gives a sign of life";
    silo_lock_timeout: Kind::Time, "15m", "How long an edit lock holds after its last heartbeat";
}

/// What an operator chose about this dialect.
#[derive(Clone, Debug)]
pub struct Settings {
    pub directory: PathBuf,
    /// Somebody named the folder, so it should be there.
    pub directory_is_set: bool,
    pub watch: bool,
    pub runner_timeout: Millis,
    pub timeout_check: Duration,
    pub default_priority: i32,
    pub heartbeat: Duration,
    pub lock_timeout: Millis,
}

impl Settings {
    pub fn read(read: &Values) -> Self {
        let least = Duration::from_secs(1);
        Self {
            directory: PathBuf::from(read.text(silo_jobs)),
            directory_is_set: read.is_chosen(silo_jobs),
            watch: read.flag(silo_watch),
            runner_timeout: read.millis(silo_runner_timeout),
            timeout_check: read.time(silo_timeout_check).max(least),
            default_priority: read.whole(silo_priority),
            heartbeat: read.time(silo_heartbeat).max(least),
            lock_timeout: read.millis(silo_lock_timeout),
        }
    }
}

/// What is in effect where that is not what was written.
pub fn adjusted(read: &Values) -> Vec<Adjusted> {
    let (now, of) =
        (Settings::read(read), |time: Duration| Millis(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)));
    let all =
        [limited(read, silo_timeout_check, of(now.timeout_check)), limited(read, silo_heartbeat, of(now.heartbeat))];
    all.into_iter().flatten().collect()
}

fn seconds(text: &str) -> Result<String, String> {
    duration(text, "seconds", "s")
}

fn minutes(text: &str) -> Result<String, String> {
    duration(text, "minutes", "m")
}

fn duration(text: &str, of: &str, unit: &str) -> Result<String, String> {
    match text.trim().parse::<u64>() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(count) => Ok(format!("{count}{unit}")),
        Err(_) => Err(format!("{text:?} is not a number of {of}")),
    }
}

/// All of the last `events_kept` can be replayed, which is more.
fn history(text: &str) -> Result<String, String> {
    let fits = text.trim().parse().is_ok_and(|count: u64| (256..=1_000_000).contains(&count));
    fits.then(|| text.trim().to_owned()).ok_or_else(|| format!("{text:?} is not between 256 and 1000000"))
}

/// The names its users know: its configuration file and its variables.
pub fn foreign() -> Vec<Foreign> {
    let variable = |name, to, convert| Foreign { from: From::Variable(name), to, convert };
    let key = |block, key, to, convert| Foreign { from: From::Key { block, key }, to, convert };
    vec![
        key("jobs", "directory", silo_jobs, as_it_is),
        key("jobs", "watch", silo_watch, as_it_is),
        key("jobs", "runner_timeout", silo_runner_timeout, seconds),
        key("jobs", "job_timeout_check", silo_timeout_check, seconds),
        key("jobs", "default_priority", silo_priority, as_it_is),
        key("server", "listen", table::listen, as_it_is),
        key("storage", "path", table::data, as_it_is),
        key("auth", "admin_token", table::admin_token, as_it_is),
        key("events", "history_size", NOTHING, history),
        key("events", "heartbeat", silo_heartbeat, seconds),
        key("locks", "timeout_minutes", silo_lock_timeout, minutes),
        variable("SILO_JOBS_DIRECTORY", silo_jobs, as_it_is),
        variable("SILO_JOBS_RUNNER_TIMEOUT", silo_runner_timeout, seconds),
        variable("SILO_JOBS_JOB_TIMEOUT_CHECK", silo_timeout_check, seconds),
        variable("SILO_JOBS_DEFAULT_PRIORITY", silo_priority, as_it_is),
        variable("SILO_LISTEN", table::listen, as_it_is),
        variable("SILO_STORAGE_PATH", table::data, as_it_is),
        variable("SILO_ADMIN_TOKEN", table::admin_token, as_it_is),
    ]
}
