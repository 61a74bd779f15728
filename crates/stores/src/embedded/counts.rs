//! How many jobs there are in each state, and how many bytes a namespace keeps.
//!
//! The numbers are kept in memory and change with each commit. On disk a batch leaves by how much it changed them, in its row of
//! events, so that counting costs no page of its own. From time to time the sums are written to a table; what was done since
//! then is added up again when the store is opened.

use super::{
    bytes,
    failure::{Failure, Result},
    rows::{self, Sum},
};
use parking_lot::Mutex;
use rusqlite::{Connection, Row};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};
use windlass_core::{
    Decision, Namespace, State, StateCounts,
    counts::{self, CountChange, Counted},
    job::DefinitionRef,
};

/// Batches after which the sums are written: so many rows of events are read at most when the store is opened.
const BATCHES_MAX: u32 = 1_000;
/// Sums that may have changed until they are written. Others wait meanwhile, so that this takes less than a millisecond.
const CHANGED_MAX: usize = 200;
/// Jobs counted in one transaction, while those from before there were counts are.
const SLICE: usize = 2_000;
/// The mark up to which events are in the table.
pub(super) const MARK: &str = "counted_event";

pub(super) const COUNT_SET: &str = include_str!("sql/count_set.sql");
pub(super) const COUNT_DELETE: &str = "DELETE FROM job_counts WHERE namespace = ?1 AND definition = ?2 AND state = ?3";
const COUNT_SLICE: &str = include_str!("sql/count_slice.sql");
const COUNTS_AFTER: &str =
    "SELECT first_no, counts, counts_sum FROM events WHERE first_no > ?1 AND counts IS NOT NULL ORDER BY first_no";

/// Namespace and definition; all of the namespace where the latter is empty.
pub(super) type Whose = (Namespace, Arc<str>);
type Table = BTreeMap<Whose, StateCounts>;
pub(super) type Sums = BTreeMap<(Whose, Counted), i64>;

/// As it is written: namespace, definition, state, by how much.
pub(super) type Written = (String, String, i16, i64);

/// What readers see: what is committed.
#[derive(Default)]
pub(super) struct Shown(Mutex<Table>);

impl Shown {
    pub(super) fn of(&self, namespace: &Namespace, definition: Option<&str>) -> StateCounts {
        let whose = (namespace.clone(), definition.unwrap_or_default().into());
        self.0.lock().get(&whose).copied().unwrap_or_default()
    }
}

pub(super) struct Counts {
    shown: Arc<Shown>,
    /// The numbers that are not the same in the table.
    changed: BTreeSet<(Whose, Counted)>,
    /// Since the sums were written.
    batches: u32,
}

/// What a batch changes.
pub(super) struct Change {
    sums: Vec<(Whose, Counted, i64)>,
    /// Whether the sums are in the table once the batch is committed.
    folded: bool,
}

impl Change {
    pub(super) fn of(decision: &Decision) -> Self {
        let owned = |one: &CountChange| ((one.namespace.clone(), Arc::from(one.definition)), one.counted, one.by);
        Self { sums: counts::changes(decision).iter().map(owned).collect(), folded: false }
    }

    /// What was counted with events that go.
    pub(super) fn without_events(gone: &[Written]) -> Result<Self> {
        let events = gone.iter().filter(|(_, _, code, _)| *code == Counted::EventBytes.code());
        let less = |(namespace, definition, _, by): &Written| {
            Ok(((rows::to_namespace(namespace)?, definition.as_str().into()), Counted::EventBytes, -by))
        };
        Ok(Self { sums: events.map(less).collect::<Result<_>>()?, folded: false })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// For the row of events, with its checksum.
    pub(super) fn text(&self, first_no: u64) -> Option<(String, i64)> {
        if self.is_empty() {
            return None;
        }
        let sums = self.sums.iter();
        let written: Vec<(&str, &str, i16, i64)> = sums
            .map(|((namespace, definition), counted, by)| (namespace.as_str(), &**definition, counted.code(), *by))
            .collect();
        let text = serde_json::to_string(&written).expect("plain data");
        let sum = text_sum(first_no, &text).get();
        Some((text, sum))
    }
}

impl Counts {
    pub(super) fn open(connection: &Connection) -> Result<Self> {
        let (mut table, mut changed, mut batches) = (Table::new(), BTreeSet::new(), 0);
        let mut statement = connection.prepare("SELECT namespace, definition, state, count, sum FROM job_counts")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (whose, counted, count) = read_row(row)?;
            table.entry(whose).or_default().add(counted, count);
        }
        let counted = rows::load_mark(connection, MARK)?.unwrap_or(0);
        let mut statement = connection.prepare(COUNTS_AFTER)?;
        let mut rows = statement.query([counted])?;
        while let Some(row) = rows.next()? {
            for (whose, counted, by) in read_text(row)? {
                add(&mut table, &whose, counted, by);
                changed.insert((whose, counted));
            }
            batches += 1;
        }
        Ok(Self { shown: Arc::new(Shown(Mutex::new(table))), changed, batches })
    }

