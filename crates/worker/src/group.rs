//! Ends all processes of an attempt: the group its command leads, and on Linux also those that left the group (`setsid`,
//! daemons), which are known by the lease in their environment. One that cleared its environment as well gets away.

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

/// The variable that tells whose a process is.
pub const MARK: &str = "WINDLASS_LEASE";

/// Signals the whole group. False: there is nobody left.
pub fn signal(group: Pid, signal: Signal) -> bool {
    // A group that holds only what runs as another user cannot be signalled; nothing can be done about it here.
    !matches!(killpg(group, signal), Err(Errno::ESRCH | Errno::EPERM))
}

/// Kills whatever is left, in the group and outside of it.
pub fn kill_rest(group: Pid, lease: &str) {
    signal(group, Signal::SIGKILL);
    kill_marked(lease);
}

pub fn kill_marked(lease: &str) {
    for pid in marked(lease) {
        // Gone already, or not ours to end.
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// Processes that were started under this lease, wherever they are now.
#[cfg(target_os = "linux")]
pub fn marked(lease: &str) -> Vec<Pid> {
    let mark = format!("{MARK}={lease}").into_bytes();
    let own = Pid::this();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw);
    let is_marked = |pid: &Pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark)
    };
    pids.filter(|pid| *pid != own).filter(is_marked).collect()
}

#[cfg(not(target_os = "linux"))]
pub fn marked(_: &str) -> Vec<Pid> {
    Vec::new()
}
