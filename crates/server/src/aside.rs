//! Work that takes the processor for longer than a moment, beside what answers requests: reading large bodies and
//! definitions, compiling and checking schemas, deciding turns.
//!
//! It has threads of its own, which yield to all others. Namespaces take turns, and none has more than half of the threads,
//! so one that asks for much waits for itself. What nobody waits for any more is not begun.

use crate::problem::Problem;
use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};
use tokio::sync::oneshot;
use windlass_core::Namespace;

/// What a namespace may have waiting. Each holds a request, or a turn of a run.
const WAITING_MAX: usize = 1_000;
/// Enough for whatever is nested as deep as it may be.
const STACK: usize = 8 << 20;
/// As far as a thread yields: from 0, which is as all others, to 19.
const YIELDS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

pub struct Aside {
    shared: Arc<Shared>,
}

struct Shared {
    lines: Mutex<Lines>,
    more: Condvar,
    threads: usize,
}

/// What waits, by namespace.
#[derive(Default)]
struct Lines {
    of: HashMap<Namespace, Line>,
    /// Namespaces that wait and may have a thread; the one served longest ago first.
    next: VecDeque<Namespace>,
    started: usize,
    idle: usize,
    closed: bool,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    busy: usize,
    queued: bool,
}

impl Default for Aside {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        Self::new((cores / 2).clamp(2, 8))
    }
}

impl Aside {
    pub fn new(threads: usize) -> Self {
        Self { shared: Arc::new(Shared { lines: Mutex::default(), more: Condvar::new(), threads: threads.max(2) }) }
    }

    /// What the work comes to. A fault in it is told as an error and ends nothing else.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: &Namespace,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (tell, told) = oneshot::channel();
        let job = move || {
            if tell.is_closed() {
                return;
            }
            if let Ok(done) = catch_unwind(AssertUnwindSafe(work)) {
                drop(tell.send(done));
            }
        };
        self.shared.push(namespace, Box::new(job))?;
        told.await.map_err(|_| Problem::new("internal", "working this out failed; the server's log has the details"))
    }
}

/// Threads end when what waits is done.
impl Drop for Aside {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.more.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn push(self: &Arc<Self>, namespace: &Namespace, job: Job) -> Result<(), Problem> {
        let mut lines = self.lock();
        let line = lines.of.entry(namespace.clone()).or_default();
        if line.jobs.len() >= WAITING_MAX {
            let why = format!("{WAITING_MAX} requests of the namespace {namespace} wait to be worked out already");
            return Err(Problem::new("unavailable", why).retry_after(500));
        }
        line.jobs.push_back(job);
        lines.enqueue(namespace, self.threads);
        // A thread that was woken for another is counted as idle still.
        let start = lines.next.len() > lines.idle && lines.started < self.threads;
        lines.started += usize::from(start);
        drop(lines);
        if start {
            self.start();
        }
        self.more.notify_one();
        Ok(())
    }

    fn start(self: &Arc<Self>) {
        let shared = self.clone();
        let work = move || {
            yield_to_others();
            shared.work();
        };
        let started = thread::Builder::new().name("aside".into()).stack_size(STACK).spawn(work);
        if let Err(error) = started {
            tracing::warn!(%error, "a thread could not be started");
            self.lock().started -= 1;
        }
    }

    fn work(&self) {
        while let Some((namespace, job)) = self.take() {
            job();
            self.lock().done(&namespace, self.threads);
            // The namespace may have one more now.
            self.more.notify_one();
        }
    }

    fn take(&self) -> Option<(Namespace, Job)> {
        let mut lines = self.lock();
        loop {
            if let Some(taken) = lines.take(self.threads) {
                return Some(taken);
            }
            if lines.closed {
                return None;
            }
            lines.idle += 1;
            lines = self.more.wait(lines).unwrap_or_else(|poisoned| poisoned.into_inner());
            lines.idle -= 1;
        }
    }
}

impl Lines {
    /// Puts a namespace in line, if it waits and may have one more thread.
    fn enqueue(&mut self, namespace: &Namespace, threads: usize) {
        let Some(line) = self.of.get_mut(namespace) else { return };
        if !line.queued && !line.jobs.is_empty() && line.busy < threads / 2 {
            line.queued = true;
            self.next.push_back(namespace.clone());
        }
    }

