//! The working folder of one attempt.

use std::{
    fs::{self, DirBuilder},
    io::{self, Read},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// A result larger than this is not even read; the server takes less.
const RESULT_BYTES_MAX: u64 = 16 << 20;

/// `payload.json` and `result.json` beside the folder the command starts in, so that they are in nobody's way. Removed when
/// dropped, unless it is to be kept.
pub struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// `name` is unlike every other attempt's.
    pub fn create(below: &Path, name: &str, payload: &str, cwd: &Path) -> io::Result<Self> {
        let path = below.join(name);
        // Left behind by a worker that was killed, or somebody else's: then it cannot be removed, and that is said.
        if path.symlink_metadata().is_ok() {
            fs::remove_dir_all(&path)?;
        }
        let mut builder = DirBuilder::new();
        // One that is there is an error: it is not ours.
        builder.mode(0o700).create(&path)?;
        let folder = Self { path, keep: false };
        builder.recursive(true).create(folder.files().join(cwd))?;
        fs::write(folder.payload(), payload)?;
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
    pub fn files(&self) -> PathBuf {
        self.path.join("files")
    }
    pub fn payload(&self) -> PathBuf {
        self.path.join("payload.json")
    }
    pub fn result(&self) -> PathBuf {
        self.path.join("result.json")
    }

    /// Where the command may put files for the job to keep.
    pub fn artifacts(&self) -> PathBuf {
        self.path.join("artifacts")
    }

    /// What the jobs before this one handed on; only where there is such a thing.
    pub fn upstream(&self) -> PathBuf {
        self.path.join("upstream.json")
    }
    /// Where the command may write what it hands on, a line each.
    pub fn outputs(&self) -> PathBuf {
        self.path.join("outputs")
    }

    /// What the command wrote as its result; none where it wrote nothing.
    pub fn read_result(&self) -> io::Result<Option<String>> {
        read_written(&self.result())
    }

    pub fn read_outputs(&self) -> io::Result<Option<String>> {
        read_written(&self.outputs())
    }

    pub fn keep(&mut self) {
        self.keep = true;
    }
}

/// A command that is still at work may make it larger while it is read.
fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(RESULT_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > RESULT_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {RESULT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// A file that a command may have written; none where there is nothing in it.
pub fn read_written(path: &Path) -> io::Result<Option<String>> {
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => Err(io::Error::other("it is not a regular file")),
        Ok(meta) if meta.len() > RESULT_BYTES_MAX => {
            Err(io::Error::other(format!("{} bytes are too many", meta.len())))
        }
        Ok(_) => read_bounded(path).map(|text| Some(text).filter(|text| !text.trim().is_empty())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, folder = %self.path.display(), "a working folder could not be removed");
        }
    }
}