    pub(super) fn shown(&self) -> Arc<Shown> {
        self.shown.clone()
    }

    /// Whether it is time to write the sums.
    pub(super) fn is_full(&self) -> bool {
        self.batches >= BATCHES_MAX || self.changed.len() >= CHANGED_MAX
    }

    /// Writes the sums as they will be with `change`, up to the event that is the last by then.
    pub(super) fn fold(&self, connection: &Connection, change: &mut Change, last_event: u64) -> Result<()> {
        let mut sums: BTreeMap<(&Whose, Counted), i64> =
            self.changed.iter().map(|(whose, counted)| ((whose, *counted), 0)).collect();
        for (whose, counted, by) in &change.sums {
            *sums.entry((whose, *counted)).or_default() += by;
        }
        for ((whose, counted), by) in sums {
            let before = self.shown.0.lock().get(whose).copied().unwrap_or_default();
            write_row(connection, whose, counted, before.get(counted) + by)?;
        }
        rows::save_mark(connection, MARK, last_event as i64)?;
        change.folded = true;
        Ok(())
    }

    /// After the commit.
    pub(super) fn learn(&mut self, change: Change) {
        if !change.sums.is_empty() {
            let mut table = self.shown.0.lock();
            change.sums.iter().for_each(|(whose, counted, by)| add(&mut table, whose, *counted, *by));
            self.batches += 1;
        }
        if change.folded {
            (self.batches, self.changed) = (0, BTreeSet::new());
        } else {
            self.changed.extend(change.sums.into_iter().map(|(whose, counted, _)| (whose, counted)));
        }
    }
}

