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
fn candidates(program: &str, user: u32, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let own = cache.map(|cache| cache.join("windlass").join(program));
    let temporary = absolute("TMPDIR").unwrap_or_else(|| "/tmp".into());
    own.into_iter().chain([temporary.join(format!("{program}-{user}"))]).collect()
}

/// The first that can be used. A home that is somebody else's (`sudo` keeps it) or that does not exist is passed over.
fn default(candidates: Vec<PathBuf>, user: u32) -> Result<PathBuf> {
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
fn above(folder: &Path, user: u32) -> Result<()> {
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
fn claim(folder: &Path, user: u32, private: bool) -> Result<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    fn user() -> u32 {
        Uid::effective().as_raw()
    }

    fn mode(folder: &Path) -> u32 {
        folder.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn a_working_folder_that_is_a_link_or_a_file_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let (target, link, nowhere, file) =
            (here.path().join("t"), here.path().join("l"), here.path().join("n"), here.path().join("f"));
        fs::create_dir(&target).unwrap();
        symlink(&target, &link).unwrap();
        symlink(here.path().join("missing"), &nowhere).unwrap();
        fs::write(&file, "").unwrap();
        for (folder, words) in [(&link, "is a link"), (&nowhere, "is a link"), (&file, "not a folder")] {
            for private in [true, false] {
                let why = format!("{:#}", claim(folder, user(), private).unwrap_err());
                assert!(why.contains(words) && why.contains(folder.to_str().unwrap()), "{why}");
            }
        }
        // A link further up is the operator's own business.
        assert_eq!(claim(&link.join("work"), user(), false).unwrap(), target.canonicalize().unwrap().join("work"));
    }

    #[test]
    fn a_working_folder_of_another_user_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let before = mode(here.path());
        let why = claim(here.path(), user() + 1, true).unwrap_err().to_string();
        assert!(why.contains(&format!("belongs to user {}", user())), "{why}");
        assert_eq!(mode(here.path()), before, "and it is left alone");
    }

    #[test]
    fn a_working_folder_of_ones_own_is_closed_to_others() {
        let here = tempfile::tempdir().unwrap();
        let open = |mode| fs::set_permissions(here.path(), Permissions::from_mode(mode)).unwrap();
        for (before, private, after) in [(0o777, true, 0o700), (0o755, true, 0o700), (0o777, false, 0o755)] {
            open(before);
            claim(here.path(), user(), private).unwrap();
            assert_eq!(mode(here.path()), after);
        }
        let new = claim(&here.path().join("a/b"), user(), false).unwrap();
        assert_eq!((mode(&new), mode(new.parent().unwrap())), (0o700, 0o700));
    }

    #[test]
    fn the_default_lies_where_nobody_else_can_exchange_it() {
        let here = tempfile::tempdir().unwrap();
        let (open, home) = (here.path().join("open"), here.path().join("home"));
        fs::create_dir(&open).unwrap();
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        let why = above(&open.join("work"), user()).unwrap_err().to_string();
        assert!(why.contains("anybody may exchange"), "{why}");
        fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        above(&open.join("work"), user()).unwrap();
        let found = default(vec!["/proc/nowhere/work".into(), home.join("a/work")], user()).unwrap();
        assert_eq!((found.ends_with("home/a/work"), mode(&found)), (true, 0o700));
        let variables = |name: &str| match name {
            "HOME" => Some(home.clone()),
            "XDG_CACHE_HOME" => Some("relative".into()),
            _ => None,
        };
        let places = candidates("work", 7, variables);
        assert_eq!(places, [home.join(".cache/windlass/work"), "/tmp/work-7".into()]);
    }
}
