//! Work on threads of its own, which yield to all others: whatever would hold up those that answer requests.
//!
//! Namespaces take turns, and none has more than half of the threads, so one that asks for much waits for itself. What nobody
//! waits for any more is not begun.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
    thread,
};
use thiserror::Error;
use tokio::{runtime::Handle, sync::oneshot};
use windlass_core::Namespace;

mod yields;

use yields::{Starving, Stint};
pub use yields::{Yields, leave_a_processor, yield_to_all, yield_to_others};

/// Enough for whatever is nested as deep as it may be.
const STACK: usize = 8 << 20;

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Undone {
    #[error("{0} requests of the namespace wait to be worked out already")]
    TooMany(usize),
    #[error("working this out failed; the server's log has the details")]
    Failed,
}

#[derive(Clone, Copy, Debug)]
pub struct Pool {
    pub name: &'static str,
    pub threads: usize,
    pub yields: Yields,
    /// What a namespace may have waiting.
    pub waiting_max: usize,
}

type Job = Box<dyn FnOnce() + Send>;
/// What work comes to, whatever that is: compiled once, and not for each of a hundred kinds of work.
type Made = Box<dyn Any + Send>;

pub struct Aside {
    shared: Arc<Shared>,
}

struct Shared {
    lines: Mutex<Lines>,
    more: Condvar,
    pool: Pool,
    /// Of whoever asked first.
    runtime: OnceLock<Handle>,
}

/// None: nobody's in particular.
type Whose = Option<Namespace>;

/// What waits, by namespace.
#[derive(Default)]
struct Lines {
    of: HashMap<Whose, Line>,
    /// Namespaces that wait and may have a thread; the one served longest ago first.
    next: VecDeque<Whose>,
    started: usize,
    idle: usize,
    closed: bool,
    starving: Starving,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    busy: usize,
    queued: bool,
}

impl Aside {
    pub fn new(mut pool: Pool) -> Self {
        pool.threads = pool.threads.max(2);
        Self {
            shared: Arc::new(Shared { lines: Mutex::default(), more: Condvar::new(), pool, runtime: OnceLock::new() }),
        }
    }

    /// What the work comes to. A fault in it is told as an error and ends nothing else.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: Option<&Namespace>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let made = self.make(namespace.cloned(), Box::new(move || Box::new(work()))).await?;
        Ok(*made.downcast().expect("work makes what it is said to make"))
    }

    async fn make(&self, whose: Whose, work: Box<dyn FnOnce() -> Made + Send>) -> Result<Made, Undone> {
        let (tell, told) = oneshot::channel();
        let job = move || {
            if tell.is_closed() {
                return;
            }
            if let Ok(made) = catch_unwind(AssertUnwindSafe(work)) {
                drop(tell.send(made));
            }
        };
        self.shared.runtime.get_or_init(Handle::current);
        self.shared.push(whose, Box::new(job))?;
        told.await.map_err(|_| Undone::Failed)
    }

    /// The same for work whose result is large.
    pub async fn run_large<T: Send + 'static, E: Send + 'static>(
        &self,
        namespace: Option<&Namespace>,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<Result<Large<T>, E>, Undone> {
        let (shared, whose) = (self.shared.clone(), namespace.cloned());
        let large = move || work().map(|value| Large { value: Some(value), shared, whose });
        self.run(namespace, large).await
    }
}

/// Threads end when what waits is done.
impl Drop for Aside {
    fn drop(&mut self) {
        self.shared.lines.lock().closed = true;
        self.shared.more.notify_all();
    }
}

impl Shared {
    fn push(self: &Arc<Self>, whose: Whose, job: Job) -> Result<(), Undone> {
        let mut lines = self.lines.lock();
        let line = lines.of.entry(whose.clone()).or_default();
        if line.jobs.len() >= self.pool.waiting_max {
            return Err(Undone::TooMany(self.pool.waiting_max));
        }
        line.jobs.push_back(job);
        self.wake(lines, &whose);
        Ok(())
    }

