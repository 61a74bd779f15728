//! Ends the jobs of a worker that was killed.
//!
//! A worker that gets SIGKILL can end nothing any more, and its lease runs out: another worker would start the job beside
//! processes that are still at it. So the worker starts a guard, tells it through a pipe which groups there are, and when the
//! pipe closes because the worker is gone, the guard kills what is left.

use crate::group;
use nix::unistd::Pid;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};
use tokio::signal::unix::{SignalKind, signal};

/// The worker's end.
pub struct Guard {
    pipe: Mutex<Option<ChildStdin>>,
    child: Mutex<Child>,
}

impl Guard {
    pub fn start(mut command: Command) -> std::io::Result<Self> {
        // A group of its own, so that what the terminal sends to the worker does not end it before the worker.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).env_clear();
        let mut child = command.spawn()?;
        let pipe = Mutex::new(child.stdin.take());
        Ok(Self { pipe, child: Mutex::new(child) })
    }

    fn tell(&self, line: &str) {
        let mut pipe = self.pipe.lock();
        if let Some(writer) = pipe.as_mut()
            && let Err(error) = writer.write_all(line.as_bytes())
        {
            tracing::warn!(%error, "the guard process has ended; if this worker is killed, its jobs keep running");
            *pipe = None;
        }
    }

    pub fn begins(&self, group: Pid, lease: &str) {
        self.tell(&format!("+ {group} {lease}\n"));
    }

    pub fn ended(&self, group: Pid) {
        self.tell(&format!("- {group}\n"));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        *self.pipe.get_mut() = None;
        drop(self.child.get_mut().wait());
    }
}

/// The guard's own program.
pub fn watch() -> ExitCode {
    // It must outlive a stop of the whole service; it ends with its pipe.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let deaf = runtime.as_ref().is_ok_and(|runtime| {
        let _context = runtime.enter();
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
            .into_iter()
            .all(|kind| signal(kind).is_ok())
    });
    if !deaf {
        eprintln!("windlass-worker: the guard cannot keep signals off; a stop of the whole service ends it early");
    }
    for (group, lease) in left(std::io::stdin().lock()) {
        group::kill_rest(Pid::from_raw(group), &lease);
    }
    ExitCode::SUCCESS
}

/// Reads until the worker is gone: the groups that were begun and did not end.
fn left(lines: impl BufRead) -> BTreeMap<i32, String> {
    let mut groups = BTreeMap::new();
    for line in lines.lines().map_while(Result::ok) {
        let mut words = line.split(' ');
        match (words.next(), words.next().and_then(|group| group.parse::<i32>().ok()), words.next()) {
            // 0 and 1 would be the guard itself, and everybody.
            (Some("+"), Some(group), Some(lease)) if group > 1 => drop(groups.insert(group, lease.to_owned())),
            (Some("-"), Some(group), None) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_left_alone() {
        let told = "+ 20 a\n+ 30 b\n- 20\n+ 0 x\n+ 1 y\ngarbage\n+ 40 c\n";
        assert_eq!(left(told.as_bytes()), BTreeMap::from([(30, "b".to_owned()), (40, "c".to_owned())]));
    }
}
