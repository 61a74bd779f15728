//! Calendars: cron expressions in a time zone.
//!
//! Where the clock is put forward, a time that does not exist that day is not made up for by an expression that repeats
//! within the day, while a fixed time of day runs once, at the moment the clock jumps; where it is put back, a fixed time
//! runs once, at the first of the two.

use crate::problem::{Problem, Result};
use croner::Cron;
use jiff::tz::TimeZone;
use windlass_core::Timestamp;

/// When a schedule comes round.
#[derive(Clone, Debug)]
pub struct Calendar {
    cron: Cron,
    zone: TimeZone,
}

const CRON_BYTES_MAX: usize = 256;
/// More than the seconds of an hour that comes twice.
const LOOKED_AT_MAX: usize = 10_000;
/// What stands between expression and time zone in a stored rule. Neither can hold it.
const SEPARATOR: char = '\t';

impl Calendar {
    pub fn new(cron: &str, zone: Option<&str>) -> Result<Self> {
        if cron.len() > CRON_BYTES_MAX || cron.chars().any(char::is_control) {
            return Err(Problem::invalid(
                "cron",
                format!("is longer than {CRON_BYTES_MAX} or holds control characters"),
            ));
        }
        let parsed: Cron = cron.parse().map_err(|error| {
            let why = format!("{cron:?} is not a cron expression ({error}); write it like 0 3 * * 1-5");
            Problem::invalid("cron", why)
        })?;
        let name = zone.unwrap_or("UTC");
        let zone = TimeZone::get(name).map_err(|_| {
            Problem::invalid("time_zone", format!("{name:?} is not a time zone; write it like Europe/Berlin"))
        })?;
        Ok(Self { cron: parsed, zone })
    }

    /// As the rules keep it.
    pub fn stored(cron: &str, zone: Option<&str>) -> String {
        format!("{cron}{SEPARATOR}{}", zone.unwrap_or("UTC"))
    }

    pub fn restore(text: &str) -> Result<Self> {
        let (cron, zone) = text.split_once(SEPARATOR).map_or((text, None), |(cron, zone)| (cron, Some(zone)));
        Self::new(cron, zone)
    }

    /// The first time after this one; none where it never comes again.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let from = jiff::Timestamp::from_millisecond(at.0).ok()?.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&from, false).ok()?;
        let next = Timestamp(next.timestamp().as_millisecond());
        (next > at).then_some(next)
    }

    /// As [`Calendar::after`], for readers who take the wall clock at its word: a time the clock skips does not come, one
    /// that comes twice counts once.
    pub fn strictly_after(&self, at: Timestamp) -> Option<Timestamp> {
        std::iter::successors(self.after(at), |at| self.after(*at)).take(LOOKED_AT_MAX).find(|at| self.is_meant(*at))
    }

    fn is_meant(&self, at: Timestamp) -> bool {
        let Ok(at) = jiff::Timestamp::from_millisecond(at.0) else { return false };
        let local = at.to_zoned(self.zone.clone());
        let first = self.zone.to_ambiguous_timestamp(local.datetime()).earlier().is_ok_and(|first| first >= at);
        first && self.cron.is_time_matching(&local).unwrap_or(false)
    }

    /// So many times after this one.
    pub fn some_after(&self, at: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.after(at), |at| self.after(*at)).take(count).collect()
    }
}
