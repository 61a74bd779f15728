//! Who may claim what, in which order: the reference for every store's claim query.

use crate::model::{
    job::{Job, State},
    keys::HeadQuery,
};

/// Lower priority first, then strict submission order.
pub fn order(job: &Job) -> (i32, i64) {
    (job.priority, job.seq)
}

/// Whether this offer may claim this job.
pub fn fits(job: &Job, query: &HeadQuery) -> bool {
    job.state == State::Pending && job.key.namespace == query.namespace && job.spec.tags.subset_of(&query.offered)
}

/// The first `max` jobs of two lists that are each in claim order.
pub fn merge<'a>(a: impl Iterator<Item = &'a Job>, b: impl Iterator<Item = &'a Job>, max: usize) -> Vec<Job> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    let mut merged = Vec::new();
    while merged.len() < max {
        let next = match (a.peek(), b.peek()) {
            (Some(left), Some(right)) if order(left) <= order(right) => a.next(),
            (_, Some(_)) => b.next(),
            _ => a.next(),
        };
        match next {
            Some(job) => merged.push(job.clone()),
            None => break,
        }
    }
    merged
}

/// What a claim query must answer, written the plain way.
pub fn heads<'a>(jobs: impl Iterator<Item = &'a Job>, query: &HeadQuery, max: usize) -> Vec<&'a Job> {
    let mut fitting: Vec<&Job> = jobs.filter(|job| fits(job, query)).collect();
    fitting.sort_by_key(|job| order(job));
    fitting.truncate(max);
    fitting
}
