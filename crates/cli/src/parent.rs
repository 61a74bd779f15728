//! Children that end with their parent, even when it is killed and can tell nobody.
//!
//! The parent holds the other end of the child's standard input and never writes to it. When the parent is gone, however it
//! went, the kernel closes that end, and the child asks itself to stop.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    io::{Read, stdin},
    thread,
    time::Duration,
};
use tokio::process::{Child, Command};

/// Tells a child to watch its standard input.
const VARIABLE: &str = "WINDLASS_ENDS_WITH_PARENT";
/// For what it holds, before it is over.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a child that ends when this process does.
pub fn spawn(command: &mut Command) -> std::io::Result<Child> {
    let mut child = command.env(VARIABLE, "1").stdin(std::process::Stdio::piped()).spawn()?;
    // Closed by our end and by nothing else; waiting for the child would close it.
    std::mem::forget(child.stdin.take());
    Ok(child)
}

/// In a child: begins to watch, where its parent wants that.
pub fn watch() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    thread::spawn(|| {
        let mut byte = [0];
        while matches!(stdin().read(&mut byte), Ok(1)) {}
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            // Nothing is left to be done about a process that cannot even end itself.
            kill(Pid::this(), signal).ok();
            thread::sleep(PATIENCE);
        }
    });
}
