//! Group commit: while one batch commits, the next one fills.
//!
//! The batcher has a thread of its own. Stores that take one batch at a time (the embedded one) are run right on it: what comes
//! in meanwhile makes the next batch larger, and a larger batch costs less a job. Stores that wait for a network are run
//! several batches at a time.

use crate::{
    after::{After, Held},
    crowd::Crowd,
    gather::{Gather, NAP},
    ids,
    intake::Intake,
    joining::Joining,
    queue::{Queue, Which},
    request::Request,
    settings::Settings,
    stalls::StallWatch,
    store::{Batch, Store},
    syncer::Syncer,
};
use parking_lot::{Mutex, MutexGuard};
use std::{sync::Arc, thread, time::Instant};
use tokio::{runtime::Handle, sync::Semaphore};
use windlass_core::{Command, Refusal, Reply, decider::Item};

pub struct Batcher {
    pub store: Arc<dyn Store>,
    pub settings: Settings,
    pub intake: Arc<Intake>,
    pub crowd: Arc<Crowd>,
    pub after: Arc<After>,
    pub stalls: Arc<StallWatch>,
}

/// The batcher at work.
struct Work {
    batcher: Batcher,
    syncer: Arc<Syncer>,
    /// Of requests that promise nothing where they go apart, and of all others.
    pace: [Mutex<Gather>; 2],
    in_flight: Arc<Semaphore>,
}

impl Batcher {
    /// Ends when the queue is closed and all that was in it is answered.
    pub fn spawn(self) -> std::io::Result<thread::JoinHandle<()>> {
        let runtime = Handle::current();
        let in_flight = Arc::new(Semaphore::new(self.store.in_flight().max(1)));
        let syncer = Arc::new(Syncer::new(self.store.clone(), self.after.clone()));
        let sync_thread = syncer.clone().spawn(self.intake.queue.clone())?;
        let pace = [Gather::before_a_transaction(), Gather::before_a_transaction()].map(Mutex::new);
        let work = Arc::new(Work { batcher: self, syncer, pace, in_flight });
        thread::Builder::new().name("windlass-batcher".into()).spawn(move || runtime.block_on(work.work(sync_thread)))
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

    async fn work(self: Arc<Self>, sync_thread: thread::JoinHandle<()>) {
        let apart = self.batcher.store.in_flight() > 1;
        let visit = || self.batcher.stalls.visit();
        while let Some(which) = self.queue().wait_for_work(|| self.syncer.is_syncing(), visit).await {
            let Ok(slot) = self.in_flight.clone().acquire_owned().await else { return };
            visit();
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
        self.finish(sync_thread).await;
    }

    /// Nothing more comes in. What is on its way is answered, and all of it is on disk.
    async fn finish(&self, sync_thread: thread::JoinHandle<()>) {
        // Whoever holds the permits is still at work.
        let all = self.batcher.store.in_flight().max(1) as u32;
        drop(self.in_flight.acquire_many(all).await);
        self.syncer.close();
        drop(tokio::task::spawn_blocking(move || sync_thread.join()).await);
        if let Err(error) = self.batcher.store.sync() {
            tracing::error!(%error, "the last writes could not be synced");
        }
    }

    /// This thread has nothing else to do, so it simply sleeps, in naps short enough to notice that everybody is here, or that nobody
    /// comes any more.
    fn gather(&self) -> Which {
        let begun = Instant::now();
        let (mut most, mut came) = (0, begun);
        loop {
            let (which, waiting) = self.queue().kind();
            if waiting > most {
                (most, came) = (waiting, Instant::now());
            }
            if !self.pace(which).waits(waiting, begun.elapsed(), came.elapsed()) {
                return which;
            }
            thread::sleep(NAP);
        }
    }

    /// Runs requests as one transaction and answers them: at once what promises nothing, the rest when it is safe.
    async fn run_batch(&self, requests: Vec<Request>, which: Which) {
        let Batcher { store, settings, intake, crowd, after, stalls } = &self.batcher;
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
            let by = request.by;
            items.extend(request.commands.into_iter().map(|command| Item {
                command,
                seed: ids::seed(),
                by: by.clone(),
            }));
        }
        let (commands, begun) = (items.len(), Instant::now());
        let joining = Arc::new(Joining::new(&after.waiters));
        let batch =
            Batch { waiting: Some(joining.clone()), stalls: stalls.recent(), ..Batch::new(items, settings.limits) };
        let mut committed = match store.run(batch).await {
            Ok(committed) => committed,
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
        after.tally.count(&committed.events, &committed.replies);
        after.history.count(&committed.events, &committed.replies);
        crowd.hear(&committed.events, &settings.limits);
        self.pace(which).learn(committed.commit_time, callers.len());
        let mut held = Held { first_event: committed.first_event, ..Held::default() };
        (held.events, held.logged) = (std::mem::take(&mut committed.events), std::mem::take(&mut committed.logged));
        let joined = committed.replies.split_off(commands.min(committed.replies.len()));
        let mut replies = std::mem::take(&mut committed.replies).into_iter();
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
        after.written(&committed, commands, log_bytes, !held.events.is_empty());
        self.syncer.answer_once_synced(held);
    }
}

fn log_bytes_of(command: &Command) -> usize {
    match command {
        Command::AppendLog(append) => append.data.len(),
        _ => 0,
    }
}
