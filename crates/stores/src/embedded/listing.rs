//! Lists and counts jobs: chooses the index that fits the question, then looks at the rows it names.

use super::{failure::Result, rows};
use rusqlite::{Connection, Params};
use windlass_core::{Job, JobId, JobKey, Namespace, State};
use windlass_engine::store::{JobQuery, QUEUES_MAX};

/// Pending and held jobs have no index by id. Up to so many are gathered and sorted; beyond that the table is walked.
const GATHER_MAX: usize = 10_000;

pub(super) const LIST_ALL: &str = include_str!("sql/list_all.sql");
pub(super) const LIST_RARE: &str = include_str!("sql/list_rare.sql");
pub(super) const LIST_PENDING: &str = include_str!("sql/list_pending.sql");
pub(super) const LIST_HELD: &str = include_str!("sql/list_held.sql");
pub(super) const LIST_RUN: &str = include_str!("sql/list_run.sql");
pub(super) const LIST_HOLDER: &str = include_str!("sql/list_holder.sql");
pub(super) const LIST_FACET: &str = include_str!("sql/list_facet.sql");
pub(super) const LIST_NAME: &str = include_str!("sql/list_name.sql");
pub(super) const LANE_AHEAD: &str = include_str!("sql/lane_ahead.sql");
pub(super) const QUEUE_NEXT: &str = include_str!("sql/queue_next.sql");
pub(super) const NAMESPACE_NEXT: &str = include_str!("sql/namespace_next.sql");

pub(super) fn jobs(connection: &Connection, query: &JobQuery) -> Result<Vec<Job>> {
    let mut found = Vec::new();
    for namespace in namespaces(connection, query)? {
        found.extend(Listing::new(connection, query, &namespace).jobs()?);
    }
    query.sort(&mut found);
    found.truncate(query.limit);
    Ok(found)
}

pub(super) fn count(connection: &Connection, query: &JobQuery, max: usize) -> Result<usize> {
    let mut count = 0;
    for namespace in namespaces(connection, query)? {
        count += Listing::new(connection, query, &namespace).count(max - count)?;
    }
    Ok(count)
}

pub(super) fn ahead(connection: &Connection, job: &Job, max: usize) -> Result<usize> {
    let mut statement = connection.prepare_cached(LANE_AHEAD)?;
    let lane = rows::lane_bytes(job.lane);
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let params = (job.key.namespace.as_str(), lane, job.priority, job.seq, max);
    let mut rows = statement.query(params)?;
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// The smallest priority above one, for the same reason as [`super::lanes::after`].
pub(super) fn after(priority: i64) -> i64 {
    priority.saturating_add(1)
}

/// Steps from queue to queue, however many jobs they hold; numbers grow with each that is queued.
pub(super) fn oldest_pending(connection: &Connection) -> Result<Option<Job>> {
    let mut statement = connection.prepare_cached(QUEUE_NEXT)?;
    let mut place: (String, Vec<u8>, i64) = (String::new(), Vec::new(), i64::MIN);
    let mut oldest: Option<(i64, JobKey)> = None;
    for _ in 0..QUEUES_MAX {
        let mut rows = statement.query((&place.0, &place.1, place.2))?;
        let Some(row) = rows.next()? else { break };
        place = (row.get(0)?, row.get(1)?, after(row.get(2)?));
        let seq: i64 = row.get(3)?;
        if oldest.as_ref().is_none_or(|(known, _)| seq < *known) {
            oldest = Some((seq, JobKey::new(&rows::to_namespace(&place.0)?, rows::blob_id(row, 4)?)));
        }
    }
    oldest.map_or(Ok(None), |(_, key)| rows::load_job(connection, &key))
}

pub(super) fn queue_heads(connection: &Connection, namespace: &Namespace, limit: usize) -> Result<Vec<Job>> {
    let mut statement = connection.prepare_cached(QUEUE_NEXT)?;
    let mut place: (String, Vec<u8>, i64) = (namespace.to_string(), Vec::new(), i64::MIN);
    let mut heads: Vec<(i64, JobKey)> = Vec::new();
    for _ in 0..QUEUES_MAX {
        let mut rows = statement.query((&place.0, &place.1, place.2))?;
        let Some(row) = rows.next()? else { break };
        place = (row.get(0)?, row.get(1)?, after(row.get(2)?));
        if place.0 != namespace.as_str() {
            break;
        }
        heads.push((row.get(3)?, JobKey::new(namespace, rows::blob_id(row, 4)?)));
    }
    heads.sort_unstable_by_key(|(seq, _)| *seq);
    let loaded = heads.iter().take(limit).map(|(_, key)| rows::load_job(connection, key));
    loaded.filter_map(Result::transpose).collect()
}

fn namespaces(connection: &Connection, query: &JobQuery) -> Result<Vec<Namespace>> {
    if let Some(namespace) = &query.namespace {
        return Ok(vec![namespace.clone()]);
    }
    let mut found: Vec<Namespace> = Vec::new();
    let mut statement = connection.prepare_cached(NAMESPACE_NEXT)?;
    loop {
        let mut rows = statement.query([found.last().map_or("", Namespace::as_str)])?;
        let Some(row) = rows.next()? else { return Ok(found) };
        found.push(rows::to_namespace(rows::text(row, 0)?)?);
    }
}

/// One question about one namespace.
struct Listing<'a> {
    connection: &'a Connection,
    query: &'a JobQuery,
    namespace: &'a Namespace,
    /// A bit for each state that counts.
    mask: i64,
    /// No id above this counts.
    last: [u8; 16],
}

