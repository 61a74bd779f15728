//! The one connection that writes: a batch is one transaction on it.

use super::{
    Stats,
    checkpoint::Checkpointer,
    counts::{Change, Counts, Shown},
    disk::Disk,
    failure::{Failure, Result},
    lanes::Weights,
    leases::Leases,
    load::Memo,
    reads,
    reserve::Reserve,
    rows, trim, write,
};
use rusqlite::{Connection, wal::CheckpointMode};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use windlass_core::{Decision, Timestamp, decider};
use windlass_engine::{
    StoreError, bulk,
    clock::Clock,
    store::{Batch, Committed, Trim},
};

/// Bytes of a frame in the write-ahead log, beyond the page it holds.
const FRAME_HEADER: u64 = 24;
pub(super) const PAGE: u64 = 4_096;

pub(super) struct Writer {
    connection: Connection,
    memo: Memo,
    leases: Arc<Leases>,
    counts: Counts,
    marks: Marks,
    log: Log,
    disk: Arc<Disk>,
    reserve: Arc<Reserve>,
    stats: Stats,
    /// Why nothing more is written.
    stopped: Option<String>,
}

/// Numbers that only grow. They are kept with the events, and in `meta` where there are none.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub(super) last_event: u64,
    pub(super) next_seq: i64,
    pub(super) last_now: Timestamp,
}

impl Marks {
    fn open(connection: &Connection) -> Result<Self> {
        let mark = |name: &str| rows::load_mark(connection, name).map(Option::unwrap_or_default);
        let mut marks = Self {
            last_event: mark("last_event")? as u64,
            next_seq: mark("next_seq")?.max(1),
            last_now: Timestamp(mark("last_now")?),
        };
        let sql = "SELECT first_no, count, at, next_seq, sum, body FROM events ORDER BY first_no DESC LIMIT 1";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        if let Some(row) = rows.next()? {
            let (first_no, events) = reads::batch_events(row)?;
            marks.last_event = marks.last_event.max(first_no + events.len() as u64 - 1);
            marks.last_now = marks.last_now.max(Timestamp(row.get(2)?));
            marks.next_seq = marks.next_seq.max(row.get(3)?);
        }
        Ok(marks)
    }

    /// Where the marks stand once `decision` is written.
    fn after(self, decision: &Decision, now: Timestamp) -> Self {
        let places = decision.jobs.iter().filter_map(|change| change.new.as_ref()).map(|job| job.seq + 1);
        Self {
            last_event: self.last_event + decision.events.len() as u64,
            next_seq: places.fold(self.next_seq, i64::max),
            last_now: now.max(self.last_now),
        }
    }

