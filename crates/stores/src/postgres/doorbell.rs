//! Tells other servers that there is work and which jobs and runs have ended, and hears it from them.
//!
//! A wake-up is a hint: everything works without, by polling, for instance behind a pooler that does not pass
//! notifications on. Never sent inside a write transaction, because PostgreSQL lets only one transaction with a
//! notification commit at a time; instead what many batches have to tell is sent together, at most every 50 ms.

use super::{connection::Target, failure::describe, lanes::Lanes, rows::uuid_of};
use std::{
    collections::{HashSet, VecDeque},
    future::poll_fn,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;
use windlass_core::{Event, Lane, Wake, WorkerKey};
use windlass_engine::store::{Bell, Subject};

/// The least time between two notifications.
const GAP: Duration = Duration::from_millis(50);
/// More lanes and workers than this are not named. PostgreSQL takes less than 8,000 bytes.
const WORDS_MAX: usize = 200;
/// Ends that one notification names, and that wait to be named. More are found by those who wait for them, by looking.
const ENDED_AT_ONCE: usize = 400;
const ENDED_MAX: usize = 4_000;
/// How long our own notification may take to come back before the channel is called deaf.
const ECHO_MAX: Duration = Duration::from_secs(10);
const BELLS_MAX: usize = 256;

pub struct Doorbell {
    words: mpsc::Sender<Vec<Word>>,
}

/// What others are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Word {
    /// There is work in this lane.
    Lane(Lane),
    /// Something about this worker changed.
    Worker(u64),
    /// This job or run has ended.
    Ended(u64),
}

impl Word {
    fn text(self) -> String {
        match self {
            Word::Lane(lane) => uuid_of(lane).simple().to_string(),
            Word::Worker(worker) => format!("w{worker:016x}"),
            Word::Ended(subject) => format!("j{subject:016x}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        if let Some(worker) = text.strip_prefix('w') {
            return number(worker).map(Word::Worker);
        }
        if let Some(subject) = text.strip_prefix('j') {
            return number(subject).map(Word::Ended);
        }
        Uuid::parse_str(text).ok().map(|lane| Word::Lane(Lane(lane.as_u128())))
    }
}

impl Doorbell {
    pub fn start(target: Arc<Target>, lanes: Arc<Lanes>) -> (Self, mpsc::Receiver<Bell>) {
        let (ring, rung) = mpsc::channel(BELLS_MAX);
        let (bells, heard) = mpsc::channel(BELLS_MAX);
        let ringer = Ringer { target, lanes, bells, me: Uuid::new_v4().simple().to_string() };
        tokio::spawn(ringer.work(rung));
        (Self { words: ring }, heard)
    }

    /// Never waits: where too much is on its way already, others hear of something anyway.
    pub fn ring(&self, wakes: &[Wake], notices: &[WorkerKey], events: &[Event]) {
        let mut lanes: Vec<Lane> = wakes.iter().map(|wake| wake.lane).collect();
        lanes.sort();
        lanes.dedup();
        let workers = notices.iter().map(|worker| Word::Worker(worker.hint()));
        let ended = events.iter().filter_map(Subject::ended_by).map(|subject| Word::Ended(subject.hint()));
        let words: Vec<Word> = lanes.into_iter().map(Word::Lane).chain(workers).chain(ended).collect();
        if !words.is_empty() {
            let _ = self.words.try_send(words);
        }
    }
}

struct Ringer {
    target: Arc<Target>,
    lanes: Arc<Lanes>,
    bells: mpsc::Sender<Bell>,
    me: String,
}

impl Ringer {
    /// Until the store is gone.
    async fn work(self, mut rung: mpsc::Receiver<Vec<Word>>) {
        let mut pause = Duration::from_millis(100);
        loop {
            let begun = Instant::now();
            match self.session(&mut rung).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(error = describe(&error), "the doorbell's connection ended"),
            }
            if begun.elapsed() > Duration::from_secs(60) {
                pause = Duration::from_millis(100);
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(10));
            if rung.is_closed() && rung.is_empty() {
                return;
            }
        }
    }

