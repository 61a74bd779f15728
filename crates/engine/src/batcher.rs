//! Group commit: while one batch commits, the next one fills.
//!
//! The batcher has a thread of its own. Stores that work in place (the embedded one) do so right on it, without handing
//! the batch over to yet another thread; stores that wait for a network are run several batches at a time.

use crate::{
    engine::Inner,
    gather::Gather,
    ids,
    store::{Batch, StoreError},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use windlass_core::{
    Command, Namespace, Refusal, Reply,
    commands::{holder::Holder, release::Release},
    decider::Item,
};

/// The shortest sleep worth its system call.
const NAP: Duration = Duration::from_micros(50);

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
    fn promises(&self) -> bool {
        self.commands.iter().any(Command::is_promise)
    }
}

pub struct Queues {
    pub commands: mpsc::UnboundedReceiver<Request>,
    pub logs: mpsc::UnboundedReceiver<Request>,
}

struct Batcher {
    inner: Arc<Inner>,
    queues: Queues,
    /// Taken from the queues but not yet run.
    waiting: VecDeque<Request>,
    waiting_logs: VecDeque<Request>,
    /// Of requests that promise nothing, and of those that do.
    gather: [Arc<Mutex<Gather>>; 2],
    in_flight: Arc<Semaphore>,
    in_place: bool,
}

/// Ends when every sender is gone and all that was queued is answered.
pub fn spawn(inner: Arc<Inner>, queues: Queues) -> std::io::Result<thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Handle::current();
    let in_flight = inner.store.in_flight().max(1);
    let batcher = Batcher {
        inner,
        queues,
        waiting: VecDeque::new(),
        waiting_logs: VecDeque::new(),
        gather: Default::default(),
        in_flight: Arc::new(Semaphore::new(in_flight)),
        in_place: in_flight == 1,
    };
    thread::Builder::new().name("windlass-batcher".into()).spawn(move || runtime.block_on(batcher.work()))
}

impl Batcher {
    async fn work(mut self) {
        while self.wait_for_work().await {
            let Ok(slot) = self.in_flight.clone().acquire_owned().await else { return };
            self.gather();
            self.take_all();
            let gather = self.gather[usize::from(self.promises())].clone();
            let requests = self.next_batch();
            if requests.is_empty() {
                continue;
            }
            let inner = self.inner.clone();
            let run = async move {
                run_batch(&inner, &gather, requests).await;
                drop(slot);
            };
            if self.in_place {
                run.await;
            } else {
                tokio::spawn(run);
            }
        }
        // Whoever holds the permits is still at work.
        let all = self.inner.store.in_flight().max(1) as u32;
        drop(self.in_flight.acquire_many(all).await);
    }

    async fn wait_for_work(&mut self) -> bool {
        if !self.waiting.is_empty() || !self.waiting_logs.is_empty() {
            return true;
        }
        tokio::select! {
            Some(request) = self.queues.commands.recv() => self.waiting.push_back(request),
            Some(request) = self.queues.logs.recv() => self.waiting_logs.push_back(request),
            else => return false,
        }
        true
    }

