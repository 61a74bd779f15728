//! `windlass export`: everything in a store, as a file.

use super::{
    StoreAddress,
    line::{Begin, End, FORMAT, JobLine, Line},
    unfinished,
};
use crate::{
    commands::{Context, Done},
    fail::code,
    output,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};
use std::{
    fs::{self, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};
use windlass_api::count_of;
use windlass_core::{
    Job, LogAppend, Record,
    principal::{KeptOutside, Token},
    record::Kind,
};
use windlass_engine::{
    Bulk,
    store::{JobBody, JobQuery},
};

const PAGE: usize = 500;
/// Bodies read at the same time: a read is mostly waiting where the database is elsewhere.
const AT_ONCE: usize = 4;
const LOG_BYTES: usize = 1 << 20;

/// Write everything in a store to a file, for `windlass import` into another one.
///
/// The file contains all jobs (with payloads, results, attempts and logs), all records (workers, runs, definitions, schedules,
/// principals, token hashes, keys, users with their password hashes, the key that signs users' tokens) and all events that are
/// still kept, one JSON document per line, with a digest at the end. It does not contain artifacts. It contains the leases of
/// running jobs, so it is readable only by its owner. Stop the servers first: changes made during the export would be included
/// only partly, and the export fails if it sees any.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass export all.jsonl --data /var/lib/windlass
  windlass export - --database postgres://windlass@db/windlass | zstd > all.jsonl.zst")]
pub struct Export {
    /// The file to write; - writes to standard output.
    file: PathBuf,
    #[command(flatten)]
    place: StoreAddress,
}

impl Export {
    pub async fn run(self, context: &Context) -> Done {
        self.place.must_exist()?;
        ensure!(!self.file.exists(), "{} is there already; name another file", self.file.display());
        let store = self.place.open(false).await?;
        unfinished::check(&*store, &self.place).await?;
        let begin = Begin {
            windlass_export: FORMAT,
            program: env!("CARGO_PKG_VERSION").into(),
            store: self.place.kind().into(),
        };
        if self.file.as_os_str() == "-" {
            let mut writer = Writer::new(std::io::stdout().lock(), "exporting");
            writer.write(&Line::Begin(begin))?;
            let end = everything(&*store, &mut writer).await?;
            writer.finish(end)?;
            return Ok(code::OK);
        }
        let part = self.file.with_extension("part");
        let end =
            write_file(&*store, begin, &part).await.with_context(|| format!("{} was not finished", part.display()))?;
        fs::rename(&part, &self.file)?;
        context.format.one(&end, || summary(&end, &format!("written to {}", self.file.display())))?;
        Ok(code::OK)
    }
}

async fn write_file(store: &dyn Bulk, begin: Begin, part: &Path) -> anyhow::Result<End> {
    // Leases and token hashes are in it.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(part)?;
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 20, &file), "exporting");
    writer.write(&Line::Begin(begin))?;
    let end = everything(store, &mut writer).await?;
    let end = writer.finish(end)?;
    file.sync_all()?;
    Ok(end)
}

pub fn summary(end: &End, what: &str) -> String {
    let End { records, jobs, logs, events, .. } = end;
    let counts = [(jobs, "job"), (logs, "log piece"), (records, "record"), (events, "event")];
    let counts = counts.map(|(count, one)| count_of(*count as usize, one)).join(", ");
    format!("{counts} {what}\nSHA-256 {}", end.sha256)
}

/// Lines on their way out, and the digest over them.
pub struct Writer<W: Write> {
    out: W,
    hash: Sha256,
    bar: ProgressBar,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W, what: &str) -> Self {
        Self { out, hash: Sha256::new(), bar: output::bar(None, what) }
    }

    fn write(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // The first line tells where it was written, the last one the digest itself.
        if !matches!(line, Line::Begin(_) | Line::End(_)) {
            self.hash.update(&text);
            self.bar.inc(1);
        }
        Ok(self.out.write_all(&text)?)
    }

    pub fn finish(mut self, mut end: End) -> anyhow::Result<End> {
        end.sha256 = windlass_api::hex(&std::mem::take(&mut self.hash).finalize());
        self.write(&Line::End(end.clone()))?;
        self.out.flush()?;
        self.bar.finish_and_clear();
        Ok(end)
    }
}

/// Everything in the store, in an order that every store has.
pub async fn everything<W: Write>(store: &dyn Bulk, writer: &mut Writer<W>) -> anyhow::Result<End> {
    let before = store.events_after(u64::MAX - 1, 1).await?.last;
    let mut end = End::default();
    records(store, writer, &mut end).await?;
    jobs(store, writer, &mut end).await?;
    events(store, writer, &mut end).await?;
    end.last_event = store.events_after(u64::MAX - 1, 1).await?.last;
    ensure!(end.last_event == before, "the data changed during the export; stop all servers and try again");
    Ok(end)
}

async fn records<W: Write>(store: &dyn Bulk, writer: &mut Writer<W>, end: &mut End) -> anyhow::Result<()> {
    let mut after = None;
    loop {
        let page = store.all_records(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.key.clone());
        // An import reads back before it takes its mark away.
        for record in page.into_iter().filter(|record| record.key != unfinished::key()) {
            writer.write(&Line::Record(unseen(record).into()))?;
            end.records += 1;
        }
    }
}

/// An admin token is valid while a server finds it in its place, and no server has found it where it is imported.
fn unseen(mut record: Record) -> Record {
    if &*record.key.kind == Token::KIND
        && let Ok(mut token) = serde_json::from_str::<Token>(&record.value)
        && let Some(KeptOutside { until: until @ Some(_), .. }) = &mut token.kept
    {
        *until = None;
        if let Ok(value) = serde_json::to_string(&token) {
            record.value = value.into();
        }
    }
    record
}

async fn jobs<W: Write>(store: &dyn Bulk, writer: &mut Writer<W>, end: &mut End) -> anyhow::Result<()> {
    let mut query = JobQuery { limit: PAGE, ..JobQuery::default() };
    loop {
        let page = store.jobs(&query).await?;
        let Some(last) = page.last() else { return Ok(()) };
        query.before = Some((last.key.namespace.clone(), last.key.id));
        let mut whole = stream::iter(page).map(|job| whole(store, job)).buffered(AT_ONCE);
        while let Some((job, body, log)) = whole.try_next().await? {
            let key = job.key.clone();
            writer.write(&Line::Job(Box::new(JobLine::new(job, body))))?;
            end.jobs += 1;
            let mut pieces = log;
            while let Some(last) = pieces.last().map(|piece| piece.piece) {
                for piece in pieces {
                    writer.write(&Line::Log(piece.into()))?;
                    end.logs += 1;
                }
                pieces = store.read_log(&key, last, LOG_BYTES).await?;
            }
        }
    }
}

/// With the beginning of its log, which is all of it for nearly every job.
async fn whole(store: &dyn Bulk, job: Job) -> anyhow::Result<(Job, JobBody, Vec<LogAppend>)> {
    let missing = || format!("job {} has lost its payload", job.key.id);
    let body = store.body(&job.key).await?.with_context(missing)?;
    let log = if job.live.log.pieces > 0 { store.read_log(&job.key, 0, LOG_BYTES).await? } else { Vec::new() };
    Ok((job, body, log))
}

async fn events<W: Write>(store: &dyn Bulk, writer: &mut Writer<W>, end: &mut End) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let page = store.events_after(after, PAGE * 4).await?;
        let Some((last, _)) = page.events.last() else { return Ok(()) };
        after = *last;
        for (number, event) in page.events {
            writer.write(&Line::Event(number, event))?;
            end.events += 1;
        }
    }
}
