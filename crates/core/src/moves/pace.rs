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
const BURST: Millis = Millis::from_secs(1);

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
fn step(line: Option<Pace>, now: Timestamp, rate: u32) -> (Millis, Pace) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{
            claim::Offer,
            submit::NewJob,
            testing::{Story, leases, tags, tries},
        },
        model::job::State,
    };

    fn fail_all(story: &mut Story, jobs: usize) {
        for lease in story.claims("w", jobs) {
            story.fail(lease).unwrap();
        }
    }

    #[test]
    fn jobs_that_fail_together_come_back_at_the_rate() {
        let mut story = Story::new();
        story.tables.limits.retries_per_second = 10;
        for number in 1..=40 {
            story.submit(tries(number, 2));
        }
        fail_all(&mut story, 40);
        let ready = |story: &mut Story| (1..=40).filter(|&n| story.state(n) == State::Pending).count();
        assert_eq!(ready(&mut story), 11, "a second's worth comes back at once");
        for second in 1..=2 {
            story.wait(1_000);
            story.sweep();
            assert_eq!(ready(&mut story), 11 + 10 * second);
        }
        story.wait(1_000);
        story.sweep();
        assert_eq!(ready(&mut story), 40);
        story.wait(1_001);
        story.sweep();
        assert!(!story.tables.records.keys().any(|key| &*key.kind == Pace::KIND), "a line that passed is forgotten");
    }

    #[test]
    fn other_kinds_do_not_wait_and_the_lost_do_not_either() {
        let mut story = Story::new();
        story.tables.limits.retries_per_second = 1;
        for number in 1..=5 {
            story.submit(tries(number, 2));
        }
        fail_all(&mut story, 5);
        story.submit(NewJob { tags: tags(&["other"]), priority: 1, ..tries(6, 2) });
        let mut claim = story.claim_command("x", 1);
        claim.offer = Offer::Tags(tags(&["other"]));
        let other = leases(&story.run(claim))[0].lease;
        story.fail(other).unwrap();
        assert_eq!(story.state(6), State::Pending);
        story.submit(tries(7, 2));
        let lost = story.claims("w", 9).len();
        assert_eq!(lost, 3, "the first two, and the new one");
        story.wait(30_000);
        story.sweep();
        assert_eq!(story.state(7), State::Pending);
    }

    #[test]
    fn a_rate_is_kept_however_high_it_is() {
        for (rate, retries) in [(1, 20), (3, 60), (7_000, 140_000)] {
            let mut line = None;
            let mut last = Millis(0);
            for _ in 0..=retries {
                let (wait, next) = step(line, Timestamp(5), rate);
                (last, line) = (wait, Some(next));
            }
            assert!(last.0.abs_diff(20_000 - BURST.0) < 200, "{rate}: {last:?}");
        }
    }
}