    /// This thread has nothing else to do, so it simply sleeps, in naps short enough to notice that everybody is here.
    fn gather(&mut self) {
        let begun = Instant::now();
        loop {
            self.take_all();
            let gather = &self.gather[usize::from(self.promises())];
            let waiting = self.of_a_kind();
            let window = gather.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).window(waiting);
            match window {
                Some(window) if begun.elapsed() < window => thread::sleep(NAP.min(window)),
                _ => return,
            }
        }
    }

    fn take_all(&mut self) {
        while let Ok(request) = self.queues.commands.try_recv() {
            self.waiting.push_back(request);
        }
        while let Ok(request) = self.queues.logs.try_recv() {
            self.waiting_logs.push_back(request);
        }
    }

    /// What the next batch is made of: requests whose answers wait for the disk, or those whose do not. A store that takes
    /// several batches at a time need not wait for the disk because of the latter; any other takes all of them together.
    fn promises(&self) -> bool {
        self.in_place || self.waiting.front().is_some_and(Request::promises)
    }

    fn of_a_kind(&self) -> usize {
        let promises = self.promises();
        self.waiting.iter().filter(|request| self.in_place || request.promises() == promises).count()
    }

    /// Those of the other kind go first next time.
    fn put_off_others(&mut self) -> VecDeque<Request> {
        if self.in_place {
            return VecDeque::new();
        }
        let promises = self.promises();
        let (now, later) = std::mem::take(&mut self.waiting).into_iter().partition(|r| r.promises() == promises);
        self.waiting = now;
        later
    }

    fn next_batch(&mut self) -> Vec<Request> {
        let mut later = self.put_off_others();
        let settings = &self.inner.settings;
        let mut batch = Vec::new();
        fill(&mut batch, &mut self.waiting, settings.batch_max, settings.batch_bytes_max);
        later.append(&mut self.waiting);
        self.waiting = later;
        let mut logs = Vec::new();
        fill(&mut logs, &mut self.waiting_logs, settings.batch_max, settings.log_batch_bytes_max);
        batch.extend(logs);
        batch
    }
}

/// Takes from the front while there is room; a request too large for any batch goes alone.
fn fill(batch: &mut Vec<Request>, waiting: &mut VecDeque<Request>, count_max: usize, weight_max: usize) {
    let (mut count, mut weight) = (0, 0);
    while let Some(request) = waiting.pop_front() {
        if request.abandon.is_some() && request.reply.is_closed() {
            continue;
        }
        count += request.commands.len();
        weight += request.weight;
        if !batch.is_empty() && (count > count_max || weight > weight_max) {
            waiting.push_front(request);
            return;
        }
        batch.push(request);
    }
}

async fn run_batch(inner: &Arc<Inner>, gather: &Mutex<Gather>, requests: Vec<Request>) {
    let mut items = Vec::with_capacity(requests.len());
    let mut callers = Vec::with_capacity(requests.len());
    let mut log_bytes = 0;
    for request in requests {
        log_bytes += request.commands.iter().map(log_bytes_of).sum::<usize>();
        callers.push((request.commands.len(), request.reply, request.abandon, request.room));
        items.extend(request.commands.into_iter().map(|command| Item { command, seed: ids::seed() }));
    }
    let commands = items.len();
    let mut outcome = match inner.store.run(Batch { items, limits: inner.settings.limits }).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(%error, commands, "a batch failed");
            inner.failed(&error);
            for (_, reply, _, _) in callers {
                drop(reply.send(Err(error.clone())));
            }
            return;
        }
    };
    let learned = outcome.commit_time;
    gather.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).learn(learned, callers.len());
    let mut replies = std::mem::take(&mut outcome.replies).into_iter();
    // Waiting claimers first hear of the work after those who made it are answered: they are nearer to going on.
    for (count, reply, abandon, room) in callers {
        let answer: Vec<Result<Reply, Refusal>> = replies.by_ref().take(count).collect();
        drop(room);
        if let (Err(Ok(undelivered)), Some(namespace)) = (reply.send(Ok(answer)), abandon) {
            take_back(inner, &namespace, undelivered);
        }
    }
    inner.logged(log_bytes);
    inner.committed(outcome, commands);
}

fn log_bytes_of(command: &Command) -> usize {
    match command {
        Command::AppendLog(append) => append.data.len(),
        _ => 0,
    }
}

/// The claimer has gone: its jobs go back to where they were, uncharged, rather than wait for their leases to run out.
pub fn take_back(inner: &Inner, namespace: &Namespace, undelivered: Vec<Result<Reply, Refusal>>) {
    for reply in undelivered.into_iter().flatten() {
        let Reply::Leases(leases) = reply else { continue };
        for leased in leases {
            let release = Release { holder: Holder::lease(namespace, leased.lease) };
            // If the queue is full the lease simply runs out.
            drop(inner.enqueue(vec![Command::Release(release)], None));
        }
    }
}
