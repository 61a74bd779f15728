//! From a decision to statements: one for each table, all of them sent with the COMMIT behind them.
//!
//! Statements whose number of rows matters raise an error where it is wrong, and the COMMIT then finds a failed transaction
//! and writes nothing. That is why nobody has to wait for the answers in between.

use super::{
    claim_at_once::Claimed,
    columns::{Column, FINISH, INSERT, UPDATE, column, values},
    connection::Connection,
    failure::Failure,
    join_at_once::Joined,
    lanes::Lanes,
    pipe::{Sent, send},
    rows::uuid_of,
    spot::Spots,
    statements::Sql,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;
use windlass_core::{
    Attempt, Decision, Facet, Job, JobChange, JobKey, Namespace, Payload, Record, RecordChange, RecordKey, State,
    counts, select,
};

/// One statement, with a column of values for each parameter.
pub struct Write {
    sql: Sql,
    columns: Vec<Column>,
}

impl Write {
    pub fn send<'a>(self, connection: &'a Connection) -> Sent<'a, Result<u64, Failure>> {
        send(async move { connection.execute(self.sql, &params(&self.columns)).await })
    }

    /// The same, for a statement that answers.
    pub fn ask<'a>(self, connection: &'a Connection) -> Sent<'a, Result<Vec<Row>, Failure>> {
        send(async move { connection.query(self.sql, &params(&self.columns)).await })
    }
}

fn params(columns: &[Column]) -> Vec<&(dyn ToSql + Sync)> {
    columns.iter().map(|column| &**column as _).collect()
}

#[derive(Default)]
pub struct Writes(Vec<Write>);

impl Writes {
    fn add<T>(&mut self, sql: Sql, items: &[T], columns: impl FnOnce(&[T]) -> Vec<Column>) {
        if !items.is_empty() {
            self.0.push(Write { sql, columns: columns(items) });
        }
    }

    /// Everything but the events, which come last.
    pub fn of(
        decision: &Decision,
        facets: &HashMap<RecordKey, Vec<Facet>>,
        spots: &Spots,
        lanes: &Lanes,
    ) -> Vec<Write> {
        let mut writes = Writes::default();
        writes.lanes(decision, lanes);
        writes.records(&decision.records, facets);
        writes.jobs(decision, spots);
        writes.parts(decision);
        writes.0
    }

    fn lanes(&mut self, decision: &Decision, lanes: &Lanes) {
        self.add(Sql::ConfirmLanes, &lanes.to_confirm(&decision.wakes), |wakes| {
            vec![
                column(wakes, |wake| wake.namespace.to_string()),
                column(wakes, |wake| uuid_of(wake.lane)),
                column(wakes, |wake| json(&wake.tags)),
            ]
        });
    }

    fn records(&mut self, changes: &[RecordChange], facets: &HashMap<RecordKey, Vec<Facet>>) {
        let mut changes: Vec<&RecordChange> = changes.iter().collect();
        changes.sort_by(|a, b| a.key.cmp(&b.key));
        let (mut inserts, mut updates, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for change in &changes {
            match (&change.new, change.old_version) {
                (Some(new), None) => inserts.push(new),
                (Some(new), Some(old)) => updates.push((new, old as i64)),
                (None, Some(old)) => deletes.push((&change.key, old as i64)),
                (None, None) => {}
            }
        }
        self.add(Sql::InsertRecords, &inserts, |records| record_columns(records, |record| record));
        self.add(Sql::UpdateRecords, &updates, |records| {
            let mut columns = record_columns(records, |(record, _)| record);
            columns.push(column(records, |(_, old)| *old));
            columns
        });
        self.add(Sql::DeleteRecords, &deletes, |keys| {
            vec![
                column(keys, |(key, _)| key.namespace.to_string()),
                column(keys, |(key, _)| key.kind.to_string()),
                column(keys, |(key, _)| key.key.to_string()),
                column(keys, |(_, old)| *old),
            ]
        });
        self.record_facets(&changes, facets);
    }

    /// Only what differs is touched: most records have no facets, and those that have keep them.
    fn record_facets(&mut self, changes: &[&RecordChange], before: &HashMap<RecordKey, Vec<Facet>>) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for change in changes {
            let old = before.get(&change.key).map_or(&[][..], |facets| facets);
            let now = change.new.as_ref().map_or(&[][..], |record| &record.facets);
            gone.extend(old.iter().filter(|facet| !now.contains(facet)).map(|facet| (&change.key, facet)));
            new.extend(now.iter().filter(|facet| !old.contains(facet)).map(|facet| (&change.key, facet)));
        }
        self.add(Sql::DeleteRecordFacets, &gone, record_facet_columns);
        self.add(Sql::InsertRecordFacets, &new, record_facet_columns);
    }

