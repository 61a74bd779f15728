//! From keys to rows: every kind of key is one statement, and all of them share a round trip.
//!
//! Locks are taken in one order as far as the keys are known: records, then jobs, both sorted; the fronts of lanes last, and
//! those without waiting.

use super::{
    ahead::{self, Ahead},
    columns::READ_COUNT,
    connection::Connection,
    failure::Failure,
    heads,
    known::Known,
    lanes::Lanes,
    pipe::{Sent, send},
    rows::{Names, payload, uuid_of},
    spot::Spots,
    statements::Sql,
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio_postgres::Row;
use uuid::Uuid;
use windlass_core::{
    Access, ChildrenFrom, Facet, Head, HeadQuery, Job, JobId, JobKey, Keys, Lane, Namespace, Record, RecordKey, Rows,
    RunId, State, WorkerId, WorkerKey, select,
};

/// Bytes of a record that is remembered although no claim looked at it.
const SMALL: usize = 2 << 10;

type RowsSent<'a> = Option<Sent<'a, Result<Vec<Row>, Failure>>>;
type Heads<'a> = Sent<'a, Result<Vec<Head>, Failure>>;

/// Loads within one transaction, and remembers what the writing half needs to know of the rows that were there.
pub struct Loader<'a> {
    pub connection: &'a Connection,
    pub lanes: &'a Lanes,
    pub known: &'a Known,
    pub ahead: &'a Ahead,
    /// What claims will want after this batch.
    pub next: Option<(HeadQuery, Vec<Head>)>,
    pub facets: HashMap<RecordKey, Vec<Facet>>,
    /// Where the jobs that are locked stand.
    pub spots: Spots,
    /// Look whether the ids of new jobs are taken. Otherwise that is found out when they are written.
    pub wary: bool,
    /// Ids that were taken as free without a look.
    pub assumed_new: BTreeSet<JobKey>,
    /// How often an answer was waited for.
    pub flights: &'a AtomicU64,
}

impl<'a> Loader<'a> {
    pub async fn load(&mut self, keys: &Keys) -> Result<Rows, Failure> {
        let connection = self.connection;
        self.flights.fetch_add(1, Ordering::Relaxed);
        let locked = records(connection, Sql::LockRecords, keys, Access::Write);
        let shared = records(connection, Sql::ShareRecords, keys, Access::Share);
        let peeked = records(connection, Sql::PeekRecords, keys, Access::Look);
        let siblings = siblings(connection, keys);
        let mut wanted: BTreeSet<JobKey> = keys.jobs.clone();
        match self.wary {
            true => wanted.extend(keys.new_jobs.iter().cloned()),
            false => self.assumed_new.extend(keys.new_jobs.difference(&keys.jobs).cloned()),
        }
        let jobs = by_job(connection, Sql::LockJobs, &wanted);
        let payloads = by_job(connection, Sql::Payloads, &keys.payloads);
        let related = Related::send(connection, keys);
        let heads: Vec<_> = keys
            .heads
            .iter()
            .map(|(query, &count)| match keys.glances.contains(query) {
                true => send(heads::glance(connection, self.lanes, query, count)),
                false => send(heads::first_look(connection, self.lanes, query, count)),
            })
            .collect();
        let next = self.send_ahead(keys);

        let mut rows = Rows::default();
        let mut names = Names::default();
        for sent in [locked, shared, peeked] {
            for row in answer(sent).await? {
                let record = names.record(&row)?;
                if !record.facets.is_empty() {
                    self.facets.insert(record.key.clone(), record.facets.clone());
                }
                rows.records.push(record);
            }
        }
        // Of workers that claim, and of what callers were admitted with: what the next batch looks at, too.
        let looks = |record: &&Record| keys.records.get(&record.key) == Some(&Access::Look);
        let again = |record: &&Record| !keys.heads.is_empty() || record.value.len() <= SMALL;
        self.known.saw(rows.records.iter().filter(looks).filter(again).cloned());
        read_siblings(&mut names, &mut rows, answer(siblings).await?)?;
        self.add_locked(&mut names, &mut rows.jobs, &answer(jobs).await?)?;
        for row in answer(payloads).await? {
            rows.payloads.insert(names.key(&row)?, payload(&row, 2)?);
        }
        related.read(&mut names, &mut rows).await?;
        // All that was sent is read before more is: a long answer that nobody reads holds up those behind it.
        let mut looks = Vec::with_capacity(heads.len());
        for sent in heads {
            looks.push(sent.await?);
        }
        if let Some((query, next)) = next {
            self.next = Some((query, next.await?));
        }
        let related = self.lock_related(&wanted, &mut names, &mut rows).await?;
        wanted.extend(related);
        self.lock_done(&wanted, &mut names, &mut rows).await?;
        check_related(&mut rows)?;
        for (looked, (query, &count)) in looks.into_iter().zip(&keys.heads) {
            let glances = keys.glances.contains(query);
            if !glances {
                self.ahead.looked(query, looked.found() >= count);
            }
            let glanced = if glances { looked.glanced() } else { Err(looked) };
            let mut found = match glanced {
                Ok(found) => found,
                Err(looked) => {
                    heads::look_until_enough(connection, self.lanes, query, count, looked, self.flights).await?
                }
            };
            found.sort_by_key(|(head, _)| select::order(&head.job));
            self.spots.extend(found.iter().map(|(head, spot)| (head.job.key.clone(), *spot)));
            rows.heads.insert(query.clone(), found.into_iter().map(|(head, _)| head).collect());
        }
        Ok(rows)
    }

