//! From the events of the namespace to messages in rooms. There is one for a server, while somebody listens.

use super::{
    super::{Joblib, namespace, show},
    Sockets,
    say::{self, Message, Now, Stale, Task},
    session::{self, LOST},
    ties::Tie,
};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use windlass_core::{Event, JobId, JobKey, What, WorkerId, cache::Cache};
use windlass_engine::{Error, FeedItem, StoreError, Subscription};

/// Lists that are stale are told once nothing more was heard for this time,
const QUIET: Duration = Duration::from_millis(20);
/// and not later than this. The removal of a worker with many extensions is one change, and is told once.
const STALE_MAX: Duration = Duration::from_millis(200);
/// How long to leave a store alone that does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// Tasks that are remembered from one event to the next: more than are worked on at a time.
const TASKS: usize = 4_096;

pub async fn run(joblib: Joblib, follows: watch::Sender<bool>) {
    let sockets = joblib.own.sockets.clone();
    tokio::select! {
        () = sockets.audience.is_gone() => {}
        () = joblib.drain.cancelled() => {}
        never = follow_on(&joblib, &follows) => match never {},
    }
}

/// For as long as there is a store to follow, however often it goes away.
async fn follow_on(joblib: &Joblib, follows: &watch::Sender<bool>) -> std::convert::Infallible {
    let mut after = None;
    loop {
        match joblib.engine.follow(namespace(), after).await {
            Ok(mut feed) => {
                follows.send_replace(true);
                let mut pump = Pump::new(joblib);
                let error = pump.follow(&mut feed, &mut after).await;
                tracing::warn!(%error, "sockets hear nothing until the store can be read again");
            }
            Err(error) => tracing::warn!(%error, "sockets hear nothing until the store can be read"),
        }
        sleep(RETRY).await;
    }
}

struct Pump<'a> {
    joblib: &'a Joblib,
    sockets: Arc<Sockets>,
    tasks: Cache<JobId, Task>,
    stale: BTreeSet<Stale>,
    /// When the first of them was heard of, and the last.
    stale_since: Option<(Instant, Instant)>,
}

impl<'a> Pump<'a> {
    fn new(joblib: &'a Joblib) -> Self {
        let (stale, tasks) = (BTreeSet::new(), Cache::new(TASKS, usize::MAX));
        Self { joblib, sockets: joblib.own.sockets.clone(), tasks, stale, stale_since: None }
    }

    /// Until the store cannot be read.
    async fn follow(&mut self, feed: &mut Subscription, after: &mut Option<u64>) -> Error {
        loop {
            let flush = self.flush_at();
            let item = tokio::select! {
                item = feed.next() => item,
                () = sleep_until(flush.unwrap_or_else(Instant::now)), if flush.is_some() => {
                    self.tell_stale().await;
                    continue;
                }
            };
            let first = match item {
                Ok(FeedItem::Event(number, event)) => (number, event),
                // All that is told is a hint, so what is lost is found by asking.
                Ok(FeedItem::Gap { .. }) => continue,
                Err(error) => return error.into(),
            };
            let mut events = vec![first];
            while let Some(next) = feed.ready() {
                events.push(next);
            }
            *after = events.last().map(|(number, _)| *number);
            if let Err(error) = self.tell(&events).await {
                return error.into();
            }
        }
    }

    fn flush_at(&self) -> Option<Instant> {
        self.stale_since.map(|(first, last)| (first + STALE_MAX).min(last + QUIET))
    }

    async fn tell_stale(&mut self) {
        self.stale_since = None;
        for Stale { room, name } in std::mem::take(&mut self.stale) {
            self.send(Message { room, name, data: Value::Object(Default::default()) }).await;
        }
    }

    /// A reader that does not read misses it.
    async fn send(&self, Message { room, name, data }: Message) {
        drop(self.sockets.io.to(room).emit(name, &data).await);
    }

    async fn tell(&mut self, events: &[(u64, Arc<Event>)]) -> Result<(), StoreError> {
        self.learn(events).await?;
        for (_, event) in events {
            if let Some(stale) = say::stale(&event.what) {
                let now = Instant::now();
                self.stale_since = Some((self.stale_since.map_or(now, |(first, _)| first), now));
                self.stale.insert(stale);
            } else if let What::Told { topic, data } = &event.what {
                self.told(topic, data).await;
            } else if let Some(id) = event.what.job() {
                self.of_task(id, event).await?;
            }
        }
        Ok(())
    }

    /// Reads the tasks of these events that are not known yet, all at once.
    async fn learn(&mut self, events: &[(u64, Arc<Event>)]) -> Result<(), StoreError> {
        let watching = self.sockets.audience.is_watching();
        let wanted = |event: &Event| watching || matches!(event.what, What::Submitted { .. });
        let ids = events.iter().filter(|(_, event)| wanted(event)).filter_map(|(_, event)| event.what.job());
        let unknown: BTreeSet<JobId> = ids.filter(|id| self.tasks.get(id).is_none()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let keys: Vec<JobKey> = unknown.into_iter().map(|id| JobKey::new(&namespace(), id)).collect();
        for job in self.joblib.engine.store().jobs_named(&keys).await? {
            if let Some(task) = Task::of(&job) {
                self.tasks.put(job.key.id, task, 0);
            }
        }
        Ok(())
    }

    async fn of_task(&mut self, id: JobId, event: &Event) -> Result<(), StoreError> {
        let Some(mut task) = self.tasks.get(&id) else { return Ok(()) };
        let Some(mut now) = Now::of(event, &task) else { return Ok(()) };
        if let What::Submitted { .. } = event.what {
            self.send(task.available(id)).await;
        }
        if self.sockets.audience.is_watching() {
            self.fill_in(id, &event.what, &mut now).await?;
            self.send(task.status(id, &now)).await;
        }
        // What this event has told, the next one need not look up.
        task.worker = now.worker.or(task.worker);
        task.started_at = now.started_at.or(task.started_at);
        self.tasks.put(id, task, 0);
        Ok(())
    }

    /// What neither the event nor the task itself says.
    async fn fill_in(&self, id: JobId, what: &What, now: &mut Now) -> Result<(), StoreError> {
        let (store, key) = (self.joblib.engine.store(), JobKey::new(&namespace(), id));
        if let What::Submitted { .. } = what
            && let Some(job) = store.job(&key).await?
        {
            now.queue_position = Some(store.ahead(&job, show::AHEAD_MAX).await? + 1);
        }
        if let What::Completed { .. } = what {
            let results = store.results(&[key]).await?;
            now.error = results.first().and_then(|(_, result)| show::words(result));
        }
        Ok(())
    }

    async fn told(&self, topic: &str, data: &str) {
        if topic == LOST {
            return self.comes_back(data);
        }
        let Some(message) = say::of_providers(topic, data) else { return };
        if let (Some(provider), Some(hash)) =
            (message.data["provider_name"].as_str(), message.data["request_hash"].as_str())
        {
            self.sockets.results.tell(provider, hash);
        }
        self.send(message).await;
    }

    /// Another server has lost a worker's socket. If the worker has one here, it is not gone.
    fn comes_back(&self, data: &str) {
        let Ok(lost) = serde_json::from_str::<Value>(data) else { return };
        let (Some(user), Some(worker)) = (lost["user"].as_str(), lost["worker"].as_str()) else { return };
        let Ok(worker) = WorkerId::new(worker) else { return };
        let tie = Tie { user: user.into(), worker };
        if self.sockets.ties.has(&tie) {
            tokio::spawn(session::lift(self.joblib.clone(), tie));
        }
    }
}
