//! Pages of lists. How many rows a page has is the caller's to say; how many bytes is not: a page ends early where its rows are
//! large, and `next` goes on from there.

use crate::{app::App, problem::Result};
use windlass_core::{Job, Record};
use windlass_engine::store::{JobQuery, RecordQuery};

/// Bytes of rows after which a page ends.
pub const BYTES_MAX: usize = 4 << 20;
/// Rows read at a time, each of which may be as large as a row can be: few at first, then more.
const FIRST: usize = 4;
const STEP_MAX: usize = 64;

/// The rows, and what the next page begins after.
pub async fn records(app: &App, mut query: RecordQuery) -> Result<(Vec<Record>, Option<String>)> {
    let _turn = app.lists.acquire().await;
    let (mut page, limit) = (Page::new(), query.limit);
    loop {
        query.limit = page.step(limit);
        let found = app.engine.store().records(&query).await?;
        query.after = found.last().map(|record| record.key.key.clone());
        let is_last = found.len() < query.limit;
        if page.add(found, |record| record.value.len()) >= limit || page.is_full() || is_last {
            return Ok((page.rows, query.after.filter(|_| !is_last).map(|key| key.to_string())));
        }
    }
}

/// The rows, and whether there may be more after them.
pub async fn jobs(app: &App, mut query: JobQuery) -> Result<(Vec<Job>, bool)> {
    let _turn = app.lists.acquire().await;
    let (mut page, limit) = (Page::new(), query.limit);
    loop {
        query.limit = page.step(limit);
        let found = app.engine.store().jobs(&query).await?;
        found.last().inspect(|last| query.go_on_after(last));
        let is_last = found.len() < query.limit;
        if page.add(found, weight) >= limit || page.is_full() || is_last {
            return Ok((page.rows, !is_last));
        }
    }
}

/// What callers can make large about a job beside its payload and its result.
fn weight(job: &Job) -> usize {
    let (spec, live) = (&job.spec, &job.live);
    spec.tags.bytes()
        + spec.extra.as_ref().map_or(0, |extra| extra.len())
        + live.outcome.as_ref().map_or(0, |outcome| outcome.message.len())
        + live.progress.as_ref().map_or(0, |progress| progress.message.len())
}

struct Page<T> {
    rows: Vec<T>,
    bytes: usize,
}

impl<T> Page<T> {
    fn new() -> Self {
        Self { rows: Vec::new(), bytes: 0 }
    }

    fn step(&self, limit: usize) -> usize {
        (FIRST + 3 * self.rows.len()).min(STEP_MAX).min(limit - self.rows.len())
    }

    fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    fn add(&mut self, rows: Vec<T>, weight: impl Fn(&T) -> usize) -> usize {
        self.bytes += rows.iter().map(weight).sum::<usize>();
        self.rows.extend(rows);
        self.rows.len()
    }
}
