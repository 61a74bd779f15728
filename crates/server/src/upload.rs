//! A file on its way in.
//!
//! It is taken in steps: each is hashed, written and synced on a thread of its own kind before the next one is read, so that
//! an acknowledged file is on disk, and a large one keeps nobody waiting for the disk longer than a step takes. While others
//! wait for the disk as well, a namespace that uploads rests after each step. In a folder the file has a name that marks it as
//! unfinished until it is whole.

use crate::{
    app::App,
    content,
    problem::{Code, Problem, Result},
};
use bytes::{Bytes, BytesMut};
use object_store::{ObjectStoreExt, WriteMultipart};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Handle;
use windlass_api::Uuid;
use windlass_core::Namespace;
use windlass_engine::{
    Engine,
    aside::{Aside, Pool, Yields},
};

/// Bytes between two looks whether somebody else needs the disk.
const STEP: usize = 256 << 10;
/// How many times as long as a step took a namespace rests, if others used the disk meanwhile.
const REST: u32 = 7;
const REST_MAX: Duration = Duration::from_millis(250);
/// Object stores want parts of some size.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 2;
const WAITING_MAX: usize = 1_000;

/// Memory that one upload takes.
pub const IN_FOLDER: usize = 3 * STEP;
pub const IN_STORE: usize = (PARTS_AT_ONCE + 1) * PART_BYTES + STEP;

/// The threads that write files.
pub struct Writers(Aside);

impl Default for Writers {
    fn default() -> Self {
        Self(Aside::new(Pool { name: "windlass-files", threads: 2, yields: Yields::ToAll, waiting_max: WAITING_MAX }))
    }
}

pub struct Upload<'a> {
    app: &'a App,
    namespace: &'a Namespace,
    /// None only while a step is written.
    hash: Option<Sha256>,
    waiting: BytesMut,
    to: To,
}

enum To {
    Folder(Staged),
    Store(WriteMultipart),
}

/// A file in a folder that is not whole yet. It goes with this, unless it was finished.
struct Staged {
    file: Option<File>,
    at: PathBuf,
    becomes: PathBuf,
    synced: bool,
    finished: bool,
}

impl Staged {
    fn remove(&mut self) {
        self.finished = true;
        drop(fs::remove_file(&self.at));
    }
}

/// The caller went away. Removing a large file takes longer than a request may hold its thread.
impl Drop for Staged {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let at = std::mem::take(&mut self.at);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || fs::remove_file(at))),
            Err(_) => drop(fs::remove_file(at)),
        }
    }
}

impl<'a> Upload<'a> {
    pub async fn begin(app: &'a App, namespace: &'a Namespace, id: Uuid) -> Result<Self> {
        let (files, place) = (content::files_of(app)?, content::place(id));
        let to = match files.folder() {
            Some(folder) => {
                let (becomes, synced) = (folder.join(place.as_ref()), files.is_synced());
                let staged = app.writers.0.run(Some(namespace), move || stage(becomes, synced)).await;
                To::Folder(staged.map_err(undone)?.map_err(|error| content::broken(&error))?)
            }
            None => {
                let upload = files.store().put_multipart(&place).await.map_err(|error| content::broken(&error))?;
                To::Store(WriteMultipart::new_with_chunk_size(upload, PART_BYTES))
            }
        };
        Ok(Self { app, namespace, hash: Some(Sha256::new()), waiting: BytesMut::new(), to })
    }

    pub async fn put(&mut self, piece: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(piece);
        while self.waiting.len() >= STEP {
            let step = self.waiting.split_to(STEP).freeze();
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: Bytes) -> Result<()> {
        let mut hash = self.hash.take().ok_or_else(failed)?;
        let (mut file, synced) = match &mut self.to {
            To::Folder(staged) => (Some(staged.file.take().ok_or_else(failed)?), staged.synced),
            To::Store(_) => (None, false),
        };
        let (engine, kept) = (self.app.engine.clone(), step.clone());
        let work = move || {
            let (begun, syncs) = (Instant::now(), syncs(&engine));
            hash.update(&step);
            let written = file.as_mut().map_or(Ok(()), |file| write(file, &step, synced));
            if syncs != self::syncs(&engine) {
                thread::sleep((begun.elapsed() * REST).min(REST_MAX));
            }
            (hash, file, written)
        };
        let (hash, file, written) = self.app.writers.0.run(Some(self.namespace), work).await.map_err(undone)?;
        written.map_err(|error| content::broken(&error))?;
        self.hash = Some(hash);
        match &mut self.to {
            To::Folder(staged) => staged.file = file,
            To::Store(upload) => {
                upload.wait_for_capacity(PARTS_AT_ONCE).await.map_err(|error| content::broken(&error))?;
                upload.put(kept);
            }
        }
        Ok(())
    }

    /// Everything has come: the file's digest, to be compared before it is kept.
    pub async fn digest(&mut self) -> Result<String> {
        let rest = self.waiting.split().freeze();
        self.step(rest).await?;
        let hash = self.hash.take().ok_or_else(failed)?;
        Ok(windlass_api::hex(&hash.finalize()))
    }

    /// Safe from here on.
    pub async fn keep(self) -> Result<()> {
        match self.to {
            To::Folder(staged) => {
                let kept = self.app.writers.0.run(Some(self.namespace), move || keep(staged)).await;
                kept.map_err(undone)?.map_err(|error| content::broken(&error))
            }
            To::Store(upload) => upload.finish().await.map(drop).map_err(|error| content::broken(&error)),
        }
    }

    /// Nothing of it stays.
    pub async fn give_up(self) {
        match self.to {
            To::Folder(mut staged) => drop(self.app.writers.0.run(Some(self.namespace), move || staged.remove()).await),
            To::Store(upload) => {
                if let Err(error) = upload.abort().await {
                    tracing::warn!(%error, "an incomplete upload could not be removed; the next sweep tries again");
                }
            }
        }
    }
}

fn syncs(engine: &Engine) -> u64 {
    engine.tally().sync.observed().count
}

fn undone(undone: windlass_engine::aside::Undone) -> Problem {
    Problem::new(Code::Unavailable, undone.to_string()).retry_after(500)
}

fn failed() -> Problem {
    Problem::new(Code::Unavailable, "an earlier part of this upload could not be written")
}

/// The mark that a file is not whole is one that object stores in folders pass over.
fn stage(becomes: PathBuf, synced: bool) -> io::Result<Staged> {
    let mut at = becomes.clone().into_os_string();
    at.push("#1");
    let at = PathBuf::from(at);
    let open = || OpenOptions::new().write(true).create_new(true).open(&at);
    let file = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let part = parent(&at)?;
            fs::create_dir_all(part)?;
            if synced {
                sync_folder(parent(part)?)?;
            }
            open()?
        }
        opened => opened?,
    };
    Ok(Staged { file: Some(file), at, becomes, synced, finished: false })
}

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

fn write(file: &mut File, step: &[u8], synced: bool) -> io::Result<()> {
    file.write_all(step)?;
    if synced { file.sync_data() } else { Ok(()) }
}

fn keep(mut staged: Staged) -> io::Result<()> {
    drop(staged.file.take());
    fs::rename(&staged.at, &staged.becomes)?;
    staged.finished = true;
    if staged.synced { sync_folder(parent(&staged.becomes)?) } else { Ok(()) }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
