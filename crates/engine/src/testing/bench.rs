//! A store on the bench: its clock in the test's hand, commands run one batch at a time.

use super::{TestResult, standing::some_wait};
use crate::{
    clock::{Clock, Simulated},
    store::{Batch, Committed, Store},
};
use std::{any::Any, sync::Arc, time::Duration};
use windlass_core::{
    Command, Event, Limits, Millis, Timestamp,
    decider::Item,
    stall::{Stall, Stalls},
};

/// Where every simulated clock starts: late enough that "long ago" is not the same as zero.
pub const START: Timestamp = Timestamp(1_700_000_000_000);

/// How many rounds of sweeping may follow from one another before something is wrong.
const ROUNDS_MAX: usize = 200;
const PAGE: usize = 500;

/// An empty store, its clock at [`START`], and whatever must live as long as it does (a folder, a server).
pub struct Fresh {
    pub store: Arc<dyn Store>,
    pub clock: Arc<Simulated>,
    pub keep: Option<Box<dyn Any + Send + Sync>>,
}

impl From<(Arc<dyn Store>, Arc<Simulated>)> for Fresh {
    fn from((store, clock): (Arc<dyn Store>, Arc<Simulated>)) -> Self {
        Self { store, clock, keep: None }
    }
}

pub struct Bench {
    pub store: Arc<dyn Store>,
    pub clock: Arc<Simulated>,
    pub limits: Limits,
    /// From when until when the server did not respond.
    pub stalls: Vec<(Timestamp, Timestamp)>,
    seeds: u64,
    /// Events that batches said they told.
    told: u64,
    _keep: Option<Box<dyn Any + Send + Sync>>,
}

impl Bench {
    pub fn new(fresh: impl Into<Fresh>) -> Self {
        let Fresh { store, clock, keep } = fresh.into();
        Self { store, clock, limits: Limits::default(), stalls: Vec::new(), seeds: 0, told: 0, _keep: keep }
    }

    pub fn set(&self, since_start: Millis) {
        self.clock.set(START + since_start);
    }

    /// Runs the commands as one batch, each with a seed of its own.
    pub async fn run(&mut self, commands: Vec<Command>) -> TestResult<Committed> {
        let seeded = |command| {
            self.seeds += 1;
            Item { command, seed: self.seeds, by: None }
        };
        let items = commands.into_iter().map(seeded).collect();
        self.run_items(items).await
    }

    pub async fn run_items(&mut self, items: Vec<Item>) -> TestResult<Committed> {
        let count = items.len();
        let batch = Batch { stalls: self.recent_stalls(), ..some_wait(items, self.limits) };
        let committed = self.store.run(batch).await.map_err(|error| format!("the batch was not run: {error}"))?;
        self.told += committed.events.len() as u64;
        if committed.replies.len() != count {
            return Err(format!("{count} commands got {} replies", committed.replies.len()));
        }
        Ok(committed)
    }

    fn recent_stalls(&self) -> Stalls {
        let (now, mut stalls) = (self.clock.now(), Stalls::default());
        for &(began, ended) in &self.stalls {
            stalls.add(Stall { began: now - began, ended: now - ended });
        }
        stalls
    }

    pub async fn one(&mut self, command: impl Into<Command>) -> TestResult<windlass_core::Reply> {
        let mut committed = self.run(vec![command.into()]).await?;
        committed.replies.remove(0).map_err(|refusal| format!("refused {}: {refusal}", refusal.code()))
    }

    /// Sweeps until nothing is due, as the engine would. Says how many rows were due.
    pub async fn tick(&mut self) -> TestResult<usize> {
        let mut swept = 0;
        for _ in 0..ROUNDS_MAX {
            let page = self.store.due(PAGE).await.map_err(|error| format!("due: {error}"))?;
            if page.due.is_empty() {
                return Ok(swept);
            }
            swept += page.due.len();
            let committed = self.run(page.due.iter().cloned().map(Command::Due).collect()).await?;
            if let Some(refusal) = committed.replies.iter().find_map(|reply| reply.as_ref().err()) {
                return Err(format!("the sweep was refused: {refusal}"));
            }
        }
        let page = self.store.due(3).await.map_err(|error| format!("due: {error}"))?;
        Err(format!("the sweep never comes to an end; still due: {:?}", page.due))
    }

    /// How many events the batches of this bench told so far.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// All kept events, once the store has numbered every one that was told.
    pub async fn events(&self) -> TestResult<Vec<(u64, Event)>> {
        events(&*self.store, self.told).await
    }
}

/// All kept events in order, page by page. A store may number them a moment after the commit, so this waits until
/// `told` of them are numbered.
pub async fn events(store: &dyn Store, told: u64) -> TestResult<Vec<(u64, Event)>> {
    let (mut found, mut after): (Vec<(u64, Event)>, u64) = (Vec::new(), 0);
    for _ in 0..1_000 {
        let page = store.events_after(after, PAGE).await.map_err(|error| format!("events: {error}"))?;
        let last = page.events.last().map(|(number, _)| *number);
        found.extend(page.events);
        match last {
            Some(last) => after = last,
            None if page.last >= told => return Ok(found),
            None => tokio::time::sleep(Duration::from_millis(10)).await, // A store numbers events in its own time.
        }
    }
    Err(format!("{told} events were told, {} were numbered", found.len()))
}