/// A definition without jobs is forgotten, so that only those that have some take room.
fn add(table: &mut Table, whose: &Whose, counted: Counted, by: i64) {
    match table.entry(whose.clone()) {
        Entry::Vacant(entry) => entry.insert(StateCounts::default()).add(counted, by),
        Entry::Occupied(mut entry) => {
            entry.get_mut().add(counted, by);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

fn text_sum(first_no: u64, text: &str) -> Sum {
    Sum::of(&Namespace::default(), b"counts").int(first_no as i64).bytes(text.as_bytes())
}

fn row_sum(whose: &Whose, counted: Counted, count: i64) -> Sum {
    Sum::of(&whose.0, whose.1.as_bytes()).int(counted.code().into()).int(count)
}

pub(super) fn add_row(connection: &Connection, whose: &Whose, counted: Counted, by: i64) -> Result<()> {
    let sql = "SELECT count FROM job_counts WHERE namespace = ?1 AND definition = ?2 AND state = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((whose.0.as_str(), &*whose.1, counted.code()))?;
    let before: i64 = rows.next()?.map_or(Ok(0), |row| row.get(0))?;
    write_row(connection, whose, counted, before + by)
}

fn write_row(connection: &Connection, whose: &Whose, counted: Counted, count: i64) -> Result<()> {
    let (namespace, definition) = (whose.0.as_str(), &*whose.1);
    if count == 0 {
        connection.prepare_cached(COUNT_DELETE)?.execute((namespace, definition, counted.code()))?;
    } else {
        let sum = row_sum(whose, counted, count).get();
        connection.prepare_cached(COUNT_SET)?.execute((namespace, definition, counted.code(), count, sum))?;
    }
    Ok(())
}

fn to_state(code: i16) -> Result<State> {
    State::from_code(code).ok_or_else(|| Failure::Damaged(format!("jobs in state {code} are counted")))
}

fn to_counted(code: i16) -> Result<Counted> {
    Counted::from_code(code).ok_or_else(|| Failure::Damaged(format!("there is a number of {code}")))
}

fn read_row(row: &Row<'_>) -> Result<(Whose, Counted, i64)> {
    let whose: Whose = (rows::to_namespace(rows::text(row, 0)?)?, rows::text(row, 1)?.into());
    let (counted, count) = (to_counted(row.get(2)?)?, row.get(3)?);
    row_sum(&whose, counted, count).check(row.get(4)?, || format!("the number of jobs of {}/{}", whose.0, whose.1))?;
    Ok((whose, counted, count))
}

/// What a batch counted, as its row of events has it: first number, text, checksum.
pub(super) fn read_written(row: &Row<'_>) -> Result<Vec<Written>> {
    let (first_no, text) = (row.get::<_, i64>(0)? as u64, rows::text(row, 1)?);
    text_sum(first_no, text).check(row.get(2)?, || format!("what the batch from {first_no} counted"))?;
    serde_json::from_str(text).map_err(|error| Failure::Damaged(format!("what was counted: {error}")))
}

fn read_text(row: &Row<'_>) -> Result<Vec<(Whose, Counted, i64)>> {
    let one = |(namespace, definition, code, by): Written| {
        Ok(((rows::to_namespace(&namespace)?, definition.into()), to_counted(code)?, by))
    };
    read_written(row)?.into_iter().map(one).collect()
}

/// Counts the jobs that were there before there were counts: slice by slice, each a transaction of its own, so that one who is
/// killed meanwhile goes on where he was. Nobody else may write until it is done.
pub(super) fn count_all(connection: &Connection) -> Result<()> {
    let begun = |connection: &Connection| {
        let mut statement = connection.prepare("SELECT namespace, id FROM job_counts_begun")?;
        let mut rows = statement.query([])?;
        rows.next()?.map(|row| Ok::<Position, Failure>((row.get(0)?, row.get(1)?))).transpose()
    };
    while let Some(after) = begun(connection)? {
        let transaction = connection.unchecked_transaction()?;
        let (counted, last) = count_slice(&transaction, &after, SLICE)?;
        for ((whose, counted), count) in counted {
            add_row(&transaction, &whose, counted, count)?;
        }
        match last {
            Some((namespace, id)) => {
                transaction.execute("UPDATE job_counts_begun SET namespace = ?1, id = ?2", (namespace, id))?
            }
            None => transaction.execute("DELETE FROM job_counts_begun", [])?,
        };
        transaction.commit()?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Named {
    definition: Option<DefinitionRef>,
}

pub(super) type Position = (String, Vec<u8>);

/// What is counted among the next jobs after one; and the last of them, unless there is none.
fn count_slice(connection: &Connection, after: &Position, limit: usize) -> Result<(Sums, Option<Position>)> {
    let (mut counted, mut last) = (BTreeMap::new(), None);
    let mut statement = connection.prepare_cached(COUNT_SLICE)?;
    let mut rows = statement.query((&after.0, &after.1, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    while let Some(row) = rows.next()? {
        let (namespace, state) = (rows::to_namespace(rows::text(row, 0)?)?, to_state(row.get(2)?)?);
        let spec: Named = serde_json::from_str(rows::text(row, 3)?)
            .map_err(|error| Failure::Damaged(format!("what was submitted: {error}")))?;
        let definition = spec.definition.map(|definition| definition.name);
        for whose in [Some(Arc::from("")), definition].into_iter().flatten() {
            *counted.entry(((namespace.clone(), whose), Counted::Jobs(state))).or_default() += 1;
        }
        last = Some((namespace.to_string(), row.get(1)?));
    }
    Ok((counted, last))
}

/// Whose numbers are not those of the jobs, in one snapshot.
pub(super) fn wrong(connection: &Connection) -> Result<Vec<String>> {
    let snapshot = connection.unchecked_transaction()?;
    let told = Counts::open(&snapshot)?;
    let (counted, _) = count_slice(&snapshot, &Default::default(), usize::MAX)?;
    let mut there = Table::new();
    for ((whose, one), count) in counted.into_iter().chain(bytes::stored(&snapshot)?) {
        there.entry(whose).or_default().add(one, count);
    }
    let told = told.shown.0.lock();
    let whose: BTreeSet<&Whose> = told.keys().chain(there.keys()).collect();
    let wrong = whose.into_iter().filter(|whose| told.get(whose) != there.get(whose));
    Ok(wrong.map(|(namespace, definition)| format!("{namespace}/{definition}")).collect())
}
