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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn times(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let found = Calendar::new(cron, Some(zone)).unwrap().some_after(at(from), count);
        found.into_iter().map(|at| jiff::Timestamp::from_millisecond(at.0).unwrap().to_string()).collect()
    }

    #[test]
    fn times_follow_the_time_zone_through_the_year() {
        let table: &[(&str, &str, &str, &[&str])] = &[
            ("0 3 * * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"]),
            ("@daily", "UTC", "2026-01-01T00:00:00Z", &["2026-01-02T00:00:00Z"]),
            ("*/10 * * * * *", "UTC", "2026-01-01T00:00:05Z", &["2026-01-01T00:00:10Z"]),
            ("0 9 * * MON", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-05T03:30:00Z"]),
            ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]),
            // Summer time begins on 29 March 2026 in Berlin: 12:00 is an hour earlier in UTC from then on.
            ("0 12 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", &["2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z"]),
            // 02:30 does not exist on that day; it runs once, when the clock jumps.
            ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
            // Summer time ends on 25 October 2026: 02:30 comes twice, and is taken once.
            ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
            // What repeats goes by real time: no half hour is left out or doubled.
            (
                "*/30 * * * *",
                "Europe/Berlin",
                "2026-10-25T00:00:00Z",
                &["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"],
            ),
            (
                "*/30 * * * *",
                "Europe/Berlin",
                "2026-03-29T00:00:00Z",
                &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
            ),
        ];
        for (cron, zone, from, expected) in table {
            assert_eq!(times(cron, zone, from, expected.len()), *expected, "{cron} in {zone} from {from}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let table = [
            ("", None, "cron"),
            ("every day", None, "cron"),
            ("60 * * * *", None, "cron"),
            ("* * * *", None, "cron"),
            ("0 3 * * *\tUTC", None, "cron"),
            ("0 3 * * *", Some("Mars/Olympus"), "time_zone"),
            ("0 3 * * *", Some("../../etc/passwd"), "time_zone"),
        ];
        for (cron, zone, field) in table {
            let problem = Calendar::new(cron, zone).unwrap_err();
            assert_eq!(problem.0.field.as_deref(), Some(field), "{cron} {zone:?}");
        }
        let never = Calendar::new("0 0 31 2 *", None).map(|calendar| calendar.after(at("2026-01-01T00:00:00Z")));
        assert!(matches!(never, Ok(None) | Err(_)), "31 February never comes");
    }

    #[test]
    fn a_calendar_survives_being_stored() {
        let text = Calendar::stored("30 2 * * *", Some("Europe/Berlin"));
        let restored = Calendar::restore(&text).unwrap();
        let made = Calendar::new("30 2 * * *", Some("Europe/Berlin")).unwrap();
        assert_eq!(restored.after(at("2026-07-01T00:00:00Z")), made.after(at("2026-07-01T00:00:00Z")));
    }
}
