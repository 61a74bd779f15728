//! Folders of definitions: their files, what became of them, and that a change is noticed.

use notify::{RecursiveMode, Watcher};
use rustix::fs::OFlags;
use std::{
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::sync::mpsc;
use windlass_yaml::Fault;

const FILES_MAX: usize = 10_000;
/// Editors write a file in several steps; only what stayed unchanged for so long is read.
const QUIET: Duration = Duration::from_millis(300);

/// What became of a folder's files.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Names that got a new version.
    pub changed: Vec<String>,
    pub unchanged: usize,
    pub faults: Vec<InFile>,
}

/// One file that cannot be used, and where it goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFile {
    pub file: PathBuf,
    pub fault: Fault,
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, Fault { line, column, .. }, why) = (self.file.display(), &self.fault, self.fault.sentence());
        match line {
            0 => write!(f, "{file}: {why}"),
            _ => write!(f, "{file}:{line}:{column}: {why}"),
        }
    }
}

/// Reads a file of a folder: a regular file of text with no more than so many bytes, whatever it says about its size and however it
/// grows meanwhile. Nothing else is waited for or read, neither a pipe nor a device, even if it took the file's place after the
/// folder was listed.
pub fn read(path: &Path, bytes_max: usize) -> io::Result<String> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refused("this is not a regular file".into()));
    }
    let mut bytes = Vec::new();
    let size = file.metadata()?.len();
    if size <= bytes_max as u64 {
        // One more than allowed, to see whether it has grown.
        file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    }
    if size.max(bytes.len() as u64) > bytes_max as u64 {
        return Err(refused(format!("the file is larger than {bytes_max} bytes, the most that is read")));
    }
    String::from_utf8(bytes).map_err(|_| refused("the file is not valid UTF-8".into()))
}

pub fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let wanted = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("yaml" | "yml" | "json")) && path.is_file()
    };
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(wanted).take(FILES_MAX).collect();
    files.sort();
    Ok(files)
}

/// Loads something again whenever its folder changes, and tells what became of it.
pub fn on_change<L: Future<Output = Loaded> + Send>(
    folder: &Path,
    load: impl Fn() -> L + Send + Sync + 'static,
    tell: impl Fn(&Loaded) + Send + Sync + 'static,
) -> notify::Result<Watch> {
    let (load, tell) = (Arc::new(load), Arc::new(tell));
    notice(folder, move || {
        let (load, tell) = (load.clone(), tell.clone());
        async move { tell(&load().await) }
    })
}

/// Acts whenever something in a folder has changed and then stayed the same for a moment, until the watch is dropped.
pub fn notice<F: Future<Output = ()> + Send>(
    folder: &Path,
    act: impl Fn() -> F + Send + 'static,
) -> notify::Result<Watch> {
    let (changed, mut changes) = mpsc::channel::<()>(1);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // A full channel knows already.
            let _ = changed.try_send(());
        }
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    let task = tokio::spawn(async move {
        while changes.recv().await.is_some() {
            while let Ok(Some(())) = tokio::time::timeout(QUIET, changes.recv()).await {}
            act().await;
        }
    });
    Ok(Watch { _watcher: watcher, task })
}

/// Ends the watch when it goes.
pub struct Watch {
    _watcher: notify::RecommendedWatcher,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