    /// What the claims after these will want, if one offer is all there is to it.
    fn send_ahead(&self, keys: &Keys) -> Option<(HeadQuery, Heads<'a>)> {
        let mut queries = keys.heads.iter();
        let (Some((query, &count)), None) = (queries.next(), queries.next()) else { return None };
        let lanes = self.lanes.serving(query);
        let limit = self.ahead.limit(query, count, lanes.len())?;
        let (connection, asked) = (self.connection, query.clone());
        let sent = send(async move { ahead::read(connection, &asked, &lanes, limit).await });
        Some((query.clone(), sent))
    }

    /// Unfinished jobs among those that were named by what was just read; gives all that were named.
    async fn lock_related(
        &mut self,
        known: &BTreeSet<JobKey>,
        names: &mut Names,
        rows: &mut Rows,
    ) -> Result<BTreeSet<JobKey>, Failure> {
        let lists = rows.children.values().chain(rows.held.values()).chain(rows.run_jobs.values());
        let listed = lists.chain(rows.key_queue.values()).flatten();
        let more: BTreeSet<JobKey> = listed.filter(|key| !known.contains(key)).cloned().collect();
        if more.is_empty() {
            return Ok(more);
        }
        self.flights.fetch_add(1, Ordering::Relaxed);
        let jobs = answer(by_job(self.connection, Sql::LockJobs, &more)).await?;
        self.add_locked(names, &mut rows.jobs, &jobs)?;
        Ok(more)
    }

    /// The rest, most often none, may be finished. A statement after the one that looked for unfinished jobs, since a job
    /// may have been moved while that one waited for it.
    async fn lock_done(&self, wanted: &BTreeSet<JobKey>, names: &mut Names, rows: &mut Rows) -> Result<(), Failure> {
        if rows.jobs.len() >= wanted.len() {
            return Ok(());
        }
        let found: HashSet<&JobKey> = rows.jobs.iter().map(|job| &job.key).collect();
        let missing: BTreeSet<JobKey> = wanted.iter().filter(|key| !found.contains(key)).cloned().collect();
        self.flights.fetch_add(1, Ordering::Relaxed);
        let done = answer(by_job(self.connection, Sql::LockDone, &missing)).await?;
        for row in &done {
            rows.jobs.push(names.job(row)?);
        }
        Ok(())
    }

    fn add_locked(&mut self, names: &mut Names, jobs: &mut Vec<Job>, rows: &[Row]) -> Result<(), Failure> {
        for row in rows {
            let job = names.job(row)?;
            self.spots.insert(job.key.clone(), row.try_get(READ_COUNT)?);
            jobs.push(job);
        }
        Ok(())
    }
}

/// Lists were read before the rows in them were locked; what changed in between is left out, or decided again.
fn check_related(rows: &mut Rows) -> Result<(), Failure> {
    let current: HashMap<&JobKey, &Job> = rows.jobs.iter().map(|job| (&job.key, job)).collect();
    let open = |key: &JobKey| current.get(key).is_some_and(|job| !job.state.is_final());
    rows.run_jobs.values_mut().for_each(|list| list.retain(|key| open(key)));
    let held = |key: &JobKey| current.get(key).is_some_and(|job| job.state.is_held());
    rows.held.values_mut().for_each(|list| list.retain(|key| held(key)));
    // The front of a key's queue must not be shorter than asked only because somebody just took a job from it.
    let moved = |key: &JobKey| current.get(key).is_none_or(|job| job.state != State::Blocked);
    match rows.key_queue.values().flatten().any(moved) {
        true => Err(Failure::Conflict("a job that waited for a concurrency key was changed meanwhile".into())),
        false => Ok(()),
    }
}