    /// Before all that waits: it only gives memory back.
    fn push_first(self: &Arc<Self>, whose: &Whose, job: Job) {
        let mut lines = self.lines.lock();
        if lines.closed {
            return;
        }
        lines.of.entry(whose.clone()).or_default().jobs.push_front(job);
        self.wake(lines, whose);
    }

    fn wake(self: &Arc<Self>, mut lines: MutexGuard<'_, Lines>, whose: &Whose) {
        lines.enqueue(whose, self.pool.threads);
        // A thread that was woken for another is counted as idle still.
        let stuck = self.pool.yields == Yields::ToAll && lines.starving.stuck();
        let most = self.pool.threads * if stuck { 2 } else { 1 };
        let start = lines.next.len() > lines.idle && lines.started < most;
        lines.started += usize::from(start);
        let yields = lines.starving.next(self.pool.yields);
        drop(lines);
        if start {
            self.start(yields);
        }
        self.more.notify_one();
    }

    fn start(self: &Arc<Self>, yields: Yields) {
        let shared = self.clone();
        let work = move || {
            yields.begin();
            shared.work(yields);
        };
        let started = thread::Builder::new().name(self.pool.name.into()).stack_size(STACK).spawn(work);
        if let Err(error) = started {
            tracing::warn!(%error, "a thread could not be started");
            self.lines.lock().started -= 1;
        }
    }

    fn work(self: &Arc<Self>, yields: Yields) {
        while let Some((whose, job)) = self.take(yields) {
            let stint = Stint::begin();
            job();
            let starved = yields == Yields::ToAll && stint.starved();
            let mut lines = self.lines.lock();
            lines.done(&whose, self.pool.threads);
            lines.starving.worked(starved);
            // The namespace may have one more now.
            if !starved {
                drop(lines);
                self.more.notify_one();
                continue;
            }
            // A thread that yields to all can never yield less: one that does takes its place.
            lines.started -= 1;
            drop(lines);
            return self.replaced(whose);
        }
    }

    /// What a thread starts is of its own class: the next one is started by the runtime.
    fn replaced(self: &Arc<Self>, whose: Whose) {
        let shared = self.clone();
        if let Some(runtime) = self.runtime.get() {
            runtime.spawn(async move { shared.wake(shared.lines.lock(), &whose) });
        }
    }

    /// None: the thread ends.
    fn take(&self, yields: Yields) -> Option<(Whose, Job)> {
        let mut lines = self.lines.lock();
        loop {
            if let Some(taken) = lines.take(self.pool.threads) {
                return Some(taken);
            }
            if lines.closed {
                return None;
            }
            // The machine is no longer busy: the next one yields as far as it should.
            if yields != lines.starving.next(self.pool.yields) && yields != self.pool.yields {
                lines.started -= 1;
                return None;
            }
            lines.idle += 1;
            self.more.wait(&mut lines);
            lines.idle -= 1;
        }
    }
}

impl Lines {
    /// Puts a namespace in line, if it waits and may have one more thread.
    fn enqueue(&mut self, whose: &Whose, threads: usize) {
        let Some(line) = self.of.get_mut(whose) else { return };
        if !line.queued && !line.jobs.is_empty() && line.busy < threads / 2 {
            line.queued = true;
            self.next.push_back(whose.clone());
        }
    }

    fn take(&mut self, threads: usize) -> Option<(Whose, Job)> {
        let whose = self.next.pop_front()?;
        let line = self.of.get_mut(&whose)?;
        line.queued = false;
        let job = line.jobs.pop_front()?;
        line.busy += 1;
        self.starving.taken();
        self.enqueue(&whose, threads);
        Some((whose, job))
    }

    fn done(&mut self, whose: &Whose, threads: usize) {
        let Some(line) = self.of.get_mut(whose) else { return };
        line.busy -= 1;
        if line.busy == 0 && line.jobs.is_empty() {
            self.of.remove(whose);
        }
        self.enqueue(whose, threads);
    }
}

/// A value of so many parts that giving its memory back takes a while: wherever it is dropped, that is done aside.
pub struct Large<T: Send + 'static> {
    /// Some until it is taken or dropped.
    value: Option<T>,
    shared: Arc<Shared>,
    whose: Whose,
}

