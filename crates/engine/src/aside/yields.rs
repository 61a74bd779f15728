//! How far a thread yields to others.
//!
//! A kernel lets a thread that has just got a processor keep it for some milliseconds, however little it counts: whoever
//! wakes up meanwhile, as after each write to the disk, waits for that. Only threads of the class for idle time are taken
//! off at once. But those get nothing at all while other programs keep the machine busy, and cannot leave their class; so
//! they are replaced by threads that yield less where that is seen.
//!
//! And none is taken off in the middle of what a kernel does for it, such as making room for megabytes. So all of them
//! leave one processor to those that answer requests and write, where there are several.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// From 0, which is as all others, to 19.
    By(i32),
    /// Runs where nobody else does, as long as there is such time at all.
    ToAll,
}

/// How far threads yield that would starve if they yielded to all.
pub(super) const BUSY_MACHINE: i32 = 15;
/// So much time in which a thread at work hardly had a processor is a sign that others keep it busy.
pub(super) const STARVED_FOR: Duration = Duration::from_millis(200);
/// One part in so many of the time is hardly anything.
const HARDLY: u32 = 20;
/// How long a machine is taken for busy.
const REMEMBERED: Duration = Duration::from_secs(600);

impl Yields {
    /// For the thread that calls it.
    pub(super) fn begin(self) {
        leave_a_processor();
        match self {
            Self::By(by) => yield_to_others(by),
            Self::ToAll => yield_to_all(),
        }
    }
}

/// Linux counts a thread as a process here; elsewhere it stays as it is.
pub fn yield_to_others(by: i32) {
    #[cfg(not(target_os = "linux"))]
    let _ = by;
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, by) {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

/// For the thread that calls it: it runs on all processors but one, which is the same for all that call this.
pub fn leave_a_processor() {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        // Worked out once: a thread begins with what whoever started it was left with.
        static OTHERS: std::sync::OnceLock<Option<CpuSet>> = std::sync::OnceLock::new();
        let others = OTHERS.get_or_init(|| {
            let mut all = sched_getaffinity(None).ok().filter(|all| all.count() > 1)?;
            let first = (0..CpuSet::MAX_CPU).find(|at| all.is_set(*at))?;
            all.unset(first);
            Some(all)
        });
        if let Some(Err(error)) = others.as_ref().map(|others| sched_setaffinity(None, others)) {
            tracing::debug!(%error, "a thread stays on all processors");
        }
    }
}

/// For the thread that calls it, and for good.
pub fn yield_to_all() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, unix};
        let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let set = || unix::set_thread_priority_and_policy(unix::thread_native_id(), ThreadPriority::Min, policy);
        // Where nobody could tell that it starves, it takes part.
        if Waits::now().is_none() || set().is_err() {
            yield_to_others(BUSY_MACHINE);
        }
    }
}

/// A piece of work, as the scheduler saw it.
pub(super) struct Stint(Option<Waits>);

impl Stint {
    pub(super) fn begin() -> Self {
        Self(Waits::now())
    }

    pub(super) fn starved(&self) -> bool {
        self.0.zip(Waits::now()).is_some_and(|(before, after)| after.since(before).starved())
    }
}

/// How long a thread had a processor, and how long it waited for one. Waiting for a disk is neither.
#[derive(Clone, Copy, Debug)]
struct Waits {
    ran: Duration,
    waited: Duration,
}

impl Waits {
    /// Of the thread that asks. None: this system does not tell.
    fn now() -> Option<Self> {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut times = told.split(' ').map_while(|field| field.parse().ok().map(Duration::from_nanos));
        Some(Self { ran: times.next()?, waited: times.next()? })
    }

    fn since(self, before: Self) -> Self {
        Self { ran: self.ran.saturating_sub(before.ran), waited: self.waited.saturating_sub(before.waited) }
    }

    fn starved(self) -> bool {
        self.waited >= STARVED_FOR && self.ran * HARDLY < self.waited
    }
}

/// Whether the threads of a pool get anywhere.
#[derive(Default)]
pub(super) struct Starving {
    at_work: usize,
    /// When work was last begun or done.
    moved: Option<Instant>,
    /// When a thread last starved.
    pub(super) seen: Option<Instant>,
}

impl Starving {
    pub(super) fn taken(&mut self) {
        self.at_work += 1;
        self.moved = Some(Instant::now());
    }

    pub(super) fn worked(&mut self, starved: bool) {
        self.at_work -= 1;
        self.moved = Some(Instant::now());
        if starved {
            self.seen = self.moved;
        }
    }

    /// Threads are at work, and nothing was begun or done for so long that another should try.
    pub(super) fn stuck(&self) -> bool {
        self.at_work > 0 && self.moved.is_some_and(|at| at.elapsed() >= STARVED_FOR * 5)
    }

    /// How far the next thread yields.
    pub(super) fn next(&self, wanted: Yields) -> Yields {
        let busy = self.stuck() || self.seen.is_some_and(|at| at.elapsed() < REMEMBERED);
        if busy && wanted == Yields::ToAll { Yields::By(BUSY_MACHINE) } else { wanted }
    }
}
