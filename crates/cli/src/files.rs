//! Reads files that users name, no further than a limit: a file may be larger than it should be, or be a pipe that never ends.

use anyhow::{Context, ensure};
use std::{fs::File, io::Read, path::Path};

/// Certificates, tokens and settings.
pub const SMALL_MAX: u64 = 4 << 20;

pub fn read(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("{} cannot be read", path.display()))?;
    ensure!(
        bytes.len() as u64 <= bytes_max,
        "{} is larger than {bytes_max} bytes, the most that is read",
        path.display()
    );
    Ok(bytes)
}

pub fn read_text(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    String::from_utf8(read(path, bytes_max)?).with_context(|| format!("{} is not valid UTF-8", path.display()))
}
