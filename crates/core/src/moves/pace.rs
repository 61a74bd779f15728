//! How fast failed jobs come back. Ten thousand jobs that fail together must not return together, however short their
//! backoff is: jobs of one kind are let back into the queue at an even rate, and those of another do not notice.

use crate::{
    desk::{Desk, Stop},
    model::{
        job::Job,
        record::Kind,
        time::{Millis, Timestamp},
    },
};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Jobs of a kind that may come back before the rate counts, in seconds of it.
pub const BURST: Millis = Millis::from_secs(1);

/// Enough to tell kinds apart. Kinds whose names agree so far share a rate, which does no harm.
const KEY_BYTES_MAX: usize = 200;

/// The line of retries let through so far, as the time at which it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    pub until: Timestamp,
    /// Parts of a millisecond left over, in thousandths, so that high rates are kept too.
    #[serde(default, skip_serializing_if = "crate::model::is_default")]
    pub rest: u32,
}

impl Kind for Pace {
    const KIND: &'static str = "retry_pace";
    /// A line that has passed says nothing more.
    fn due(&self) -> Option<Timestamp> {
        Some(self.until + Millis(1))
    }
}

/// How long a job that failed now has to wait for its turn, before its own backoff begins.
pub(crate) fn turn(desk: &mut Desk, job: &Job) -> Result<Millis, Stop> {
    let rate = desk.limits().retries_per_second;
    if rate == 0 {
        return Ok(Millis(0));
    }
    let (namespace, key) = (job.key.namespace.clone(), kind_of(job));
    let line = desk.get::<Pace>(&namespace, &key)?;
    let (wait, line) = step(line, desk.now(), rate);
    desk.put(&namespace, &key, &line)?;
    Ok(wait)
}

/// One more in the line: how long it waits, and the line with it.
pub fn step(line: Option<Pace>, now: Timestamp, rate: u32) -> (Millis, Pace) {
    let line = line.filter(|line| line.until >= now).unwrap_or(Pace { until: now, rest: 0 });
    let wait = (line.until - now).0 - BURST.0;
    let thousandths = line.rest + 1_000_000 / rate;
    let until = line.until + Millis(i64::from(thousandths / 1_000));
    (Millis(wait.max(0)), Pace { until, rest: thousandths % 1_000 })
}

/// Its definition's name, or what workers know it by.
fn kind_of(job: &Job) -> String {
    let mut key = match &job.spec.definition {
        Some(definition) => format!("definition:{}", definition.name),
        None => job.spec.tags.iter().fold("tags:".to_owned(), |mut key, tag| {
            let _ = write!(key, "{tag},");
            key
        }),
    };
    key.truncate(key.floor_char_boundary(KEY_BYTES_MAX));
    key
}