pub async fn answer(sent: RowsSent<'_>) -> Result<Vec<Row>, Failure> {
    match sent {
        Some(sent) => sent.await,
        None => Ok(Vec::new()),
    }
}

fn by_job<'a>(connection: &'a Connection, sql: Sql, keys: &BTreeSet<JobKey>) -> RowsSent<'a> {
    by_id(connection, sql, keys.iter().map(|key| (key.namespace.clone(), key.id.0)))
}

fn by_id<'a>(connection: &'a Connection, sql: Sql, keys: impl Iterator<Item = (Namespace, Uuid)>) -> RowsSent<'a> {
    let (namespaces, ids): (Vec<Namespace>, Vec<Uuid>) = keys.unzip();
    if ids.is_empty() {
        return None;
    }
    Some(send(async move {
        let namespaces: Vec<&str> = namespaces.iter().map(Namespace::as_str).collect();
        connection.query(sql, &[&namespaces, &ids]).await
    }))
}

fn records<'a>(connection: &'a Connection, sql: Sql, keys: &Keys, access: Access) -> RowsSent<'a> {
    let keys = keys.records.iter().filter(|(_, wanted)| **wanted == access);
    by_texts(connection, sql, keys.map(|(key, _)| (key.namespace.clone(), key.kind.clone(), key.key.clone())).collect())
}

fn siblings<'a>(connection: &'a Connection, keys: &Keys) -> RowsSent<'a> {
    by_texts(connection, Sql::Siblings, keys.siblings.iter().cloned().collect())
}

fn by_texts<'a>(connection: &'a Connection, sql: Sql, mut keys: Vec<(Namespace, Arc<str>, Arc<str>)>) -> RowsSent<'a> {
    // PostgreSQL cannot even look for a text with a NUL in it, so it cannot hold one either.
    keys.retain(|key| !key.1.contains('\0') && !key.2.contains('\0'));
    if keys.is_empty() {
        return None;
    }
    Some(send(async move {
        let namespaces: Vec<&str> = keys.iter().map(|key| key.0.as_str()).collect();
        let firsts: Vec<&str> = keys.iter().map(|key| &*key.1).collect();
        let seconds: Vec<&str> = keys.iter().map(|key| &*key.2).collect();
        connection.query(sql, &[&namespaces, &firsts, &seconds]).await
    }))
}

fn read_siblings(names: &mut Names, rows: &mut Rows, found: Vec<Row>) -> Result<(), Failure> {
    for row in found {
        let namespace = names.get(row.try_get(0)?)?;
        let text = |at: usize| row.try_get::<_, &str>(at).map(Arc::<str>::from);
        let (kind, parent) = (text(1)?, text(2)?);
        let key = RecordKey { namespace: namespace.clone(), kind: kind.clone(), key: text(3)? };
        rows.siblings.entry((namespace, kind, parent)).or_default().push(key);
    }
    Ok(())
}

/// The lists of jobs that are found by something other than their id.
struct Related<'a> {
    children: RowsSent<'a>,
    held: RowsSent<'a>,
    run_jobs: RowsSent<'a>,
    key_queue: RowsSent<'a>,
    lane_fronts: RowsSent<'a>,
}

impl<'a> Related<'a> {
    fn send(connection: &'a Connection, keys: &Keys) -> Self {
        Self {
            children: children(connection, keys),
            held: held(connection, keys.held.iter().cloned().collect()),
            run_jobs: by_id(connection, Sql::RunJobs, keys.run_jobs.iter().map(|(ns, run)| (ns.clone(), run.0))),
            key_queue: key_queue(connection, keys),
            lane_fronts: lane_fronts(connection, keys),
        }
    }

