//! `windlass backup`: a copy of the embedded store, also while a server uses it.

use super::{StoreAddress, migrate::read_only};
use crate::{
    commands::{Context, Done},
    fail::code,
    output, times,
};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use windlass_api::count_of;
use windlass_engine::Store;
use windlass_stores::embedded::{Embedded, Options};

/// Copy the embedded store into a new folder, also while a server uses it.
///
/// The copy is consistent, and the command opens and checks it before it reports success. The copy is an ordinary data folder:
/// `windlass serve --data DIR` runs on it. Artifacts are copied too. The admin token is not copied: the server writes a new one. For
/// PostgreSQL use pg_dump or replication.
#[derive(Args)]
#[command(after_help = "Example:
  windlass backup /backups/windlass-$(date +%F) --data /var/lib/windlass")]
pub struct Backup {
    /// The new folder.
    folder: PathBuf,
    #[command(flatten)]
    place: StoreAddress,
}

#[derive(serde::Serialize)]
struct Copied {
    folder: PathBuf,
    bytes: u64,
    artifacts: u64,
}

impl Backup {
    pub async fn run(self, context: &Context) -> Done {
        ensure!(self.place.database.is_none(), "this copies the embedded store; for PostgreSQL use pg_dump");
        self.place.must_exist()?;
        let empty = fs::read_dir(&self.folder).map_or(true, |mut entries| entries.next().is_none());
        ensure!(empty, "{} is not empty; name a new folder", self.folder.display());
        let (from, to) = (self.place.folder(), self.folder.clone());
        let copied = tokio::task::spawn_blocking(move || copy(&from, &to)).await??;
        self.check().await?;
        context.format.one(&copied, || {
            let size = times::bytes(copied.bytes);
            format!(
                "copied {size} and {} to {}, and checked the copy",
                count_of(copied.artifacts as usize, "artifact"),
                copied.folder.display()
            )
        })?;
        Ok(code::OK)
    }

    /// A copy that cannot be opened is none. Opening also leaves it closed cleanly.
    async fn check(&self) -> anyhow::Result<()> {
        let bar = output::bar(None, "checking the copy");
        let store = Embedded::open(&self.folder, Options::default()).context("the copy cannot be opened")?;
        let problems = store.check().await?;
        bar.finish_and_clear();
        match problems.first() {
            None => Ok(()),
            Some(first) => {
                bail!("the copy is damaged, as is probably the original: {first} (and {} more)", problems.len() - 1)
            }
        }
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<Copied> {
    let failed = || format!("{} cannot be written", to.display());
    DirBuilder::new().recursive(true).mode(0o700).create(to).with_context(failed)?;
    let file = to.join("windlass.db");
    // Made here first, so that it is for its owner alone from the beginning; SQLite fills an empty file.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).with_context(failed)?;
    let bar = output::bar(None, "copying");
    // One read transaction: what was committed when it began, and nobody waits for it.
    let source = read_only(from)?;
    source
        .execute("VACUUM INTO ?1", [file.to_str().context("the folder's name must be text")?])
        .with_context(failed)?;
    drop(source);
    File::open(&file).and_then(|file| file.sync_all()).with_context(failed)?;
    let artifacts = copy_folder(&from.join("artifacts"), &to.join("artifacts"))?;
    File::open(to).and_then(|folder| folder.sync_all()).with_context(failed)?;
    bar.finish_and_clear();
    Ok(Copied { folder: to.into(), bytes: fs::metadata(&file)?.len(), artifacts })
}

/// After the database, so that what it names is there. Files that vanish meanwhile were deleted, and are not missed.
fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<u64> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(0) };
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    let mut count = 0;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            count += copy_folder(&entry.path(), &target)?;
            continue;
        }
        match fs::copy(entry.path(), &target) {
            Ok(_) => count += 1,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("{} cannot be copied", entry.path().display())),
        }
    }
    Ok(count)
}
