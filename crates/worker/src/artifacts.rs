//! Files that a command leaves for its job in the folder `$WINDLASS_ARTIFACTS`. The worker uploads them under the job's lease, so
//! that commands need no token.

use crate::{digest::digest, folder::Folder};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::io::ReaderStream;
use windlass_sdk::{Error, api::artifact::UploadArtifact, worker::JobContext};

pub const VARIABLE: &str = "WINDLASS_ARTIFACTS";
/// More than this one command does not mean to leave.
const FILES_MAX: usize = 1_000;
const TRIES: u32 = 5;

/// Uploads them all; the text says what could not be.
pub async fn upload(job: &JobContext, folder: &Folder) -> Result<(), String> {
    for (name, file) in found(folder)? {
        let uploaded = insist(job, &name, &file).await;
        uploaded.map_err(|error| format!("the artifact {name:?} cannot be uploaded: {error}"))?;
    }
    Ok(())
}

/// In the order of their names.
fn found(folder: &Folder) -> Result<Vec<(String, PathBuf)>, String> {
    let unread = |error: std::io::Error| format!("the folder {VARIABLE} cannot be read: {error}");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder.artifacts()).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name =
            entry.file_name().into_string().map_err(|name| format!("the artifact {name:?} has no UTF-8 name"))?;
        // Not through links: those could lead to what is not the job's.
        if !entry.file_type().map_err(unread)?.is_file() {
            return Err(format!(
                "the artifact {name:?} is not a regular file; pack folders first, for example with tar"
            ));
        }
        files.push((name, entry.path()));
        if files.len() > FILES_MAX {
            return Err(format!(
                "there are more than {FILES_MAX} artifacts in {VARIABLE}; pack them, for example with tar"
            ));
        }
    }
    files.sort();
    Ok(files)
}

enum Trouble {
    Read(std::io::Error),
    Server(Error),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Read(error) => error.fmt(f),
            Trouble::Server(error) => error.fmt(f),
        }
    }
}

async fn one(job: &JobContext, name: &str, file: &Path) -> Result<(), Trouble> {
    let (size, sha256) = digest(file).await.map_err(Trouble::Read)?;
    let about = UploadArtifact { namespace: None, name: name.to_owned(), job: Some(job.id()), sha256: Some(sha256) };
    let opened = tokio::fs::File::open(file).await.map_err(Trouble::Read)?;
    let (lease, body) = (job.leased().lease.as_str(), ReaderStream::with_capacity(opened, 256 << 10));
    let uploaded = job.client().upload_under(Some(lease), &about, None, Some(size), body).await;
    uploaded.map(drop).map_err(Trouble::Server)
}

/// Repeats what may succeed later, unless the job has to end.
async fn insist(job: &JobContext, name: &str, file: &Path) -> Result<(), Trouble> {
    let mut tries = 1;
    loop {
        match one(job, name, file).await {
            Err(Trouble::Server(error)) if error.is_temporary() && tries < TRIES && job.stop_reason().is_none() => {
                let wait = error.retry_after().unwrap_or(Duration::from_millis(200 << tries));
                // If the last try fails too, the job's error or log says so.
                tracing::debug!(job = %job.id(), %error, "an artifact could not be uploaded, retrying");
                tokio::time::sleep(wait.min(Duration::from_secs(10))).await;
                tries += 1;
            }
            answer => return answer,
        }
    }
}