    fn jobs(&mut self, decision: &Decision, spots: &Spots) {
        let mut changes: Vec<_> = decision.jobs.iter().collect();
        changes.sort_by(|a, b| a.key().cmp(b.key()));
        let (mut inserts, mut updates, mut touches) = (Vec::new(), Vec::new(), Vec::new());
        let (mut finishes, mut corrections, mut removals, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for change in changes {
            match (&change.old, &change.new) {
                (None, Some(new)) => {
                    inserts.push(new);
                    // One that ends as it begins goes the same way as the others, so that its id is checked the same way.
                    finishes.extend(new.state.is_final().then_some(new));
                }
                (Some(old), Some(new)) => match (old.state.is_final(), new.state.is_final()) {
                    (false, false) if change.is_touch() => touches.push(new),
                    (false, false) => updates.push(new),
                    (false, true) => finishes.push(new),
                    (true, _) => corrections.push(new),
                },
                (Some(old), None) => {
                    removals.push(&old.key);
                    gone.extend(old.spec.index().map(|facet| (&old.key, facet)));
                }
                (None, None) => {}
            }
        }
        let facets = inserts.iter().flat_map(|job| job.spec.index().map(|facet| (&job.key, facet)));
        let facets: Vec<(&JobKey, (&str, &str))> = facets.collect();
        self.add(Sql::RemoveJobs, &removals, |keys| key_columns(keys, |key| key));
        self.add(Sql::DeleteJobFacets, &gone, job_facet_columns);
        self.add(Sql::InsertJobs, &inserts, |jobs| {
            values(INSERT, jobs).chain([payload_column(jobs, &Payloads::of(decision).small)]).collect()
        });
        self.add(Sql::CheckNotDone, &inserts, |jobs| key_columns(jobs, |job| &job.key));
        self.add(Sql::InsertJobFacets, &facets, job_facet_columns);
        self.add(Sql::UpdateJobs, &updates, |jobs| {
            spot_columns(jobs, spots).into_iter().chain(values(UPDATE, jobs)).collect()
        });
        self.add(Sql::TouchJobs, &touches, |jobs| {
            let mut columns = spot_columns(jobs, spots);
            columns.push(column(jobs, |job| json(&job.live)));
            columns
        });
        self.finish(decision, &finishes, spots);
        self.add(Sql::UpdateDone, &corrections, final_columns);
        self.marks(decision);
    }

    /// Nothing may be pending below a lane's mark. After the jobs: see `marks`.
    fn marks(&mut self, decision: &Decision) {
        let queued = decision.jobs.iter().filter_map(|change| change.new.as_ref());
        let mut fronts: BTreeMap<(&Namespace, Uuid), (i32, i64)> = BTreeMap::new();
        for job in queued.filter(|job| job.state == State::Pending) {
            let place = (job.priority, job.seq);
            fronts.entry((&job.key.namespace, uuid_of(job.lane))).and_modify(|f| *f = place.min(*f)).or_insert(place);
        }
        let fronts: Vec<_> = fronts.into_iter().collect();
        // Seen before they are locked, marks may be out of date; seen after, they are not.
        for sql in [Sql::LockMarks, Sql::LowerMarks] {
            self.add(sql, &fronts, |fronts| {
                vec![
                    column(fronts, |((namespace, _), _)| namespace.to_string()),
                    column(fronts, |((_, lane), _)| *lane),
                    column(fronts, |(_, (priority, _))| *priority),
                    column(fronts, |(_, (_, seq))| *seq),
                ]
            });
        }
    }

    fn finish(&mut self, decision: &Decision, finishes: &[&Job], spots: &Spots) {
        self.add(Sql::FinishJobs, finishes, |jobs| {
            let mut columns = end_columns(decision, jobs);
            columns.push(column(jobs, |job| spots.get(&job.key).copied()));
            columns.extend(values(FINISH, jobs));
            columns
        });
    }

    fn parts(&mut self, decision: &Decision) {
        let mut apart: Vec<(&JobKey, &Payload)> = Payloads::of(decision).apart.into_iter().collect();
        apart.sort_by_key(|(key, _)| *key);
        self.add(Sql::InsertPayloads, &apart, |payloads| {
            let mut columns = key_columns(payloads, |(key, _)| key);
            columns.push(column(payloads, |(_, data)| data.as_bytes().to_vec()));
            columns
        });
        self.add(Sql::InsertAttempts, &earlier_attempts(decision), |attempts| {
            let mut columns = key_columns(attempts, |(key, _)| key);
            columns.push(column(attempts, |(_, attempt)| attempt.number as i32));
            columns.push(column(attempts, |(_, attempt)| json(attempt)));
            columns
        });
        self.add(Sql::InsertEdges, &decision.edges, |edges| {
            let mut columns = key_columns(edges, |(parent, _)| parent);
            columns.push(column(edges, |(_, child)| child.id.0));
            columns
        });
        self.add(Sql::InsertLogs, &decision.logs, |logs| {
            let mut columns = key_columns(logs, |append| &append.job);
            columns.push(column(logs, |append| append.piece as i64));
            columns.push(column(logs, |append| append.attempt as i32));
            columns.push(column(logs, |append| append.at.0));
            columns.push(column(logs, |append| append.data.as_bytes().to_vec()));
            columns.push(column(logs, |append| append.form.code()));
            columns
        });
        self.add(Sql::DropLogs, &decision.log_drops, |drops| {
            let mut columns = key_columns(drops, |gone| &gone.job);
            columns.push(column(drops, |gone| gone.first as i64));
            columns.push(column(drops, |gone| gone.last as i64));
            columns
        });
    }
}

/// All but the last of jobs that are finished.
pub fn earlier_attempts(decision: &Decision) -> Vec<&(JobKey, Attempt)> {
    let is_final = |job: &Job| job.state.is_final();
    let ends =
        |change: &&JobChange| change.new.as_ref().is_some_and(is_final) && !change.old.as_ref().is_some_and(is_final);
    let ended = decision.jobs.iter().filter(ends);
    let mut ended: HashSet<&JobKey> = ended.map(|change| change.key()).collect();
    let mut earlier: Vec<_> = decision.attempts.iter().rev().filter(|(key, _)| !ended.remove(key)).collect();
    earlier.reverse();
    earlier
}

/// The result and the last attempt go along with the job.
fn end_columns(decision: &Decision, jobs: &[&Job]) -> Vec<Column> {
    let results: HashMap<&JobKey, &Payload> = decision.results.iter().map(|(key, result)| (key, result)).collect();
    let attempts: HashMap<&JobKey, &Attempt> = decision.attempts.iter().map(|(key, last)| (key, last)).collect();
    let mut columns = key_columns(jobs, |job| &job.key);
    columns.push(column(jobs, |job| results.get(&job.key).map(|result| result.as_bytes().to_vec())));
    columns.push(column(jobs, |job| attempts.get(&job.key).map(json)));
    columns
}

/// The events behind everything else; within the last statement where there is one that takes them along.
pub fn tell(writes: &mut Vec<Write>, decision: &Decision, now: i64, batch: Uuid) {
    if decision.events.is_empty() {
        writes.extend(counts(decision));
    }
    let events = event_columns(decision, now, batch);
    match &mut writes[..] {
        [only] if only.sql == Sql::UpdateJobs => {
            only.sql = Sql::UpdateAndTell;
            only.columns.extend(events);
        }
        _ => writes.push(Write { sql: Sql::InsertEvents, columns: events }),
    }
}

fn event_columns(decision: &Decision, now: i64, batch: Uuid) -> Vec<Column> {
    vec![
        Box::new(now),
        Box::new(decision.events.len() as i32),
        Box::new(batch),
        Box::new(json(&decision.events)),
        Box::new(counted(decision)),
    ]
}

/// What a batch that was decided without a look is checked by.
#[derive(Clone, Copy)]
pub struct Unlooked {
    pub batch: Uuid,
    pub now: i64,
    /// What the database's clock should say.
    pub clock: Option<i64>,
}

/// The ends of jobs, each of which must still be as it was known, and the events; so must the records that were looked at. `alone`:
/// there is no other statement.
pub fn finish_known(decision: &Decision, looked: &[(RecordKey, u64)], by: Unlooked, alone: bool) -> Write {
    let mut ends: Vec<&JobChange> = decision.jobs.iter().filter(|change| change.old.is_some()).collect();
    ends.sort_by(|a, b| a.key().cmp(b.key()));
    let old: Vec<&Job> = ends.iter().filter_map(|change| change.old.as_ref()).collect();
    let new: Vec<&Job> = ends.iter().filter_map(|change| change.new.as_ref()).collect();
    let mut columns = end_columns(decision, &new);
    columns.extend(values(FINISH, &new));
    columns.extend(values(FINISH, &old));
    columns.push(Box::new(by.clock));
    columns.push(Box::new((!alone).then(|| by.batch.to_string())));
    columns.extend(event_columns(decision, by.now, by.batch));
    columns.extend(version_columns(looked));
    Write { sql: Sql::FinishKnown, columns }
}

/// Claims, whose jobs must be the front of the lanes and as they were known, and the events.
pub fn claim_known(decision: &Decision, claimed: &Claimed, by: Unlooked) -> Write {
    let mut changes: Vec<&JobChange> = decision.jobs.iter().collect();
    changes.sort_by_key(|change| change.old.as_ref().map(select::order));
    let old: Vec<&Job> = changes.iter().filter_map(|change| change.old.as_ref()).collect();
    let new: Vec<&Job> = changes.iter().filter_map(|change| change.new.as_ref()).collect();
    let mut columns: Vec<Column> = vec![
        Box::new(claimed.query.namespace.to_string()),
        Box::new(claimed.lanes.to_vec()),
        Box::new(new.len() as i64),
        column(&new, |job| job.key.id.0),
    ];
    columns.extend(values(UPDATE, &new));
    columns.extend(values(FINISH, &old));
    columns.extend(version_columns(&claimed.records));
    columns.push(Box::new(by.clock));
    columns.extend(event_columns(decision, by.now, by.batch));
    let sql = if claimed.lanes.len() == 1 { Sql::ClaimKnownOne } else { Sql::ClaimKnown };
    Write { sql, columns }
}

/// What waiting claims were decided by is still so.
pub fn check_nothing_waits(joined: &Joined, by: Unlooked) -> Write {
    let mut columns: Vec<Column> = vec![
        column(&joined.lanes, |(namespace, _)| namespace.to_string()),
        column(&joined.lanes, |(_, lane)| *lane),
        Box::new(joined.horizon),
    ];
    columns.extend(version_columns(&joined.records));
    columns.push(Box::new(by.batch.to_string()));
    columns.push(column(&joined.namespaces, |namespace| namespace.to_string()));
    Write { sql: Sql::CheckNothingWaits, columns }
}

fn version_columns(records: &[(RecordKey, u64)]) -> [Column; 4] {
    [
        column(records, |(key, _)| key.namespace.to_string()),
        column(records, |(key, _)| key.kind.to_string()),
        column(records, |(key, _)| key.key.to_string()),
        column(records, |(_, version)| *version as i64),
    ]
}

/// By how much the numbers of jobs change, for the row of events; nothing where there are none, or where it has no events and
/// is never numbered.
fn counted(decision: &Decision) -> String {
    let changes = counts::changes(decision);
    if decision.events.is_empty() || changes.is_empty() {
        return String::new();
    }
    let each = changes.iter().map(|one| (one.namespace.as_str(), one.definition, one.counted.code(), one.by));
    json(&each.collect::<Vec<_>>())
}

/// The same, added up at once: for what has no row of events, and is rare.
pub fn counts(decision: &Decision) -> Option<Write> {
    let changes = counts::changes(decision);
    let columns = || {
        vec![
            column(&changes, |one| one.namespace.to_string()),
            column(&changes, |one| one.definition.to_owned()),
            column(&changes, |one| one.counted.code()),
            column(&changes, |one| one.by),
        ]
    };
    (!changes.is_empty()).then(|| Write { sql: Sql::AddCounts, columns: columns() })
}

/// New jobs with their payloads, in places counted from one that is drawn with them; and what has to hold then.
pub fn add_jobs(decision: &Decision, by: Unlooked) -> [Write; 2] {
    let added = decision.jobs.iter().filter(|change| change.old.is_none()).filter_map(|change| change.new.as_ref());
    let mut added: Vec<&Job> = added.collect();
    added.sort_by(|a, b| a.key.cmp(&b.key));
    let Payloads { small, apart } = Payloads::of(decision);
    let mut columns: Vec<Column> = values(INSERT, &added).collect();
    columns.push(payload_column(&added, &small));
    columns.push(Box::new(by.clock));
    columns.push(Box::new(by.batch.to_string()));
    columns.push(payload_column(&added, &apart));
    let mut fronts: BTreeMap<(&Namespace, Uuid), i32> = BTreeMap::new();
    for job in &added {
        let first = fronts.entry((&job.key.namespace, uuid_of(job.lane))).or_insert(job.priority);
        *first = job.priority.min(*first);
    }
    let fronts: Vec<_> = fronts.into_iter().collect();
    let mut checked = key_columns(&added, |job| &job.key);
    checked.push(column(&fronts, |((namespace, _), _)| namespace.to_string()));
    checked.push(column(&fronts, |((_, lane), _)| *lane));
    checked.push(column(&fronts, |(_, priority)| *priority));
    [Write { sql: Sql::AddJobs, columns }, Write { sql: Sql::CheckAdded, columns: checked }]
}

/// Payloads up to this size stand in the rows of new jobs. A row is written three times (new, claimed, ended), a payload apart once
/// but with an index entry.
const PAYLOAD_IN_ROW_MAX: usize = 256;

/// Where the payloads of a decision are written. Nothing is what a missing payload is read as.
#[derive(Default)]
struct Payloads<'a> {
    small: HashMap<&'a JobKey, &'a Payload>,
    apart: HashMap<&'a JobKey, &'a Payload>,
}

