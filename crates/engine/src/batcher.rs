//! Group commit: while one batch commits, the next one fills.
//!
//! The batcher has a thread of its own. Stores that take one batch at a time (the embedded one) are run right on it: what comes
//! in meanwhile makes the next batch larger, and a larger batch costs less a job. Stores that wait for a network are run
//! several batches at a time.

use crate::{
    after::After,
    crowd::Crowd,
    gather::{Gather, NAP},
    ids,
    intake::Intake,
    joining::Joining,
    lines::{Lines, Space},
    settings::Settings,
    settle::{Held, Settler},
    sharing::Sharing,
    store::{Batch, Store, StoreError},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot},
};
use windlass_core::{Command, Namespace, Refusal, Reply, decider::Item};

pub type Answer = Result<Vec<Result<Reply, Refusal>>, StoreError>;

/// Commands of one caller, answered together.
pub struct Request {
    pub commands: Vec<Command>,
    pub reply: oneshot::Sender<Answer>,
    /// Room in the queue, given back when the request is answered.
    pub room: OwnedSemaphorePermit,
    /// A claim nobody waits for any more is not run, and one whose answer cannot be delivered is taken back.
    pub abandon: Option<Namespace>,
    pub weight: usize,
}

impl Request {
    fn is_promise(&self) -> bool {
        self.commands.iter().any(Command::is_promise)
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandon.is_some() && self.reply.is_closed()
    }
}

/// What is run now. A store that takes several batches at a time need not wait for its disk because of requests that
/// promise nothing, so it gets them apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    Promises,
    NoPromises,
}

/// What waits to be run.
#[derive(Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    /// Apart from what waits: callers who only ask must not wait for the batcher, nor it for them.
    sharing: Mutex<Sharing>,
    /// Commands of one namespace in the batch before; 0: all.
    each: AtomicUsize,
    bell: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Those that a store may be given apart.
    promises: Lines,
    others: Lines,
    /// Apart, so that a flood of log lines delays nothing else.
    logs: Lines,
    /// Which of the first two goes first.
    turn: bool,
    closed: bool,
}

impl Waiting {
    fn has(&self, which: Which) -> bool {
        match which {
            Which::All => !self.promises.is_empty() || !self.others.is_empty(),
            Which::Promises => !self.promises.is_empty(),
            Which::NoPromises => !self.others.is_empty(),
        }
    }

    fn take(&mut self, which: Which, batch: &mut Vec<Request>, space: &mut Space) {
        match which {
            Which::All if self.turn => {
                self.promises.take(batch, space);
                self.others.take(batch, space);
            }
            Which::All => {
                self.others.take(batch, space);
                self.promises.take(batch, space);
            }
            Which::Promises => self.promises.take(batch, space),
            Which::NoPromises => self.others.take(batch, space),
        }
    }
}

/// Everything in one transaction while several namespaces are at work: nobody waits long for the others', and what is lost
/// by committing more often is little.
const SHARED_MAX: usize = 128;
const SHARED_BYTES_MAX: usize = 512 << 10;

impl Queue {
    /// False: nothing more is taken.
    pub fn push(&self, request: Request, is_log: bool) -> bool {
        let is_promise = request.is_promise();
        let mut waiting = self.lock();
        if waiting.closed {
            return false;
        }
        match (is_log, is_promise) {
            (true, _) => waiting.logs.push(request),
            (_, true) => waiting.promises.push(request),
            (_, false) => waiting.others.push(request),
        }
        drop(waiting);
        self.bell.notify_one();
        true
    }

    pub fn close(&self) {
        self.lock().closed = true;
        self.bell.notify_one();
    }

    /// Returns when there is something to run: what, or none when nothing more will come. While the disk is busy, promises would
    /// wait for the sync after this one whenever they are written, so they gather here and are written together.
    async fn wait_for_work(&self, settler: &Settler) -> Option<Which> {
        loop {
            let which = if settler.is_syncing() { Which::NoPromises } else { Which::All };
            {
                let waiting = self.lock();
                if !waiting.logs.is_empty() || waiting.has(which) {
                    return Some(which);
                }
                if waiting.closed && !waiting.has(Which::All) {
                    return None;
                }
            }
            self.bell.notified().await;
        }
    }

    /// Whether several namespaces were at work a moment ago.
    pub fn is_shared(&self) -> bool {
        self.sharing().is_shared()
    }

    /// How many commands of one caller go together while others are at work. None: all.
    pub fn piece(&self) -> Option<usize> {
        Some(self.each.load(Ordering::Relaxed)).filter(|each| *each > 0)
    }

