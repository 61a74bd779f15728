//! What a batch makes anew: jobs with their places and lanes, ids, and numbers that are random to others.

use super::Desk;
use crate::model::{
    id::JobId,
    job::{Job, Live, Spec, State},
    keys::JobKey,
    name::{Lane, Namespace, Tags},
    policy::mix,
};
use std::sync::Arc;
use uuid::Uuid;

impl Desk {
    /// The next place in the queue.
    pub(crate) fn next_seq(&mut self) -> i64 {
        self.next_seq += 1;
        self.next_seq - 1
    }

    /// A job at the next place in the queue, but not yet in it.
    pub(crate) fn new_job(&mut self, key: JobKey, priority: i32, spec: Spec) -> Job {
        let (lane, seq) = (self.lane(&key.namespace, &spec.tags), self.next_seq());
        Job { key, lane, priority, seq, state: State::Blocked, due: None, spec: Arc::new(spec), live: Live::default() }
    }

    /// Jobs that come together mostly share a lane, and each time it is worked out costs a cryptographic hash.
    fn lane(&mut self, namespace: &Namespace, tags: &Tags) -> Lane {
        match &self.lane {
            Some((last, same, lane)) if last == namespace && same == tags => *lane,
            _ => self.lane.insert((namespace.clone(), tags.clone(), Lane::of(namespace, tags))).2,
        }
    }

    /// A number that is random to others but the same whenever this batch is decided again.
    pub(crate) fn draw(&mut self) -> u64 {
        self.draws += 1;
        mix(self.seed ^ self.draws.rotate_left(32))
    }

    pub(crate) fn draw_job_id(&mut self) -> JobId {
        let random = (u128::from(self.draw()) << 64) | u128::from(self.draw());
        let millis = (self.now.0.max(0) as u128 & 0xffff_ffff_ffff) << 80;
        let bits =
            millis | (0x7 << 76) | ((random >> 52) & 0xfff) << 64 | (0b10 << 62) | (random & 0x3fff_ffff_ffff_ffff);
        JobId(Uuid::from_u128(bits))
    }
}
