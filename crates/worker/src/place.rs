//! The folder in which attempts get their working folders.
//!
//! Whoever owns that folder, or a folder above it, decides what runs in it. So the default one lies where nobody else can put
//! something in its place, and any one that belongs to somebody else, or is a link, is refused.

use anyhow::{Context, Result, bail, ensure};
use nix::{
    libc::{O_DIRECTORY, O_NOFOLLOW},
    unistd::Uid,
};
use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

const PRIVATE: u32 = 0o700;
const OTHERS_MAY_WRITE: u32 = 0o022;
const ANYBODY_MAY_WRITE: u32 = 0o002;
/// In such a folder everybody may make things, but only their owners may rename or remove them.
const STICKY: u32 = 0o1000;

/// The folder an operator named, else the user's own, made where it is missing. Absolute, and free of links.
pub fn prepare(given: Option<&Path>, program: &str) -> Result<PathBuf> {
    let user = Uid::effective().as_raw();
    match given {
        Some(folder) => claim(folder, user, false),
        None => default(candidates(program, user, |name| std::env::var_os(name).map(PathBuf::from)), user),
    }
}

/// Where the default folder may be, the best first: where only this user makes things, else the temporary folder.
pub fn candidates(program: &str, user: u32, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let own = cache.map(|cache| cache.join("windlass").join(program));
    let temporary = absolute("TMPDIR").unwrap_or_else(|| "/tmp".into());
    own.into_iter().chain([temporary.join(format!("{program}-{user}"))]).collect()
}

/// The first that can be used. A home that is somebody else's (`sudo` keeps it) or that does not exist is passed over.
pub fn default(candidates: Vec<PathBuf>, user: u32) -> Result<PathBuf> {
    let mut refusals = Vec::new();
    for folder in candidates {
        match above(&folder, user).and_then(|()| claim(&folder, user, true)) {
            Ok(folder) => return Ok(folder),
            Err(error) => refusals.push(format!("{error:#}")),
        }
    }
    bail!("no working folder: {}; name one of your own with --work-dir (silorunner: work_dir)", refusals.join("; "))
}

/// Refuses a place in which somebody else could exchange the folder for another one.
pub fn above(folder: &Path, user: u32) -> Result<()> {
    let existing = folder.ancestors().skip(1).find(|above| above.exists());
    let existing = existing.with_context(|| format!("there is nothing above {}", folder.display()))?;
    let real = existing.canonicalize().with_context(|| format!("{} cannot be read", existing.display()))?;
    for above in real.ancestors() {
        let meta = above.metadata().with_context(|| format!("{} cannot be read", above.display()))?;
        let owner = meta.uid();
        ensure!(owner == user || owner == 0, "{} belongs to user {owner}, not to user {user}", above.display());
        let open = meta.mode() & ANYBODY_MAY_WRITE != 0 && meta.mode() & STICKY == 0;
        ensure!(!open, "anybody may exchange what is in {} (mode {:o})", above.display(), meta.mode() & 0o7777);
    }
    Ok(())
}

/// Makes the folder where it is missing, and keeps others out of it.
pub fn claim(folder: &Path, user: u32, private: bool) -> Result<PathBuf> {
    let shown = folder.display();
    let made = DirBuilder::new().recursive(true).mode(PRIVATE).create(folder);
    // A link that leads nowhere exists as well; what it is comes out below.
    if let Err(error) = made
        && folder.symlink_metadata().is_err()
    {
        return Err(error).with_context(|| format!("the working folder {shown} cannot be made"));
    }
    let opened = open(folder)?;
    let meta = opened.metadata().with_context(|| format!("the working folder {shown} cannot be read"))?;
    let owner = meta.uid();
    ensure!(
        owner == user,
        "the working folder {shown} belongs to user {owner}, not to user {user}, who runs this worker; whoever owns it decides what \
         runs in it"
    );
    let mode = meta.mode() & 0o7777;
    let wanted = if private { PRIVATE } else { mode & !OTHERS_MAY_WRITE };
    if mode != wanted {
        tracing::info!(folder = %shown, from = format!("{mode:o}"), to = format!("{wanted:o}"), "removing other users' access to the working folder");
        let closed = opened.set_permissions(Permissions::from_mode(wanted));
        closed.with_context(|| format!("the working folder {shown} cannot be closed to others"))?;
    }
    folder.canonicalize().with_context(|| format!("the working folder {shown} cannot be read"))
}

fn open(folder: &Path) -> Result<File> {
    let shown = folder.display();
    if folder.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        bail!("the working folder {shown} is a link, which may lead elsewhere tomorrow; name the folder it leads to");
    }
    // Between the look and the opening it may have become one.
    let opened = OpenOptions::new().read(true).custom_flags(O_DIRECTORY | O_NOFOLLOW).open(folder);
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory => anyhow::anyhow!("the working folder {shown} is a file or a link, not a folder"),
        _ => anyhow::Error::new(error).context(format!("the working folder {shown} cannot be opened")),
    })
}
