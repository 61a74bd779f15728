//! Whether a store may be served: what `doctor` calls bad is not, as far as that can be found out within a second or so.

use anyhow::{Context, bail};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use windlass_engine::Store;

/// What to do about damage.
pub const ADVICE: &str = "Restore a backup, and keep the damaged data for inspection.";
/// A larger database is not read through at every start.
const CHECKED_BYTES_MAX: u64 = 32 << 20;
const OTHERS: u32 = 0o077;

/// Files that hold secrets, and their permissions where others may read or write them.
pub fn open_to_others(folder: &Path) -> Vec<(PathBuf, u32)> {
    let files = ["windlass.db", "admin.token"].map(|name| folder.join(name));
    let mode = |file: &PathBuf| fs::metadata(file).ok().map(|about| about.permissions().mode() & 0o777);
    files
        .into_iter()
        .filter_map(|file| Some((mode(&file)?, file)))
        .map(|(mode, file)| (file, mode))
        .filter(|(_, mode)| mode & OTHERS != 0)
        .collect()
}

/// A server closes its files to others itself; some ways to mount or copy them open them.
pub fn close_to_others(folder: &Path) -> anyhow::Result<()> {
    for (file, mode) in open_to_others(folder) {
        tracing::warn!(file = %file.display(), mode = format!("{mode:o}"), "others could read or write this file; closing it to them");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode & !OTHERS)).with_context(|| {
            let shown = file.display();
            format!("{shown} holds secrets and can be read or written by others (mode {mode:o}); as its owner: chmod 600 {shown}")
        })?;
    }
    Ok(())
}

/// Reads everything in a database that is not large, as `doctor` does, and refuses what is damaged.
pub async fn check(store: &dyn Store, folder: &Path) -> anyhow::Result<()> {
    let size = fs::metadata(folder.join("windlass.db")).map_or(0, |about| about.len());
    if size > CHECKED_BYTES_MAX {
        tracing::debug!(size, "not read through at this start; `windlass doctor` does it while no server runs");
        return Ok(());
    }
    let problems = store.check().await?;
    let Some(first) = problems.first() else { return Ok(()) };
    let (count, shown) = (problems.len(), folder.display());
    bail!(
        "the data in {shown} are damaged (check of integrity: {count} problems, the first: {first}). {ADVICE} \
         `windlass doctor --data {shown}` checks again."
    )
}
