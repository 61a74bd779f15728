use nix::unistd::Uid;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
};
use windlass_worker::place::{above, candidates, claim, default};

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
