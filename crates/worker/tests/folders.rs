//! Whose folder the commands of jobs start in.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
    path::Path,
    process::{Command, Output},
};

const STRANGER: u32 = 54_321;

fn worker(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass-worker"));
    // Nobody listens there: a worker that does not mind its folder would try for ever.
    command.args(["--server", "http://127.0.0.1:1", "--token", "t", "--exec", "true"]);
    in_home(command, home)
}

fn runner(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_silorunner"));
    command.args(["--config", "/nowhere.yaml"]);
    command.env("SILO_RUNNER_SERVER_URL", "http://127.0.0.1:1").env("SILO_RUNNER_TOKEN", "silo_runner_x");
    in_home(command, home)
}

fn in_home(mut command: Command, home: &Path) -> Command {
    command
        .env("HOME", home)
        .env("TMPDIR", home.join("tmp"))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("WINDLASS_WORK_DIR");
    command
}

/// Ends by itself, because it is not killed while it waits.
fn refused(command: &mut Command, code: i32, words: &[&str]) {
    let Output { status, stderr, .. } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

#[test]
fn a_default_working_folder_that_somebody_else_made_is_refused() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: only root can make a folder of another user");
    }
    let home = tempfile::tempdir().unwrap();
    let theirs = |folder: &Path| {
        fs::create_dir_all(folder).unwrap();
        chown(folder, Some(STRANGER), Some(STRANGER)).unwrap();
    };
    for program in ["windlass-work", "silorunner"] {
        theirs(&home.path().join(format!(".cache/windlass/{program}")));
        theirs(&home.path().join(format!("tmp/{program}-0")));
    }
    let words = ["belongs to user 54321", ".cache/windlass", "tmp/", "--work-dir"];
    refused(&mut worker(home.path()), 1, &words);
    refused(&mut runner(home.path()), 2, &words);
    let named = home.path().join("tmp/windlass-work-0");
    refused(worker(home.path()).env("WINDLASS_WORK_DIR", &named), 1, &["belongs to user 54321"]);
    refused(runner(home.path()).env("SILO_RUNNER_WORK_DIR", &named), 2, &["work_dir", "belongs to user 54321"]);
}

#[test]
fn a_working_folder_that_is_a_link_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (target, user) = (home.path().join("target"), nix::unistd::Uid::effective());
    fs::create_dir_all(home.path().join(".cache/windlass")).unwrap();
    fs::create_dir_all(home.path().join("tmp")).unwrap();
    fs::create_dir(&target).unwrap();
    for program in ["windlass-work", "silorunner"] {
        symlink(&target, home.path().join(format!(".cache/windlass/{program}"))).unwrap();
        symlink(&target, home.path().join(format!("tmp/{program}-{user}"))).unwrap();
    }
    refused(&mut worker(home.path()), 1, &["is a link"]);
    refused(&mut runner(home.path()), 2, &["is a link"]);
    let named = home.path().join(".cache/windlass/silorunner");
    refused(worker(home.path()).env("WINDLASS_WORK_DIR", &named), 1, &["is a link"]);
    refused(runner(home.path()).env("SILO_RUNNER_WORK_DIR", &named), 2, &["work_dir", "is a link"]);
    assert!(fs::read_dir(&target).unwrap().next().is_none(), "nothing was put where the link leads");
}