impl<T: Send + 'static> Large<T> {
    /// For whoever is aside already.
    pub fn into_inner(mut self) -> T {
        self.value.take().expect(HERE)
    }
}

const HERE: &str = "a value is there until it is taken or dropped";

impl<T: Send + 'static> Deref for Large<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect(HERE)
    }
}

impl<T: Send + 'static> Drop for Large<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.shared.push_first(&self.whose, Box::new(move || drop(value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            atomic::{AtomicBool, Ordering},
            mpsc,
        },
        time::{Duration, Instant},
    };

    const WAITING_MAX: usize = 1_000;

    fn ns(name: &str) -> Whose {
        Some(Namespace::new(name).unwrap())
    }

    fn two() -> Aside {
        Aside::new(Pool { name: "aside", threads: 2, yields: Yields::By(10), waiting_max: WAITING_MAX })
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
        let aside = Arc::new(two());
        let (first, running, let_go) = held();
        let one = tokio::spawn({
            let aside = aside.clone();
            async move { aside.run(ns("busy").as_ref(), first).await }
        });
        tokio::task::spawn_blocking(move || running.recv()).await.unwrap().unwrap();
        let mut more = Vec::new();
        for _ in 0..50 {
            let aside = aside.clone();
            more.push(tokio::spawn(async move { aside.run(ns("busy").as_ref(), || ()).await }));
        }
        assert_eq!(
            aside.run(ns("quiet").as_ref(), || 7).await.unwrap(),
            7,
            "although the first one has more to do than threads"
        );
        assert!(more.iter().all(|waiting| !waiting.is_finished()), "half of the threads is all that it may have");
        let_go.send(()).unwrap();
        for task in more {
            task.await.unwrap().unwrap();
        }
        one.await.unwrap().unwrap();
        // Nothing is kept of namespaces that have nothing to do; the answer comes a moment before that is noted.
        while !aside.shared.lines.lock().of.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_nobody_waits_for_is_not_begun_and_a_fault_is_an_error() {
        let aside = Arc::new(two());
        let (first, running, let_go) = held();
        let one = tokio::spawn({
            let aside = aside.clone();
            async move { aside.run(ns("a").as_ref(), first).await }
        });
        tokio::task::spawn_blocking(move || running.recv()).await.unwrap().unwrap();
        let (begun, begins) = mpsc::channel::<()>();
        let given_up = tokio::spawn({
            let aside = aside.clone();
            async move { aside.run(ns("a").as_ref(), move || begun.send(())).await }
        });
        while aside.shared.lines.lock().of[&ns("a")].jobs.is_empty() {
            tokio::task::yield_now().await;
        }
        given_up.abort();
        drop(given_up.await);
        let_go.send(()).unwrap();
        one.await.unwrap().unwrap();
        let fault = aside.run(ns("a").as_ref(), || panic!("as an expression might")).await;
        assert_eq!(fault.unwrap_err(), Undone::Failed);
        assert_eq!(aside.run(ns("a").as_ref(), || 1).await.unwrap(), 1, "and the thread goes on");
        assert!(begins.try_recv().is_err(), "it was never begun");
    }

    /// Says on which thread it was dropped.
    struct Part(mpsc::Sender<Option<String>>);

    impl Drop for Part {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().name().map(str::to_owned));
        }
    }

    #[tokio::test]
    async fn what_is_large_is_dropped_aside_also_where_nobody_looked_at_it() {
        let aside = two();
        let (say, said) = mpsc::channel();
        let made = aside.run_large(ns("a").as_ref(), move || Ok::<_, ()>(Part(say))).await.unwrap();
        let made = made.unwrap_or_else(|()| panic!("it was made"));
        assert!(said.try_recv().is_err(), "it lives");
        drop(made);
        let by = tokio::task::spawn_blocking(move || said.recv().unwrap()).await.unwrap();
        assert_eq!(by.as_deref(), Some("aside"));
    }

    #[tokio::test]
    async fn more_than_may_wait_is_turned_away() {
        let aside = two();
        let (first, running, let_go) = held();
        let _one = aside.shared.push(ns("a"), Box::new(first));
        running.recv().unwrap();
        for _ in 0..WAITING_MAX {
            aside.shared.push(ns("a"), Box::new(|| ())).unwrap();
        }
        assert_eq!(aside.run(ns("a").as_ref(), || ()).await.unwrap_err(), Undone::TooMany(WAITING_MAX));
        assert!(aside.run(ns("b").as_ref(), || ()).await.is_ok());
        let_go.send(()).unwrap();
    }

    /// The class and the niceness that the scheduler has for the thread that asks.
    #[cfg(target_os = "linux")]
    fn class() -> (u32, i32) {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
        (fields[38].parse().unwrap(), fields[16].parse().unwrap())
    }

    /// On a machine that other programs keep busy, whoever yields to all would hardly get anywhere.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn a_thread_that_yields_to_all_is_replaced_when_it_starves() {
        let aside = Aside::new(Pool { name: "aside", threads: 2, yields: Yields::ToAll, waiting_max: WAITING_MAX });
        let (idle, ordinary) = ((5, 0), (0, yields::BUSY_MACHINE));
        assert_eq!(aside.run(None, class).await.unwrap(), idle);
        // Waiting for something else than a processor is not starving.
        let (_never, waits) = mpsc::channel::<()>();
        let long = yields::STARVED_FOR * 2;
        assert!(aside.run(None, move || waits.recv_timeout(long)).await.unwrap().is_err());
        assert_eq!(aside.run(None, class).await.unwrap(), idle);

        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..2 * thread::available_parallelism().unwrap().get() {
            let over = over.clone();
            thread::spawn(move || {
                // Enough to starve it; whatever else this machine does goes on.
                yield_to_others(10);
                while !over.load(Ordering::Relaxed) {}
            });
        }
        let begun = Instant::now();
        while aside.run(None, || spin(Duration::from_millis(8))).await.unwrap() != ordinary {
            assert!(begun.elapsed() < Duration::from_secs(60), "it starves and stays");
        }
        over.store(true, Ordering::Relaxed);

        aside.shared.lines.lock().starving.seen = None;
        while aside.run(None, class).await.unwrap() != idle {
            assert!(begun.elapsed() < Duration::from_secs(60), "it yields less than it could for ever");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn one_processor_is_left_to_those_that_answer_however_many_work_aside() {
        let processors = || rustix::thread::sched_getaffinity(None).unwrap().count();
        let all = processors();
        let others = all.saturating_sub(1).max(1);
        assert_eq!(two().run(None, processors).await.unwrap(), others);
        // A thread begins with what whoever started it was left with.
        let second = move || {
            let begun = thread::spawn(move || {
                Yields::ToAll.begin();
                processors()
            });
            begun.join().unwrap()
        };
        assert_eq!(two().run(None, second).await.unwrap(), others);
        assert_eq!(processors(), all, "whoever asks is not one of them");
    }

    #[test]
    fn a_pool_that_had_nothing_to_do_is_not_stuck() {
        let mut starving = Starving::default();
        starving.taken();
        starving.worked(false);
        let (_never, waits) = mpsc::channel::<()>();
        assert!(waits.recv_timeout(yields::STARVED_FOR * 6).is_err());
        assert_eq!((starving.stuck(), starving.next(Yields::ToAll)), (false, Yields::ToAll));
        starving.taken();
        assert!(waits.recv_timeout(yields::STARVED_FOR * 6).is_err());
        assert_eq!((starving.stuck(), starving.next(Yields::ToAll)), (true, Yields::By(yields::BUSY_MACHINE)));
    }

    /// So much time on a processor; then the class.
    #[cfg(target_os = "linux")]
    fn spin(length: Duration) -> (u32, i32) {
        let on_processor = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let time = |time: rustix::time::Timespec| Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        let begun = time(on_processor());
        while time(on_processor()) < begun + length {}
        class()
    }
}