impl<'a> Listing<'a> {
    fn new(connection: &'a Connection, query: &'a JobQuery, namespace: &'a Namespace) -> Self {
        let bits = query.states.iter().fold(0, |mask, state| mask | 1 << state.code());
        let mask = if query.states.is_empty() { i64::MAX } else { bits };
        let last = query.before.as_ref().map_or([0xff; 16], |(_, id)| *id.as_bytes());
        Self { connection, query, namespace, mask, last }
    }

    fn jobs(&self) -> Result<Vec<Job>> {
        let mut found = Vec::new();
        self.each(self.query.limit, |id| {
            let job = rows::load_job(self.connection, &JobKey::new(self.namespace, id))?;
            found.extend(job.filter(|job| self.query.fits(job)));
            Ok(found.len() < self.query.limit)
        })?;
        Ok(found)
    }

    fn count(&self, max: usize) -> Result<usize> {
        let query = self.query;
        let filters = [query.facet.is_some(), query.name.is_some(), query.run.is_some(), query.holder.is_some()];
        // The statement answers for the states and one more condition; only beyond that rows are looked at.
        let exact = query.before.is_none() && filters.into_iter().filter(|there| *there).count() < 2;
        let mut count = 0;
        self.each(max, |id| {
            let counts = exact
                || rows::load_job(self.connection, &JobKey::new(self.namespace, id))?
                    .is_some_and(|job| query.fits(&job));
            count += usize::from(counts && count < max);
            Ok(count < max)
        })?;
        Ok(count)
    }

    /// Calls `see` with ids, in the order of the query, until it has seen enough. `enough` is how many that will be at least.
    fn each(&self, enough: usize, mut see: impl FnMut(JobId) -> Result<bool>) -> Result<()> {
        if enough == 0 {
            return Ok(());
        }
        let (namespace, last, mask) = (self.namespace.as_str(), &self.last, self.mask);
        if let Some(name) = &self.query.name {
            return self.walk(LIST_NAME, (namespace, last, mask, &*name.prefix, name.last()), &mut see);
        }
        if let Some(run) = &self.query.run {
            return self.walk(LIST_RUN, (namespace, last, mask, run.as_bytes()), &mut see);
        }
        if let Some(holder) = &self.query.holder {
            return self.walk(LIST_HOLDER, (namespace, last, mask, holder.as_str()), &mut see);
        }
        if let Some(facet) = &self.query.facet {
            return self.walk(LIST_FACET, (namespace, last, mask, &*facet.name, &*facet.value), &mut see);
        }
        match self.gather(enough)? {
            Some(ids) => {
                for id in ids {
                    if !see(id)? {
                        break;
                    }
                }
                Ok(())
            }
            None => self.walk(LIST_ALL, (namespace, last, mask), &mut see),
        }
    }

    fn walk(&self, sql: &str, params: impl Params, see: &mut impl FnMut(JobId) -> Result<bool>) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            if !see(rows::blob_id(row, 0)?)? {
                break;
            }
        }
        Ok(())
    }

    /// The ids of all jobs in states that are indexed, as far as they can matter. None: better walk the table.
    fn gather(&self, enough: usize) -> Result<Option<Vec<JobId>>> {
        let wants = |state: State| self.mask >> state.code() & 1 == 1;
        if wants(State::Completed) {
            return Ok(None);
        }
        let namespace = self.namespace.as_str();
        let mut ids = Vec::new();
        let mut keep = |id| {
            ids.push(id);
            Ok(true)
        };
        // With `before`, the first one may be the one that was seen last.
        let limit = i64::try_from(enough).unwrap_or(i64::MAX).saturating_add(1);
        for state in [State::Blocked, State::Scheduled, State::Failed, State::Cancelled, State::Skipped] {
            if wants(state) {
                self.walk(LIST_RARE, (namespace, &self.last, state.code(), limit), &mut keep)?;
            }
        }
        let gather_max = GATHER_MAX as i64;
        let before = ids.len();
        let mut keep = |id| {
            ids.push(id);
            Ok(true)
        };
        if wants(State::Pending) {
            self.walk(LIST_PENDING, (namespace, gather_max), &mut keep)?;
        }
        if wants(State::Claimed) || wants(State::Running) {
            self.walk(LIST_HELD, (namespace, gather_max, self.mask), &mut keep)?;
        }
        if ids.len() - before >= GATHER_MAX {
            return Ok(None);
        }
        ids.retain(|id| id.as_bytes() <= &self.last);
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Some(ids))
    }
}
