//! The engine: what everything above the rules talks to.

use crate::{
    after::{After, Counts},
    bulletin::Subject,
    crowd::Crowd,
    error::Error,
    feed::Subscription,
    heavy::{self, Heavy},
    history::History,
    intake::{By, Intake, is_bulky},
    quota::Usage,
    request::lost,
    reserve,
    settings::Settings,
    stalls::StallWatch,
    store::{Store, StoreError},
    tally::Tally,
    waiters::Waiter,
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use windlass_core::{
    Command, HeadQuery, Job, JobKey, LogAppend, Namespace, Refusal, Reply, RunId, Tags, Timestamp, WorkerKey,
    commands::{
        ask::{Ask, Asked},
        tokens::UseToken,
    },
    record::{self, Kind},
    run::Run,
    stage,
};

/// Where nobody tells what other servers did, workers ask so often.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Cheap to clone; all clones are the same engine. It runs until [`Engine::shut_down`], also when no clone is left: the
/// sweeper keeps it.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    pub(crate) batcher: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
    /// What the caller was admitted with for whom this clone runs commands.
    pub(crate) by: By,
}

pub struct Inner {
    pub store: Arc<dyn Store>,
    pub settings: Settings,
    pub intake: Arc<Intake>,
    pub heavy: Heavy,
    pub crowd: Arc<Crowd>,
    pub usage: Usage,
    pub after: Arc<After>,
    pub stalls: Arc<StallWatch>,
    /// Other servers use the store too, and it does not pass on what they do.
    pub deaf: AtomicBool,
    /// True once nobody may wait any longer.
    pub stopping: watch::Sender<bool>,
}

impl Engine {
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The same engine for one caller: each of its commands is refused in the transaction that would write it if what the caller was
    /// admitted with stands for less by then. None: for the server itself.
    pub fn acting_for(&self, by: By) -> Self {
        Self { by, ..self.clone() }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Runs one command. Answered after its transaction has committed and, if it is a promise, when no power cut can undo it.
    pub async fn run<A: Ask>(&self, command: A) -> Result<A::Reply, Error> {
        let reply = self.run_all(vec![command.into()]).await?.pop().ok_or_else(mixed_up)?;
        A::read(reply.map_err(reserve::as_error)?).ok_or_else(mixed_up)
    }

    /// Runs several commands, each accepted or refused by itself, and answers them together. For all-or-nothing there
    /// is [`windlass_core::commands::all::All`].
    pub async fn run_many<A: Ask>(&self, commands: Vec<A>) -> Result<Vec<Result<A::Reply, Refusal>>, Error> {
        let replies = self.run_all(commands.into_iter().map(Into::into).collect()).await?;
        replies.into_iter().map(|reply| read(A::read, reply)).collect()
    }

    /// The same for commands of different kinds.
    pub async fn run_mixed<T>(&self, asked: Vec<Asked<T>>) -> Result<Vec<Result<T, Refusal>>, Error> {
        let (commands, reads): (Vec<_>, Vec<_>) = asked.into_iter().map(|asked| (asked.command, asked.read)).unzip();
        let replies = self.run_all(commands).await?;
        reads.into_iter().zip(replies).map(|(of, reply)| read(of, reply)).collect()
    }

    async fn run_all(&self, commands: Vec<Command>) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        let mut refused = Vec::new();
        for (at, command) in commands.iter().enumerate() {
            refused.extend(self.refuse_for_space(command).await.map(|refusal| (at, refusal)));
        }
        if refused.is_empty() {
            self.run_admitted(commands).await
        } else {
            Box::pin(self.run_rest(commands, refused)).await
        }
    }

    async fn refuse_for_space(&self, command: &Command) -> Option<Refusal> {
        let Inner { store, settings, after, usage, .. } = &*self.inner;
        match after.reserve.refuse(store.reserve_left(), command) {
            Some(refusal) => Some(refusal),
            None => usage.refuse(&**store, &settings.quotas, command).await,
        }
    }

