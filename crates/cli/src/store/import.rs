//! `windlass import`: what `windlass export` wrote, into another store.

use super::{
    StoreAddress,
    export::{Writer, everything, summary},
    line::{Begin, End, FORMAT, Line},
    unfinished,
};
use crate::{
    commands::{Context, Done},
    dialects::Imports,
    fail::code,
    output,
};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};
use windlass_engine::{Bulk, bulk::Rows};

/// Rows of one transaction.
const BATCH_LINES: usize = 500;
const BATCH_BYTES: usize = 8 << 20;
/// No row is as large as this.
const LINE_MAX: u64 = 256 << 20;

/// Import a file written by `windlass export` into an empty store.
///
/// The file is checked against its digest before anything is written. Afterwards everything is read back from the store and
/// compared. A store that is not empty is refused.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass import all.jsonl --database postgres://windlass@db/windlass     from the embedded store to PostgreSQL
  windlass import all.jsonl --data /var/lib/windlass                       and back")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Import {
    /// A file written by `windlass export`. (For a file with the name of a command below, write `./NAME`.)
    #[arg(required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    place: StoreAddress,
    #[command(subcommand)]
    from: Option<Imports>,
}

impl Import {
    pub async fn run(self, context: &Context) -> Done {
        if let Some(from) = self.from {
            return from.run(context).await;
        }
        let file = self.file.clone().context("name the file to import")?;
        let wanted = verify(&file)?;
        let store = self.place.open(true).await?;
        unfinished::check(&*store, &self.place).await?;
        ensure!(
            store.is_empty().await?,
            "{} holds data already; import goes into an empty store only",
            self.place.name()
        );
        let found = self.fill(&*store, &file, &wanted).await.with_context(|| unfinished::advice(&self.place))?;
        unfinished::clear(&*store).await.with_context(|| unfinished::advice(&self.place))?;
        context
            .format
            .one(&found, || summary(&found, &format!("are now in {}, read back and compared", self.place.name())))?;
        Ok(code::OK)
    }

    /// Writes everything and reads it back. The mark stays where this fails, however it fails.
    async fn fill(&self, store: &dyn Bulk, file: &Path, wanted: &End) -> anyhow::Result<End> {
        unfinished::mark(store).await?;
        write(store, file, wanted).await?;
        let mut writer = Writer::new(std::io::sink(), "checking");
        let end = everything(store, &mut writer).await?;
        let found = writer.finish(end)?;
        ensure!(found == *wanted, "what was read back is not what the file holds ({found:?} instead of {wanted:?})");
        Ok(found)
    }
}

/// Lines of the file, each with its number.
struct Lines {
    reader: BufReader<File>,
    text: Vec<u8>,
    number: u64,
}

impl Lines {
    fn open(file: &Path) -> anyhow::Result<Self> {
        let opened = File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
        Ok(Self { reader: BufReader::with_capacity(1 << 20, opened), text: Vec::new(), number: 0 })
    }

    fn next(&mut self) -> anyhow::Result<Option<Line>> {
        self.text.clear();
        let read = std::io::Read::take(&mut self.reader, LINE_MAX).read_until(b'\n', &mut self.text)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let line = serde_json::from_slice(&self.text);
        line.map(Some).with_context(|| format!("line {} cannot be understood", self.number))
    }
}

/// Reads the whole file once without writing anything: half an import is worse than none.
fn verify(file: &Path) -> anyhow::Result<End> {
    let size = std::fs::metadata(file).with_context(|| format!("{} cannot be read", file.display()))?.len();
    let bar = output::bar(Some(size), "checking the file");
    let mut lines = Lines::open(file)?;
    let (mut hash, mut found) = (Sha256::new(), End::default());
    match lines.next() {
        Ok(Some(Line::Begin(Begin { windlass_export: FORMAT, .. }))) => {}
        Ok(Some(Line::Begin(begin))) => bail!(
            "{} has format {}, and this program reads format {FORMAT}; use windlass {} or newer",
            file.display(),
            begin.windlass_export,
            begin.program
        ),
        _ => bail!("{} was not written by `windlass export`", file.display()),
    }
    loop {
        let Some(line) = lines.next()? else {
            bail!("{} is incomplete: it ends after {} lines without a digest", file.display(), lines.number)
        };
        bar.inc(lines.text.len() as u64);
        match &line {
            Line::Begin(_) => bail!("{} begins twice", file.display()),
            Line::Record(_) => found.records += 1,
            Line::Job(_) => found.jobs += 1,
            Line::Log(_) => found.logs += 1,
            Line::Event(..) => found.events += 1,
            Line::End(end) => {
                found.last_event = end.last_event;
                found.sha256 = windlass_api::hex(&hash.finalize());
                ensure!(found == *end, "{} is damaged: its digest does not fit its lines", file.display());
                ensure!(lines.next()?.is_none(), "{} goes on behind its end", file.display());
                bar.finish_and_clear();
                return Ok(found);
            }
        }
        hash.update(&lines.text);
    }
}

async fn write(store: &dyn Bulk, file: &Path, wanted: &End) -> anyhow::Result<()> {
    let bar = output::bar(Some(wanted.lines()), "importing");
    let mut lines = Lines::open(file)?;
    let (mut rows, mut count, mut bytes) = (Rows::default(), 0, 0);
    while let Some(line) = lines.next()? {
        match line {
            Line::Begin(_) => continue,
            Line::Record(record) => rows.records.push(record.into()),
            Line::Job(job) => rows.jobs.push(job.into_rows()),
            Line::Log(log) => rows.logs.push(log.into()),
            Line::Event(number, event) => rows.events.push((number, event)),
            Line::End(end) => rows.last_event = end.last_event,
        }
        count += 1;
        bytes += lines.text.len();
        if count >= BATCH_LINES || bytes >= BATCH_BYTES {
            store.insert(std::mem::take(&mut rows)).await?;
            bar.inc(count as u64);
            (count, bytes) = (0, 0);
        }
    }
    store.insert(rows).await?;
    bar.finish_and_clear();
    Ok(())
}
