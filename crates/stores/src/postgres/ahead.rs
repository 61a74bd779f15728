//! The jobs that claims will want next, read ahead of them.
//!
//! A hint and never the truth, like `known`: the statement that claims selects the front of the lanes itself, and writes only
//! if that is what was decided on. Where somebody else takes from the same lanes it mostly is not; so after a try in vain a
//! while passes before the next, longer each time.

use super::{
    columns::READ_COUNT,
    connection::Connection,
    failure::Failure,
    known::Known,
    rows::{Names, payload},
    statements::Sql,
};
use crate::weight;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_core::{Head, HeadQuery};

/// Jobs that are claimed together at most; with more, the second look costs little for each.
pub const COUNT_MAX: usize = 256;
/// Of more lanes than this nothing is read ahead.
const LANES_MAX: usize = 16;
/// So many times as much as is wanted now.
const TIMES: usize = 16;
const JOBS_MAX: usize = 512;
const PAYLOAD_MAX: i32 = 16 << 10;
/// What the jobs of one offer may take.
const BYTES_MAX: usize = 2 << 20;
/// Offers with jobs in memory.
const OFFERS_MAX: usize = 16;
/// Longer ago than this, others will have changed something.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// After a try in vain, 2 claims are left alone, then 4, up to 64.
const DOUBLINGS_MAX: u32 = 6;

#[derive(Default)]
pub struct Ahead(Mutex<HashMap<HeadQuery, Front>>);

struct Front {
    heads: VecDeque<Head>,
    read_at: Instant,
    /// How often it was in vain lately.
    vain: u32,
    /// So many claims look first.
    rest: u32,
}

impl Ahead {
    /// The first so many that this offer can have, if so many are known. They are nobody else's from now on.
    pub fn take(&self, query: &HeadQuery, count: usize, known: &Known) -> Option<Vec<Head>> {
        let mut fronts = self.0.lock();
        let front = fronts.get_mut(query)?;
        if front.rest > 0 || front.read_at.elapsed() > KEPT_FOR {
            front.rest = front.rest.saturating_sub(1);
            front.heads.clear();
            return None;
        }
        // Some may have been taken by a batch that was on its way when they were read.
        let left = std::iter::from_fn(|| front.heads.pop_front()).filter(|head| !known.holds(&head.job.key));
        let taken: Vec<Head> = left.take(count).collect();
        (taken.len() == count).then_some(taken)
    }

    /// Back to the front: they were not needed.
    pub fn put_back(&self, query: &HeadQuery, heads: Vec<Head>) {
        if let Some(front) = self.0.lock().get_mut(query) {
            heads.into_iter().rev().for_each(|head| front.heads.push_front(head));
        }
    }

    /// How many jobs to read while these are claimed. None: it would not pay.
    pub fn limit(&self, query: &HeadQuery, count: usize, lanes: usize) -> Option<i64> {
        let fits = (1..=COUNT_MAX).contains(&count) && (1..=LANES_MAX).contains(&lanes);
        let pays = |front: &Front| front.rest == 0 && front.heads.len() < 2 * count;
        (fits && self.0.lock().get(query).is_some_and(pays)).then(|| (count * TIMES).min(JOBS_MAX) as i64)
    }

    /// A claim found all it wanted, or it did not: only where there is work is it worth reading ahead.
    pub fn looked(&self, query: &HeadQuery, plenty: bool) {
        let mut fronts = self.0.lock();
        if !plenty {
            fronts.get_mut(query).into_iter().for_each(Front::rest);
            return;
        }
        if fronts.len() >= OFFERS_MAX && !fronts.contains_key(query) {
            fronts.clear();
        }
        let new = || Front { heads: VecDeque::new(), read_at: Instant::now(), vain: 0, rest: 0 };
        fronts.entry(query.clone()).or_insert_with(new);
    }