    /// What a batch cost that others had to wait for.
    fn learn(&self, took: Duration, commands: usize) {
        self.sharing().learn(took, commands);
    }

    /// Somebody should look again.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// What goes next, for stores that get the two kinds apart, and how many of its kind wait.
    fn kind(&self) -> (Which, usize) {
        let waiting = self.lock();
        let promises = if waiting.turn { waiting.has(Which::Promises) } else { !waiting.has(Which::NoPromises) };
        match promises {
            true => (Which::Promises, waiting.promises.len()),
            false => (Which::NoPromises, waiting.others.len()),
        }
    }

    fn next_batch(&self, which: Which, settings: &Settings) -> Vec<Request> {
        let mut waiting = self.lock();
        let waiting = &mut *waiting;
        let mut batch = Vec::new();
        let mut sharing = self.sharing();
        sharing.see(waiting.promises.namespaces().chain(waiting.others.namespaces()));
        let each = sharing.each();
        drop(sharing);
        self.each.store(each.unwrap_or(0), Ordering::Relaxed);
        let (mut count, mut bytes) = (settings.batch_max, settings.batch_bytes_max);
        if each.is_some() {
            (count, bytes) = (count.min(SHARED_MAX), bytes.min(SHARED_BYTES_MAX));
        }
        let each = each.unwrap_or(usize::MAX);
        waiting.take(which, &mut batch, &mut Space { count, bytes, each });
        waiting.turn = !waiting.turn;
        let mut logs = Vec::new();
        let (count, bytes) = (settings.batch_max, settings.log_batch_bytes_max);
        waiting.logs.take(&mut logs, &mut Space { count, bytes, each });
        batch.extend(logs);
        batch
    }

    fn sharing(&self) -> MutexGuard<'_, Sharing> {
        self.sharing.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

pub struct Batcher {
    pub store: Arc<dyn Store>,
    pub settings: Settings,
    pub intake: Arc<Intake>,
    pub crowd: Arc<Crowd>,
    pub after: Arc<After>,
}

/// The batcher at work.
struct Work {
    batcher: Batcher,
    settler: Arc<Settler>,
    /// Of requests that promise nothing where they go apart, and of all others.
    pace: [Mutex<Gather>; 2],
    in_flight: Arc<Semaphore>,
}

impl Batcher {
    /// Ends when the queue is closed and all that was in it is answered.
    pub fn spawn(self) -> std::io::Result<thread::JoinHandle<()>> {
        let runtime = Handle::current();
        let in_flight = Arc::new(Semaphore::new(self.store.in_flight().max(1)));
        let settler = Arc::new(Settler::new(self.store.clone(), self.after.clone()));
        let settling = settler.clone().spawn(self.intake.queue.clone())?;
        let work = Arc::new(Work { batcher: self, settler, pace: Default::default(), in_flight });
        thread::Builder::new().name("windlass-batcher".into()).spawn(move || runtime.block_on(work.work(settling)))
    }
}

impl Work {
    fn queue(&self) -> &Queue {
        &self.batcher.intake.queue
    }

    fn pace(&self, which: Which) -> MutexGuard<'_, Gather> {
        let pace = &self.pace[usize::from(which != Which::NoPromises)];
        pace.lock()
    }

    async fn work(self: Arc<Self>, settling: thread::JoinHandle<()>) {
        let apart = self.batcher.store.in_flight() > 1;
        while let Some(which) = self.queue().wait_for_work(&self.settler).await {
            let Ok(slot) = self.in_flight.clone().acquire_owned().await else { return };
            let which = if apart { self.gather() } else { which };
            let requests = self.queue().next_batch(which, &self.batcher.settings);
            let this = self.clone();
            let run = async move {
                this.run_batch(requests, which).await;
                drop(slot);
            };
            if apart {
                tokio::spawn(run);
            } else {
                run.await;
            }
        }
        self.finish(settling).await;
    }

    /// Nothing more comes in. What is on its way is answered, and all of it is on disk.
    async fn finish(&self, settling: thread::JoinHandle<()>) {
        // Whoever holds the permits is still at work.
        let all = self.batcher.store.in_flight().max(1) as u32;
        drop(self.in_flight.acquire_many(all).await);
        self.settler.close();
        drop(tokio::task::spawn_blocking(move || settling.join()).await);
        if let Err(error) = self.batcher.store.sync() {
            tracing::error!(%error, "the last writes could not be synced");
        }
    }

