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
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// How often a guard looks for processes that were about to start.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

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

    /// A process is about to start. Said first, because the worker may be killed before it knows the group.
    pub fn starts(&self, lease: &str) {
        self.tell(&format!("? {lease}\n"));
    }

    /// The process has started; this is its group.
    pub fn begins(&self, group: Pid, lease: &str) {
        self.tell(&format!("+ {group} {lease}\n"));
    }

    /// The process could not be started.
    pub fn failed(&self, lease: &str) {
        self.tell(&format!("! {lease}\n"));
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
    let left = Left::read(std::io::stdin().lock());
    for (group, lease) in left.groups {
        group::kill_rest(Pid::from_raw(group), &lease);
    }
    if !left.starting.is_empty() {
        // A process has its environment, by which it is known, a moment after it was made.
        for _ in 0..LOOKS {
            left.starting.keys().for_each(|lease| group::kill_marked(lease));
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
    ExitCode::SUCCESS
}

/// What was not over when the worker was gone.
#[derive(Debug, Default, PartialEq)]
pub struct Left {
    /// Groups, with their leases.
    pub groups: BTreeMap<i32, String>,
    /// Leases, with the number of processes that were about to start.
    pub starting: BTreeMap<String, usize>,
}

impl Left {
    /// Reads until the worker is gone.
    pub fn read(lines: impl BufRead) -> Self {
        let mut left = Self::default();
        for line in lines.lines().map_while(Result::ok) {
            left.hear(&line);
        }
        left
    }

    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match (&words[..], words.get(1).and_then(|group| group.parse::<i32>().ok())) {
            (["?", lease], _) => *self.starting.entry((*lease).to_owned()).or_default() += 1,
            (["!", lease], _) => self.started(lease),
            // 0 and 1 would be the guard itself, and everybody.
            (["+", _, lease], Some(group)) if group > 1 => {
                self.started(lease);
                self.groups.insert(group, (*lease).to_owned());
            }
            (["-", _], Some(group)) => drop(self.groups.remove(&group)),
            _ => {}
        }
    }

    fn started(&mut self, lease: &str) {
        if let Some(count) = self.starting.get_mut(lease) {
            *count -= 1;
            self.starting.retain(|_, count| *count > 0);
        }
    }
}