    async fn read(self, names: &mut Names, rows: &mut Rows) -> Result<(), Failure> {
        for row in answer(self.children).await? {
            let parent = names.key(&row)?;
            let child = JobKey::new(&parent.namespace, JobId(row.try_get(3)?));
            let at = ChildrenFrom { parent, first: JobId(row.try_get(2)?) };
            rows.children.entry(at).or_default().push(child);
        }
        for row in answer(self.held).await? {
            let namespace = names.get(row.try_get(0)?)?;
            let job = JobKey::new(&namespace, JobId(row.try_get(2)?));
            let worker = WorkerId::trusted(row.try_get(1)?);
            rows.held.entry(WorkerKey { namespace, worker }).or_default().push(job);
        }
        for row in answer(self.run_jobs).await? {
            let namespace = names.get(row.try_get(0)?)?;
            let job = JobKey::new(&namespace, JobId(row.try_get(2)?));
            rows.run_jobs.entry((namespace, RunId(row.try_get(1)?))).or_default().push(job);
        }
        for row in answer(self.key_queue).await? {
            let namespace = names.get(row.try_get(0)?)?;
            let job = JobKey::new(&namespace, JobId(row.try_get(2)?));
            rows.key_queue.entry((namespace, row.try_get::<_, &str>(1)?.into())).or_default().push(job);
        }
        for row in answer(self.lane_fronts).await? {
            let namespace = names.get(row.try_get(0)?)?;
            let job = JobKey::new(&namespace, JobId(row.try_get(2)?));
            let lane = Lane(row.try_get::<_, Uuid>(1)?.as_u128());
            rows.lane_fronts.entry((namespace, lane)).or_default().push(job);
        }
        Ok(())
    }
}

fn lane_fronts<'a>(connection: &'a Connection, keys: &Keys) -> RowsSent<'a> {
    if keys.lane_fronts.is_empty() {
        return None;
    }
    let fronts: Vec<((Namespace, Lane), usize)> = keys.lane_fronts.iter().map(|(at, &n)| (at.clone(), n)).collect();
    Some(send(async move {
        let namespaces: Vec<&str> = fronts.iter().map(|((namespace, _), _)| namespace.as_str()).collect();
        let lanes: Vec<Uuid> = fronts.iter().map(|((_, lane), _)| uuid_of(*lane)).collect();
        let counts: Vec<i64> = fronts.iter().map(|(_, count)| *count as i64).collect();
        connection.query(Sql::LaneFronts, &[&namespaces, &lanes, &counts]).await
    }))
}

fn children<'a>(connection: &'a Connection, keys: &Keys) -> RowsSent<'a> {
    if keys.children.is_empty() {
        return None;
    }
    let asked: Vec<(ChildrenFrom, usize)> = keys.children.iter().map(|(at, &count)| (at.clone(), count)).collect();
    Some(send(async move {
        let namespaces: Vec<&str> = asked.iter().map(|(at, _)| at.parent.namespace.as_str()).collect();
        let parents: Vec<Uuid> = asked.iter().map(|(at, _)| at.parent.id.0).collect();
        let firsts: Vec<Uuid> = asked.iter().map(|(at, _)| at.first.0).collect();
        let counts: Vec<i64> = asked.iter().map(|(_, count)| i64::try_from(*count).unwrap_or(i64::MAX)).collect();
        connection.query(Sql::Children, &[&namespaces, &parents, &firsts, &counts]).await
    }))
}

fn held(connection: &Connection, keys: Vec<WorkerKey>) -> RowsSent<'_> {
    if keys.is_empty() {
        return None;
    }
    Some(send(async move {
        let namespaces: Vec<&str> = keys.iter().map(|key| key.namespace.as_str()).collect();
        let workers: Vec<&str> = keys.iter().map(|key| key.worker.as_str()).collect();
        connection.query(Sql::Held, &[&namespaces, &workers]).await
    }))
}

fn key_queue<'a>(connection: &'a Connection, keys: &Keys) -> RowsSent<'a> {
    if keys.key_queue.is_empty() {
        return None;
    }
    let queues: Vec<((Namespace, Arc<str>), usize)> = keys.key_queue.iter().map(|(at, &n)| (at.clone(), n)).collect();
    Some(send(async move {
        let namespaces: Vec<&str> = queues.iter().map(|((namespace, _), _)| namespace.as_str()).collect();
        let names: Vec<&str> = queues.iter().map(|((_, key), _)| &**key).collect();
        let counts: Vec<i64> = queues.iter().map(|(_, count)| *count as i64).collect();
        connection.query(Sql::KeyQueue, &[&namespaces, &names, &counts]).await
    }))
}