impl<'a> Payloads<'a> {
    fn of(decision: &'a Decision) -> Self {
        let mut all = Self::default();
        if decision.payloads.is_empty() {
            return all;
        }
        let new = decision.jobs.iter().filter(|change| change.old.is_none() && change.new.is_some());
        let new: HashSet<&JobKey> = new.map(JobChange::key).collect();
        for (key, data) in decision.payloads.iter().filter(|(_, data)| !data.is_empty()) {
            if data.len() <= PAYLOAD_IN_ROW_MAX && new.contains(key) {
                all.small.insert(key, data);
            } else {
                all.apart.insert(key, data);
            }
        }
        all
    }
}

pub fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("rows hold plain data with string keys")
}

fn key_columns<T>(items: &[T], key: impl Fn(&T) -> &JobKey) -> Vec<Column> {
    vec![column(items, |item| key(item).namespace.to_string()), column(items, |item| key(item).id.0)]
}

fn payload_column(jobs: &[&Job], payloads: &HashMap<&JobKey, &Payload>) -> Column {
    column(jobs, |job| payloads.get(&job.key).map(|data| data.as_bytes().to_vec()))
}

fn spot_columns(jobs: &[&Job], spots: &Spots) -> Vec<Column> {
    vec![column(jobs, |job| spots.get(&job.key).copied()), column(jobs, |job| job.key.id.0)]
}