    fn take(&mut self, threads: usize) -> Option<(Namespace, Job)> {
        let namespace = self.next.pop_front()?;
        let line = self.of.get_mut(&namespace)?;
        line.queued = false;
        let job = line.jobs.pop_front()?;
        line.busy += 1;
        self.enqueue(&namespace, threads);
        Some((namespace, job))
    }

    fn done(&mut self, namespace: &Namespace, threads: usize) {
        let Some(line) = self.of.get_mut(namespace) else { return };
        line.busy -= 1;
        if line.busy == 0 && line.jobs.is_empty() {
            self.of.remove(namespace);
        }
        self.enqueue(namespace, threads);
    }
}

/// Linux counts a thread as a process here; elsewhere it stays as it is.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, YIELDS) {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn ns(name: &str) -> Namespace {
        Namespace::new(name).unwrap()
    }

    /// Work that says that it runs, then waits until it is let go.
    fn held() -> (impl FnOnce() + Send + 'static, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let ((runs, running), (let_go, go)) = (mpsc::channel(), mpsc::channel::<()>());
        let work = move || {
            let _ = runs.send(());
            let _ = go.recv();
        };
        (work, running, let_go)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_namespace_that_asks_for_much_leaves_room_for_others() {
        let aside = Arc::new(Aside::new(2));
        let (first, running, let_go) = held();
        let one = tokio::spawn({
            let aside = aside.clone();
            async move { aside.run(&ns("busy"), first).await }
        });
        tokio::task::spawn_blocking(move || running.recv()).await.unwrap().unwrap();
        let mut more = Vec::new();
        for _ in 0..50 {
            let aside = aside.clone();
            more.push(tokio::spawn(async move { aside.run(&ns("busy"), || ()).await }));
        }
        assert_eq!(
            aside.run(&ns("quiet"), || 7).await.unwrap(),
            7,
            "although the first one has more to do than threads"
        );
        assert!(more.iter().all(|waiting| !waiting.is_finished()), "half of the threads is all that it may have");
        let_go.send(()).unwrap();
        for task in more {
            task.await.unwrap().unwrap();
        }
        one.await.unwrap().unwrap();
        assert!(aside.shared.lock().of.is_empty(), "nothing is kept of namespaces that have nothing to do");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_nobody_waits_for_is_not_begun_and_a_fault_is_an_error() {
        let aside = Arc::new(Aside::new(2));
        let (first, running, let_go) = held();
        let one = tokio::spawn({
            let aside = aside.clone();
            async move { aside.run(&ns("a"), first).await }
        });
        tokio::task::spawn_blocking(move || running.recv()).await.unwrap().unwrap();
        let (begun, begins) = mpsc::channel::<()>();
        let given_up = tokio::spawn({
            let aside = aside.clone();
            async move { aside.run(&ns("a"), move || begun.send(())).await }
        });
        while aside.shared.lock().of[&ns("a")].jobs.is_empty() {
            tokio::task::yield_now().await;
        }
        given_up.abort();
        drop(given_up.await);
        let_go.send(()).unwrap();
        one.await.unwrap().unwrap();
        let fault = aside.run(&ns("a"), || panic!("as an expression might")).await;
        assert_eq!(fault.unwrap_err().0.status, 500);
        assert_eq!(aside.run(&ns("a"), || 1).await.unwrap(), 1, "and the thread goes on");
        assert!(begins.try_recv().is_err(), "it was never begun");
    }

    #[tokio::test]
    async fn more_than_may_wait_is_turned_away() {
        let aside = Aside::new(2);
        let (first, running, let_go) = held();
        let _one = aside.shared.push(&ns("a"), Box::new(first));
        running.recv().unwrap();
        for _ in 0..WAITING_MAX {
            aside.shared.push(&ns("a"), Box::new(|| ())).unwrap();
        }
        assert_eq!(aside.run(&ns("a"), || ()).await.unwrap_err().0.status, 503);
        assert!(aside.run(&ns("b"), || ()).await.is_ok());
        let_go.send(()).unwrap();
    }
}