    /// `wanted` is what was claimed when they were read. Where less than that is left, the next claim looks anyway, and reading
    /// ahead was in vain.
    pub fn learn(&self, query: &HeadQuery, heads: Vec<Head>, wanted: usize) {
        if let Some(front) = self.0.lock().get_mut(query) {
            if heads.len() < wanted {
                front.was_in_vain();
                return;
            }
            (front.heads, front.read_at) = (heads.into(), Instant::now());
        }
    }

    pub fn was_right(&self, query: &HeadQuery) {
        if let Some(front) = self.0.lock().get_mut(query) {
            front.vain = front.vain.saturating_sub(1);
        }
    }

    pub fn was_wrong(&self, query: &HeadQuery) {
        if let Some(front) = self.0.lock().get_mut(query) {
            front.was_in_vain();
        }
    }
}

impl Front {
    fn was_in_vain(&mut self) {
        self.vain = (self.vain + 1).min(DOUBLINGS_MAX);
        self.rest();
    }

    fn rest(&mut self) {
        self.rest = 1 << self.vain;
        self.heads.clear();
    }
}

/// Up to the first job that takes too much.
pub async fn read(
    connection: &Connection,
    query: &HeadQuery,
    lanes: &[Uuid],
    limit: i64,
) -> Result<Vec<Head>, Failure> {
    let rows = connection.query(Sql::ReadAhead, &[&query.namespace.as_str(), &lanes, &limit, &PAYLOAD_MAX]).await?;
    let (mut names, mut heads, mut bytes) = (Names::default(), Vec::with_capacity(rows.len()), 0);
    for row in &rows {
        let head = Head { job: names.job(row)?, payload: payload(row, READ_COUNT)? };
        bytes += weight::of_job(&head.job) + head.payload.len();
        if row.try_get(READ_COUNT + 1)? || bytes > BYTES_MAX {
            break;
        }
        heads.push(head);
    }
    Ok(heads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{Namespace, Tags};

    #[test]
    fn after_tries_in_vain_it_rests_longer_each_time_but_never_for_good() {
        let (ahead, known) = (Ahead::default(), Known::default());
        let query = HeadQuery { namespace: Namespace::default(), offered: Tags::default() };
        assert_eq!(ahead.limit(&query, 4, 1), None, "nobody has found work yet");
        ahead.looked(&query, true);
        for rests in [2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(ahead.limit(&query, 4, 1), Some(64));
            ahead.was_wrong(&query);
            for _ in 0..rests {
                assert_eq!(ahead.limit(&query, 4, 1), None);
                assert!(ahead.take(&query, 4, &known).is_none());
            }
        }
        assert_eq!((ahead.limit(&query, 0, 1), ahead.limit(&query, 4, LANES_MAX + 1)), (None, None));
        ahead.looked(&query, false);
        assert_eq!(ahead.limit(&query, 4, 1), None, "the queue was empty");
    }

    #[test]
    fn a_queue_that_holds_little_more_than_is_claimed_is_seldom_read_ahead() {
        let (ahead, known) = (Ahead::default(), Known::default());
        let query = HeadQuery { namespace: Namespace::default(), offered: Tags::default() };
        let mut reads = 0;
        for _ in 0..1_000 {
            ahead.looked(&query, true);
            if ahead.limit(&query, 4, 1).is_some() {
                reads += 1;
                ahead.learn(&query, Vec::new(), 4);
            }
            assert!(ahead.take(&query, 4, &known).is_none());
        }
        assert!(reads < 25, "{reads} of 1000");
    }

    #[test]
    fn offers_beyond_what_is_kept_begin_anew() {
        let ahead = Ahead::default();
        for n in 0..100 {
            let offered: Tags = [format!("tag-{n}").as_str()].into_iter().collect();
            ahead.looked(&HeadQuery { namespace: Namespace::default(), offered }, true);
            assert!(ahead.0.lock().len() <= OFFERS_MAX);
        }
    }
}