    /// Without those for which there is no room: a report goes through although the log beside it does not.
    async fn run_rest(
        &self,
        commands: Vec<Command>,
        refused: Vec<(usize, Refusal)>,
    ) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        let is_refused = |at: usize| refused.binary_search_by_key(&at, |(at, _)| *at).is_ok();
        let rest = commands.into_iter().enumerate().filter(|(at, _)| !is_refused(*at));
        let rest: Vec<Command> = rest.map(|(_, command)| command).collect();
        let mut replies = if rest.is_empty() { Vec::new() } else { self.run_admitted(rest).await? };
        for (at, refusal) in refused {
            replies.insert(at.min(replies.len()), Err(refusal));
        }
        Ok(replies)
    }

    /// Whether a schedule's job would find no room.
    pub(crate) async fn has_no_room(&self, namespace: &Namespace) -> bool {
        let Inner { store, settings, after, usage, .. } = &*self.inner;
        after.reserve.is_in_use(store.reserve_left()) || usage.is_over(&**store, &settings.quotas, namespace).await
    }

    /// How many bytes a namespace keeps, and how many it may keep, if there is a limit.
    pub async fn stored_bytes(&self, namespace: &Namespace) -> Result<(u64, Option<u64>), Error> {
        Ok((self.inner.store.stored_bytes(namespace).await?, self.inner.settings.quotas.of(namespace)))
    }

    async fn run_admitted(&self, commands: Vec<Command>) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        self.inner.crowd.admit(&*self.inner.store, &self.inner.settings.limits, &commands).await?;
        if heavy::of(&commands).is_some() {
            return Box::pin(self.run_heavy(commands)).await;
        }
        self.run_now(commands).await
    }

    async fn run_heavy(&self, commands: Vec<Command>) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        let _permit = match heavy::of(&commands) {
            Some(heavy) => Some(self.inner.heavy.permit(&self.inner.intake.queue, heavy).await?),
            None => None,
        };
        self.run_now(commands).await
    }

    async fn run_now(&self, commands: Vec<Command>) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        let reports = commands.iter().any(|command| matches!(command, Command::Complete(_) | Command::Fail(_)));
        let begun = reports.then(std::time::Instant::now);
        let replies = match self.inner.intake.queue.piece() {
            Some(piece) if commands.len() > piece || is_bulky(&commands) => {
                Box::pin(self.inner.intake.run_in_pieces(commands, &self.by, piece)).await?
            }
            _ => self.inner.intake.enqueue(commands, &self.by, None)?.await.map_err(lost)??,
        };
        if let Some(begun) = begun {
            self.inner.after.tally.report.observe(begun.elapsed());
        }
        Ok(replies)
    }

    /// Waits until somebody else changed something about a worker or what it holds, at most so long. `seen` is what the last call
    /// answered. True: there may be news, ask for them.
    pub async fn notice(&self, worker: &WorkerKey, seen: Option<&str>, wait: Duration) -> (bool, String) {
        let notices = &self.inner.after.notices;
        let Some(mark) = seen.and_then(|seen| notices.mark_of(seen)) else {
            return (true, notices.token(notices.mark()));
        };
        let deaf = self.inner.deaf.load(Ordering::Relaxed);
        let deadline = Instant::now() + if deaf { wait.min(LOOK_EVERY) } else { wait };
        let told = timeout_at(deadline, notices.told(worker.hint(), mark));
        tokio::select! {
            _ = told => {}
            () = self.until_stopping() => {}
        }
        let (news, mark) = notices.since(worker.hint(), mark);
        (news || deaf, notices.token(mark))
    }

    /// Reads one typed record, as it was last committed.
    pub async fn read_record<T: Kind>(&self, namespace: &Namespace, key: &str) -> Result<Option<T>, Error> {
        let found = self.inner.store.record(&record::key_of::<T>(namespace, key)).await?;
        found.map(|record| serde_json::from_str(&record.value)).transpose().map_err(|error| {
            StoreError::Corrupt(format!("the {} record {key:?} cannot be read: {error}", T::KIND)).into()
        })
    }

    /// The time by the clock that decides.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        Ok(self.inner.store.due(0).await?.now)
    }

    /// The time of day, for calendars: the clock on the wall, which may jump.
    pub async fn wall(&self) -> Result<Timestamp, Error> {
        Ok(self.inner.store.due(0).await?.wall)
    }

    /// Jobs and runs that callers wait for now.
    pub fn watched(&self) -> usize {
        self.inner.after.bulletin.subjects()
    }

    /// Waits until a job has ended, at most so long, and gives it as it is then.
    pub async fn watch(&self, key: &JobKey, wait: Duration) -> Result<Option<Job>, Error> {
        let deadline = Instant::now() + wait;
        let reader = self.inner.after.bulletin.register(Subject::Job(key.clone()));
        loop {
            let mut news = std::pin::pin!(reader.news());
            news.as_mut().enable();
            let job = self.inner.store.job(key).await?;
            if job.as_ref().is_none_or(|job| job.state.is_final()) || self.is_over(deadline) {
                return Ok(job);
            }
            self.wait_for_news(news, deadline).await;
        }
    }

    /// Waits until a run has ended, at most so long, and gives its row as it is then.
    pub async fn watch_run(&self, namespace: &Namespace, run: RunId, wait: Duration) -> Result<Option<Run>, Error> {
        let deadline = Instant::now() + wait;
        let reader = self.inner.after.bulletin.register(Subject::Run(namespace.clone(), run));
        let key = run.to_string();
        loop {
            let mut news = std::pin::pin!(reader.news());
            news.as_mut().enable();
            let row = self.read_record::<Run>(namespace, &key).await?;
            if row.as_ref().is_none_or(|run| run.finished_at.is_some()) || self.is_over(deadline) {
                return Ok(row);
            }
            self.wait_for_news(news, deadline).await;
        }
    }

    /// Log pieces after `after`; if there are none yet, waits for some, at most so long.
    pub async fn follow_log(
        &self,
        key: &JobKey,
        after: u64,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Vec<LogAppend>, Error> {
        let deadline = Instant::now() + wait;
        let reader = self.inner.after.bulletin.register(Subject::Job(key.clone()));
        loop {
            let mut news = std::pin::pin!(reader.news());
            news.as_mut().enable();
            let pieces = self.inner.store.read_log(key, after, bytes_max).await?;
            let over = !pieces.is_empty() || self.is_over(deadline);
            if over || self.inner.store.job(key).await?.is_none_or(|job| job.state.is_final()) {
                return Ok(pieces);
            }
            self.wait_for_news(news, deadline).await;
        }
    }

    async fn wait_for_news(&self, news: impl Future<Output = ()>, deadline: Instant) {
        let until = match self.inner.settings.poll_every {
            Some(every) => deadline.min(Instant::now() + every),
            None => deadline,
        };
        tokio::select! {
            _ = timeout_at(until, news) => {}
            () = self.until_stopping() => {}
        }
    }

    pub(crate) fn is_over(&self, deadline: Instant) -> bool {
        Instant::now() >= deadline || *self.inner.stopping.borrow()
    }

    pub(crate) async fn until_stopping(&self) {
        // The sender lives as long as this engine, so this ends only when the server is about to stop.
        drop(self.inner.stopping.subscribe().wait_for(|stopping| *stopping).await);
    }

    /// Answers everyone who waits with what there is now, and lets nobody wait from here on: the server is about to stop.
    pub fn stop_waiting(&self) {
        self.inner.stopping.send_replace(true);
    }

    /// Returns when the store has stopped for good, as it does after a failed sync. A damaged row alone is not that, so
    /// after each sign of damage the store is asked for something else.
    pub async fn stopped(&self) -> StoreError {
        let (mut damage, mut seen) = (self.inner.after.damage.subscribe(), 0);
        loop {
            match damage.wait_for(|count| *count > seen).await {
                Ok(count) => seen = *count,
                Err(_) => return std::future::pending().await,
            }
            let anything = UseToken { namespace: Namespace::default(), hash: "0".repeat(64).into() };
            if let Err(Error::Store(error @ StoreError::Corrupt(_))) = self.run(anything).await {
                return error;
            }
        }
    }

    /// Events after number `after`, or from now on.
    pub async fn subscribe(&self, after: Option<u64>) -> Result<Subscription, Error> {
        Ok(Subscription::new(self.inner.after.feed.clone(), self.inner.store.clone(), None, after).await?)
    }

    /// The same of one namespace alone. Batches without events of it do not wait for the disk on this reader's account.
    pub async fn follow(&self, namespace: Namespace, after: Option<u64>) -> Result<Subscription, Error> {
        Ok(Subscription::new(self.inner.after.feed.clone(), self.inner.store.clone(), Some(namespace), after).await?)
    }

    /// A place among those who decide for runs. Taken before looking, so that no turn that comes later goes unheard.
    pub fn planner(&self) -> Waiter {
        let query = HeadQuery { namespace: stage::system_namespace(), offered: Tags::default() };
        self.inner.after.waiters.register(query, usize::MAX).expect("there is no limit")
    }

    /// Whether the store has only its reserve left, or had no room for what was last to be written. It may have some by now.
    pub fn is_full(&self) -> bool {
        self.inner.store.reserve_left().is_some() || self.inner.after.is_full()
    }

    pub fn counts(&self) -> Counts {
        self.inner.after.counts()
    }

    /// What was done since the start.
    pub fn tally(&self) -> &Tally {
        &self.inner.after.tally
    }

    /// What was done in each minute and is not written down yet.
    pub fn history(&self) -> &History {
        &self.inner.after.history
    }

    /// How many claimers wait in a namespace.
    pub fn waiting(&self, namespace: &Namespace) -> usize {
        self.inner.after.waiters.len(namespace)
    }

    /// How many of them could take a job with these tags.
    pub fn waiting_for(&self, namespace: &Namespace, tags: &Tags) -> usize {
        self.inner.after.waiters.fitting(namespace, tags)
    }

    /// Accepts no more, answers everything accepted, and returns when all of it is on disk.
    pub async fn shut_down(&self) {
        self.inner.close();
        let batcher = self.batcher.lock().take();
        if let Some(batcher) = batcher {
            drop(tokio::task::spawn_blocking(move || batcher.join()).await);
        }
    }
}

impl Inner {
    fn close(&self) {
        self.intake.queue.close();
        self.after.alarm.stop();
    }
}

fn read<T>(of: fn(Reply) -> Option<T>, reply: Result<Reply, Refusal>) -> Result<Result<T, Refusal>, Error> {
    reply.map(|reply| of(reply).ok_or_else(mixed_up)).map_or_else(|refusal| Ok(Err(refusal)), |reply| reply.map(Ok))
}

/// The rules answer each command with its own type, so only a store that returns replies in another order can cause this.
pub(crate) fn mixed_up() -> Error {
    StoreError::Unavailable("it answered a command with the reply to another".into()).into()
}