    fn named(self) -> [(&'static str, i64); 3] {
        [("last_event", self.last_event as i64), ("next_seq", self.next_seq), ("last_now", self.last_now.0)]
    }

    /// Writes the marks that moved since; all of them if that is not known.
    fn write(self, connection: &Connection, since: Option<Marks>) -> Result<()> {
        let before = since.map(Marks::named);
        for (at, (name, value)) in self.named().into_iter().enumerate() {
            if before.is_none_or(|before| before[at].1 != value) {
                rows::save_mark(connection, name, value)?;
            }
        }
        Ok(())
    }
}

/// The write-ahead log: how full it is, and when to move it into the database.
///
/// SQLite's own checkpoints ignore errors, a failed sync among them; therefore they are switched off and done by us: most of
/// it beside the writer, the rest here. The file is written over from its start after a complete checkpoint and never cut,
/// because a file that grows costs more with each sync.
struct Log {
    beside: Checkpointer,
    /// Set by SQLite with each commit.
    pages: Arc<AtomicU32>,
    pages_before: u32,
    checkpoint_pages: u32,
    next_checkpoint: u32,
}

/// Bytes of pages that nothing uses: room for rows to come.
pub(super) fn unused(connection: &Connection) -> Result<u64> {
    let pages: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    Ok(pages.unsigned_abs() * PAGE)
}

impl Writer {
    pub(super) fn open(
        mut connection: Connection,
        (checkpoint_pages, beside): (u32, Checkpointer),
        disk: Arc<Disk>,
        reserve: Arc<Reserve>,
    ) -> Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let told = pages.clone();
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count: i32| {
            told.store(count.unsigned_abs(), Ordering::Release);
            Ok(())
        }))?;
        connection.set_prepared_statement_cache_capacity(128);
        let log = Log { beside, pages, pages_before: 0, checkpoint_pages, next_checkpoint: checkpoint_pages };
        let (memo, marks) = (Memo::open(&connection)?, Marks::open(&connection)?);
        let leases = Arc::new(Leases::open(&connection)?);
        let counts = Counts::open(&connection)?;
        let stats = Stats::default();
        Ok(Self { connection, memo, leases, counts, marks, log, disk, reserve, stats, stopped: None })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn leases(&self) -> Arc<Leases> {
        self.leases.clone()
    }

    pub(super) fn counts(&self) -> Arc<Shown> {
        self.counts.shown()
    }

    pub(super) fn lanes(&self) -> Arc<Weights> {
        self.memo.lanes.weights()
    }

    pub(super) fn last_now(&self) -> Timestamp {
        self.marks.last_now
    }

    pub(super) fn stats(&self) -> Stats {
        let (lanes, lane_entries) = (self.memo.lanes.len(), self.memo.lanes.entries());
        Stats { lanes, lane_entries, syncs: self.stats.syncs + self.disk.syncs(), ..self.stats }
    }

    pub(super) fn run(&mut self, batch: &Batch, clock: &dyn Clock) -> std::result::Result<Committed, StoreError> {
        self.ready()?;
        let now = clock.now().max(self.marks.last_now);
        self.stats.batches += 1;
        let committed = match self.try_run(batch, now) {
            Err(failure) if failure.is_full() && self.use_reserve() => self.try_run(batch, now),
            tried => tried,
        };
        committed.map_err(|failure| self.failed(failure))
    }

    /// Makes room where there is none: the reserve goes, and the log is moved into the database so that it starts over. True: what
    /// was refused may fit now.
    fn use_reserve(&mut self) -> bool {
        self.roll_back();
        let spent = self.reserve.spend();
        let moved = self.checkpoint(CheckpointMode::PASSIVE);
        self.checkpointed(moved);
        spent
    }

    /// Refuses to go on after a failure that left it open what is on disk.
    fn ready(&mut self) -> std::result::Result<(), StoreError> {
        if let Some(why) = self.stopped.as_ref().or(self.disk.failure()) {
            return Err(StoreError::Corrupt(format!("nothing more is written since: {why}")));
        }
        if !self.connection.is_autocommit() {
            // A batch panicked half-way: what it had written is taken back.
            self.roll_back();
        }
        Ok(())
    }

    fn failed(&mut self, failure: Failure) -> StoreError {
        self.roll_back();
        let fatal = failure.is_fatal();
        let error = StoreError::from(failure);
        if fatal {
            tracing::error!(%error, "the store stops accepting writes");
            self.stopped = Some(error.to_string());
        }
        error
    }

    fn roll_back(&mut self) {
        self.memo.clear();
        // If the commit itself did not come back: nobody may wait for it for ever.
        self.disk.wrote();
        // After some errors SQLite has rolled back already.
        if self.connection.is_autocommit() {
            return;
        }
        if let Err(error) = self.connection.execute_batch("ROLLBACK") {
            self.stopped.get_or_insert_with(|| format!("a transaction could not be rolled back: {error}"));
        }
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn try_run(&mut self, batch: &Batch, now: Timestamp) -> Result<Committed> {
        self.execute("BEGIN IMMEDIATE")?;
        let decider = batch.decider(now, self.marks.next_seq);
        let (connection, memo) = (&self.connection, &mut self.memo);
        let mut decision = decider::drive(decider, |keys| memo.load(connection, keys))?;
        let first_event = self.marks.last_event + 1;
        if decision.writes_nothing() {
            self.execute("ROLLBACK")?;
        } else {
            let promises = batch.items.iter().any(|item| item.command.is_promise());
            self.write(&decision, now, promises)?;
            self.leases.learn(&decision.jobs);
            self.memo.learn(&mut decision);
            self.memo.forget_gone_lanes(&self.connection);
        }
        Ok(Committed { first_event: Some(first_event), ..Committed::of(&mut decision, now) })
    }

    /// Writes rows that were decided elsewhere, in a transaction of their own.
    pub(super) fn insert(&mut self, rows: bulk::Rows) -> std::result::Result<(), StoreError> {
        self.ready()?;
        self.try_insert(rows).map_err(|failure| self.failed(failure))
    }

    fn try_insert(&mut self, mut rows: bulk::Rows) -> Result<()> {
        let mut decision = rows.take_decision();
        let latest = rows.events.last().map_or(Timestamp(0), |(_, event)| event.at);
        let mut marks = self.marks.after(&decision, latest);
        self.execute("BEGIN IMMEDIATE")?;
        self.memo.expect(&decision);
        write::write(&self.connection, &mut self.memo, &decision)?;
        for (first_no, events) in bulk::batches_of(&rows.events) {
            if marks.last_event > 0 && first_no != marks.last_event + 1 {
                return Err(Failure::Damaged(format!("event {first_no} does not follow event {}", marks.last_event)));
            }
            write::write_events(&self.connection, first_no, &events, marks.next_seq, None)?;
            marks.last_event = first_no + events.len() as u64 - 1;
        }
        marks.last_event = marks.last_event.max(rows.last_event);
        marks.write(&self.connection, None)?;
        let mut counted = Change::of(&decision);
        self.counts.fold(&self.connection, &mut counted, marks.last_event)?;
        self.commit(true)?;
        self.marks = marks;
        self.counts.learn(counted);
        self.leases.learn(&decision.jobs);
        self.memo.learn(&mut decision);
        self.memo.forget_gone_lanes(&self.connection);
        Ok(())
    }

    fn write(&mut self, decision: &Decision, now: Timestamp, promises: bool) -> Result<()> {
        let marks = self.marks.after(decision, now);
        self.memo.expect(decision);
        write::write(&self.connection, &mut self.memo, decision)?;
        let mut counted = Change::of(decision);
        if decision.events.is_empty() {
            marks.write(&self.connection, Some(self.marks))?;
        } else {
            let (first_no, next_seq) = (self.marks.last_event + 1, marks.next_seq);
            write::write_events(&self.connection, first_no, &decision.events, next_seq, Some(&counted))?;
        }
        // Without a row of events there is no other place for what changed.
        if self.counts.is_full() || (decision.events.is_empty() && !counted.is_empty()) {
            self.counts.fold(&self.connection, &mut counted, marks.last_event)?;
        }
        self.commit(promises)?;
        self.marks = marks;
        self.counts.learn(counted);
        Ok(())
    }

    fn commit(&mut self, promises: bool) -> Result<()> {
        self.disk.begin(promises);
        let committed = self.execute("COMMIT");
        self.disk.wrote();
        committed?;
        self.count_commit();
        self.checkpoint_if_full();
        self.reserve.wrote(|| unused(&self.connection).ok());
        Ok(())
    }

    fn count_commit(&mut self) {
        let pages = self.log.pages.load(Ordering::Acquire);
        let before = self.log.pages_before;
        let restarted = pages <= before;
        let written = if restarted { pages } else { pages - before };
        self.log.pages_before = pages;
        if restarted {
            self.log.next_checkpoint = self.log.checkpoint_pages;
        }
        self.stats.commits += 1;
        self.stats.wal_bytes += u64::from(written) * (PAGE + FRAME_HEADER);
        // The log's new header is synced on its own before the first commit that writes over an old one.
        self.stats.syncs += u64::from(restarted);
    }

    /// Has the log moved into the database when it is full, and moves what came meanwhile. Readers never wait for it; only when
    /// they have kept it from starting over for long does it wait for them, so that the log stays bounded.
    fn checkpoint_if_full(&mut self) {
        if let Some(copied) = self.log.beside.done() {
            let moved = copied.and_then(|pages| self.checkpoint(CheckpointMode::PASSIVE).map(|()| pages));
            self.stats.pages_beside += u64::from(moved.as_ref().map_or(0, |pages| *pages));
            self.checkpointed(moved.map(drop));
        }
        let pages = self.log.pages_before;
        if pages < self.log.next_checkpoint {
            return;
        }
        self.log.next_checkpoint = pages + self.log.checkpoint_pages / 4;
        if pages < self.log.checkpoint_pages.saturating_mul(4) {
            self.log.beside.ask();
        } else {
            let moved = self.checkpoint(CheckpointMode::RESTART);
            self.checkpointed(moved);
        }
    }

    fn checkpoint(&self, mode: CheckpointMode) -> Result<()> {
        Ok(self.connection.wal_checkpoint_v2::<&str>(None, mode).map(drop)?)
    }

    /// The batch is committed, so it is answered whatever came of this.
    fn checkpointed(&mut self, moved: Result<()>) {
        match moved {
            Ok(()) => {
                self.stats.checkpoints += 1;
                // Two beside the writer, two here.
                self.stats.syncs += 4;
            }
            Err(failure) if failure.is_fatal() => _ = self.failed(failure),
            // No room in the database file, or a reader in the way: the log holds everything, so try again later.
            Err(failure) => {
                tracing::warn!(error = ?failure, "the write-ahead log could not be moved into the database yet");
            }
        }
    }

    /// Throws old events away, in a transaction of its own with the marks and the counts written first.
    pub(super) fn trim_events(&mut self, trim: Trim) -> std::result::Result<usize, StoreError> {
        self.ready()?;
        self.try_trim(trim).map_err(|failure| self.failed(failure))
    }

    fn try_trim(&mut self, trim: Trim) -> Result<usize> {
        self.execute("BEGIN IMMEDIATE")?;
        self.marks.write(&self.connection, None)?;
        let (gone, counted) = trim::events(&self.connection, trim)?;
        let mut less = Change::without_events(&counted)?;
        self.counts.fold(&self.connection, &mut less, self.marks.last_event)?;
        self.commit(false)?;
        self.counts.learn(less);
        Ok(gone)
    }

    /// Looks into every lane that may be empty.
    pub(super) fn trim_lanes(&mut self) -> std::result::Result<(), StoreError> {
        self.memo.lanes.clear_all_doubts(&self.connection).map_err(StoreError::from)
    }

    /// Leaves everything in the database file. False: something may be missing there.
    pub(super) fn close(&mut self) -> bool {
        self.log.beside.stop();
        let complete = self.connection.wal_checkpoint_v2::<&str>(None, CheckpointMode::TRUNCATE).is_ok();
        complete && self.stopped.is_none() && self.disk.failure().is_none()
    }
}