    /// One connection, used for both directions. Ends without an error when the store is gone.
    async fn session(&self, rung: &mut mpsc::Receiver<Vec<Word>>) -> Result<(), tokio_postgres::Error> {
        let (client, mut connection) = self.target.address.connect().await?;
        let (heard, mut hears) = mpsc::channel(BELLS_MAX);
        let driver = tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message? {
                    // When nobody keeps up, what is lost is a hint.
                    let _ = heard.try_send(notification.payload().to_owned());
                }
            }
            Ok::<(), tokio_postgres::Error>(())
        });
        let result = self.converse(&client, rung, &mut hears).await;
        drop(client);
        driver.abort();
        result
    }

    async fn converse(
        &self,
        client: &Client,
        rung: &mut mpsc::Receiver<Vec<Word>>,
        hears: &mut mpsc::Receiver<String>,
    ) -> Result<(), tokio_postgres::Error> {
        let channel = self.channel();
        client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
        // What was said before this connection listened is not known.
        let _ = self.bells.try_send(Bell::Something);
        let notify = client.prepare("SELECT pg_notify($1, $2)").await?;
        let (mut due, mut ended): (HashSet<Word>, VecDeque<Word>) = (HashSet::new(), VecDeque::new());
        let mut next = Instant::now();
        let mut echo: Option<Instant> = None;
        loop {
            tokio::select! {
                words = rung.recv() => match words {
                    Some(words) => {
                        let (ends, others): (Vec<Word>, Vec<Word>) =
                            words.into_iter().partition(|word| matches!(word, Word::Ended(_)));
                        due.extend(others);
                        let room = ENDED_MAX.saturating_sub(ended.len());
                        ended.extend(ends.into_iter().take(room));
                    }
                    None => return Ok(()),
                },
                text = hears.recv() => match text {
                    Some(text) => {
                        if self.hear(&text) {
                            echo = None;
                        }
                    }
                    // The connection is gone; asking it says why.
                    None => client.batch_execute("").await?,
                },
                () = sleep_until(next), if !due.is_empty() || !ended.is_empty() => {
                    if !due.is_empty() {
                        let text = self.text(&due);
                        due.clear();
                        client.query(&notify, &[&channel, &text]).await?;
                    }
                    if !ended.is_empty() {
                        let now: Vec<Word> = ended.drain(..ended.len().min(ENDED_AT_ONCE)).collect();
                        client.query(&notify, &[&channel, &self.said(&now)]).await?;
                    }
                    next = Instant::now() + GAP;
                    echo.get_or_insert(next);
                    if echo.is_some_and(|since| since.elapsed() > ECHO_MAX) {
                        tracing::warn!("notifications do not come back; other servers' work is found by polling");
                        echo = Some(Instant::now() + Duration::from_secs(3_600));
                    }
                }
            }
        }
    }

    fn channel(&self) -> String {
        format!("{}_work", self.target.schema)
    }

    fn text(&self, words: &HashSet<Word>) -> String {
        if words.len() > WORDS_MAX {
            return format!("{} *", self.me);
        }
        self.said(words)
    }

    fn said<'a>(&self, words: impl IntoIterator<Item = &'a Word>) -> String {
        words.into_iter().fold(self.me.clone(), |text, word| text + " " + &word.text())
    }

    /// True for our own words.
    fn hear(&self, text: &str) -> bool {
        let mut words = text.split(' ');
        if words.next() == Some(&self.me) {
            return true;
        }
        for bell in self.bells_of(words) {
            if let Bell::Wakes(wakes) = &bell {
                self.lanes.saw_work(wakes);
            }
            let _ = self.bells.try_send(bell);
        }
        false
    }

    /// What another server's words mean here.
    fn bells_of<'a>(&self, words: impl Iterator<Item = &'a str>) -> Vec<Bell> {
        let Some(words) = words.map(Word::parse).collect::<Option<Vec<Word>>>() else { return vec![Bell::Something] };
        let (mut wakes, mut workers, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            match word {
                Word::Worker(worker) => workers.push(worker),
                Word::Ended(subject) => ended.push(subject),
                Word::Lane(lane) => match self.lanes.wake_of(lane) {
                    Some(wake) => wakes.push(wake),
                    // A lane that is not known here yet is found by looking.
                    None => return vec![Bell::Something],
                },
            }
        }
        let wakes = (!wakes.is_empty()).then_some(Bell::Wakes(wakes));
        let workers = (!workers.is_empty()).then_some(Bell::Notices(workers));
        wakes.into_iter().chain(workers).chain((!ended.is_empty()).then_some(Bell::Ended(ended))).collect()
    }
}