    /// This thread has nothing else to do, so it simply sleeps, in naps short enough to notice that everybody is here.
    fn gather(&self) -> Which {
        let begun = Instant::now();
        loop {
            let (which, waiting) = self.queue().kind();
            let window = self.pace(which).window(waiting);
            match window {
                Some(window) if begun.elapsed() < window => thread::sleep(NAP.min(window)),
                _ => return which,
            }
        }
    }

    /// Runs requests as one transaction and answers them: at once what promises nothing, the rest when it is safe.
    async fn run_batch(&self, requests: Vec<Request>, which: Which) {
        let Batcher { store, settings, intake, crowd, after } = &self.batcher;
        if requests.is_empty() {
            return;
        }
        let mut items = Vec::with_capacity(requests.len());
        let mut callers = Vec::with_capacity(requests.len());
        let mut log_bytes = 0;
        for request in requests {
            log_bytes += request.commands.iter().map(log_bytes_of).sum::<usize>();
            let promises = request.is_promise();
            callers.push((request.commands.len(), request.reply, request.abandon, request.room, promises));
            items.extend(request.commands.into_iter().map(|command| Item { command, seed: ids::seed() }));
        }
        let (commands, begun) = (items.len(), Instant::now());
        let joining = Arc::new(Joining::new(&after.waiters));
        let batch = Batch { waiting: Some(joining.clone()), ..Batch::new(items, settings.limits) };
        let mut outcome = match store.run(batch).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, commands, "a batch failed");
                after.failed(&error);
                joining.failed(&error);
                for (_, reply, ..) in callers {
                    drop(reply.send(Err(error.clone())));
                }
                return;
            }
        };
        let took = begun.elapsed();
        after.tally.commit.observe(took);
        if store.in_flight() == 1 {
            intake.queue.learn(took, commands);
        }
        after.tally.count(&outcome.events, &outcome.replies);
        after.history.count(&outcome.events, &outcome.replies);
        crowd.hear(&outcome.events, &settings.limits);
        self.pace(which).learn(outcome.commit_time, callers.len());
        let mut held = Held { first_event: outcome.first_event, ..Held::default() };
        (held.events, held.logged) = (std::mem::take(&mut outcome.events), std::mem::take(&mut outcome.logged));
        let joined = outcome.replies.split_off(commands.min(outcome.replies.len()));
        let mut replies = std::mem::take(&mut outcome.replies).into_iter();
        for (count, reply, abandon, room, promises) in callers {
            let answer: Vec<Result<Reply, Refusal>> = replies.by_ref().take(count).collect();
            drop(room);
            if promises {
                held.answers.push((reply, Ok(answer)));
            } else if let (Err(Ok(undelivered)), Some(namespace)) = (reply.send(Ok(answer)), abandon) {
                intake.take_back(&namespace, undelivered);
            }
        }
        joining.committed(joined, intake);
        after.written(&outcome, commands, log_bytes, !held.events.is_empty());
        self.settler.settle(held);
    }
}

fn log_bytes_of(command: &Command) -> usize {
    match command {
        Command::AppendLog(append) => append.data.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::commands::{tell::Tell, tokens::UseToken};

    fn request(namespace: &str) -> Request {
        let tell = Tell { namespace: Namespace::new(namespace).unwrap(), topic: "t".into(), data: "{}".into() };
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Request { commands: vec![tell.into()], reply: oneshot::channel().0, room, abandon: None, weight: 258 }
    }

    #[test]
    fn looking_up_a_token_takes_nothing_from_whoever_is_alone() {
        let (queue, settings) = (Queue::default(), Settings::default());
        queue.push(request("much"), false);
        let mut lookup = request("much");
        lookup.commands = vec![UseToken { namespace: Namespace::new("system").unwrap(), hash: "h".into() }.into()];
        queue.push(lookup, false);
        assert_eq!(queue.next_batch(Which::All, &settings).len(), 2);
        assert!(!queue.is_shared());
    }

    #[test]
    fn a_namespace_with_little_to_do_is_in_the_next_batch_however_much_another_has() {
        let (queue, settings) = (Queue::default(), Settings::default());
        for _ in 0..500 {
            queue.push(request("much"), false);
        }
        assert_eq!(queue.next_batch(Which::All, &settings).len(), 500, "alone it has all the room there is");
        for _ in 0..500 {
            queue.push(request("much"), false);
        }
        queue.push(request("little"), false);
        let batch = queue.next_batch(Which::All, &settings);
        assert!(batch.len() < SHARED_MAX, "and nobody waits long for the batch before");
        assert!(batch.iter().any(|request| request.commands[0].namespace().unwrap().as_str() == "little"));
    }
}
