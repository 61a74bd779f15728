//! The log under the ceiling: written and synced by one thread, as much as waits at a time.

use anyhow::{Context, anyhow};
use bytes::Bytes;
use std::{fs::File, os::unix::fs::FileExt, path::Path, sync::mpsc, thread};
use tokio::sync::oneshot;

/// The file has its full size from the start and is written over in a circle: a file that grows costs more with each sync.
const SIZE: u64 = 32 << 20;

pub struct Log(mpsc::Sender<Entry>);

struct Entry {
    bytes: Bytes,
    written: oneshot::Sender<()>,
}

impl Log {
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let file = File::create(folder.join("log")).context("the log cannot be created")?;
        let zeros = vec![0; 1 << 20];
        for at in (0..SIZE).step_by(zeros.len()) {
            file.write_all_at(&zeros, at)?;
        }
        file.sync_all()?;
        let (sender, entries) = mpsc::channel();
        thread::Builder::new().name("ceiling-log".into()).spawn(move || keep(&file, &entries))?;
        Ok(Self(sender))
    }

    /// Returns when the bytes are on disk.
    pub async fn append(&self, bytes: Bytes) -> anyhow::Result<()> {
        let (written, done) = oneshot::channel();
        self.0.send(Entry { bytes, written }).map_err(|_| anyhow!("the log is closed"))?;
        done.await.map_err(|_| anyhow!("the log could not be written"))
    }
}

/// Ends with the first error, and with it everybody who waits.
fn keep(file: &File, entries: &mpsc::Receiver<Entry>) {
    let (mut at, mut buffer) = (0, Vec::new());
    while let Ok(first) = entries.recv() {
        let group: Vec<Entry> = std::iter::once(first).chain(entries.try_iter()).collect();
        buffer.clear();
        for entry in &group {
            buffer.extend((entry.bytes.len() as u64).to_le_bytes());
            buffer.extend(&entry.bytes);
        }
        if at + buffer.len() as u64 > SIZE {
            at = 0;
        }
        if file.write_all_at(&buffer, at).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        at += buffer.len() as u64;
        for entry in group {
            _ = entry.written.send(());
        }
    }
}
