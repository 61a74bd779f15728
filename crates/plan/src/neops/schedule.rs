//! When a workflow runs by itself, as its document says.

use super::read::{Fields, Reader};
use serde_json::{Map, Value};

/// Schedules of one workflow.
pub const SCHEDULES_MAX: usize = 50;
const CRON_PARTS: [&str; 6] = ["second", "minute", "hour", "dayOfMonth", "month", "dayOfWeek"];
/// Bytes of one part of a cron expression.
const PART_BYTES_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Cron {
    pub title: String,
    /// A search for the entities to run on.
    pub query: String,
    /// Whether it may start while a run of it has not ended.
    pub overlaps: bool,
    pub enabled: bool,
    pub parameters: Map<String, Value>,
    pub condition: Option<String>,
    /// Six parts, from seconds to the day of the week.
    pub cron: String,
    pub time_zone: String,
}

pub(super) fn read(reader: &mut Reader, value: &Value, place: String) -> Option<Cron> {
    let at = reader.object(value, place)?;
    reader.must_sized(&at, "description", 1, 500);
    reader.must(&at, "crontab");
    let (cron, time_zone) = reader.inner(&at, "crontab").map(|tab| crontab(reader, &tab)).unwrap_or_default();
    Some(Cron {
        title: reader.must_sized(&at, "title", 1, 100).to_owned(),
        query: reader.must_text(&at, "query").to_owned(),
        overlaps: reader.must_flag(&at, "concurrency"),
        enabled: reader.must_flag(&at, "enabled"),
        parameters: reader.map(&at, "parameters").unwrap_or_default(),
        condition: super::document::condition(reader, &at),
        cron,
        time_zone,
    })
}

fn crontab(reader: &mut Reader, tab: &Fields<'_>) -> (String, String) {
    let parts = CRON_PARTS.map(|part| reader.must_sized(tab, part, 1, PART_BYTES_MAX).trim().to_owned());
    // A part with blanks in it would shift those after it.
    for (part, text) in CRON_PARTS.iter().zip(&parts) {
        if text.contains(char::is_whitespace) {
            reader.fault(tab.place(part), "must not contain blanks");
        }
    }
    (parts.join(" "), reader.must_sized(tab, "timezone", 1, PART_BYTES_MAX).to_owned())
}