/// Final jobs by their keys, which come first.
fn final_columns(jobs: &[&Job]) -> Vec<Column> {
    key_columns(jobs, |job| &job.key).into_iter().chain(values(FINISH, jobs)).collect()
}

fn record_columns<T>(items: &[T], record: impl Fn(&T) -> &Record) -> Vec<Column> {
    let facets = |record: &Record| (!record.facets.is_empty()).then(|| json(&record.facets));
    vec![
        column(items, |item| record(item).key.namespace.to_string()),
        column(items, |item| record(item).key.kind.to_string()),
        column(items, |item| record(item).key.key.to_string()),
        column(items, |item| record(item).parent.as_ref().map(ToString::to_string)),
        column(items, |item| facets(record(item))),
        column(items, |item| record(item).due.map(|due| due.0)),
        column(items, |item| record(item).version as i64),
        column(items, |item| record(item).value.to_string()),
    ]
}

fn record_facet_columns(items: &[(&RecordKey, &Facet)]) -> Vec<Column> {
    vec![
        column(items, |(key, _)| key.namespace.to_string()),
        column(items, |(key, _)| key.kind.to_string()),
        column(items, |(_, facet)| facet.name.to_string()),
        column(items, |(_, facet)| facet.value.to_string()),
        column(items, |(key, _)| key.key.to_string()),
    ]
}

fn job_facet_columns(items: &[(&JobKey, (&str, &str))]) -> Vec<Column> {
    vec![
        column(items, |(key, _)| key.namespace.to_string()),
        column(items, |(_, (name, _))| (*name).to_owned()),
        column(items, |(_, (_, value))| (*value).to_owned()),
        column(items, |(key, _)| key.id.0),
    ]
}
