//! Decides the steps whose turn has come.
//!
//! Turns are records, written by the transaction that ends a job, so whoever finds one may decide it: this server at once,
//! because it is woken, or any server later, because it looks. Of two that decide the same turn the second changes nothing.
//! An idle planner waits and reads nothing.
//!
//! Several runs are decided for at a time, namespaces in turn, and each only for a while before the next one's turn.

use super::{
    reader,
    turns::{self, NextRuns, Served},
};
use crate::{
    app::App,
    planned::{Decided, Unit},
    problem::Result,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout_at},
};
use windlass_core::{Namespace, RunId};

/// Runs that are decided for at a time, and of one namespace.
const AT_ONCE: usize = 16;
const AT_ONCE_EACH: usize = 4;
/// While something takes long, turns that came meanwhile are found by looking so often.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Where other servers may have left turns behind, they are found by looking.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// After a failure: the store is away.
const RETRY: Duration = Duration::from_secs(5);

/// Runs until it is aborted, or the server is to stop.
pub async fn run(app: App) {
    while !app.drain.is_cancelled() {
        let waiter = app.engine.planner();
        let again = match tick(&app).await {
            Ok(left) => (left > 0).then_some(RETRY),
            Err(problem) => {
                tracing::warn!(problem = %problem.0, "runs could not be planned");
                Some(RETRY)
            }
        };
        let shared = app.engine.settings().poll_every.map(|_| LOOK_EVERY);
        let soon = [again, shared].into_iter().flatten().min().map(|wait| Instant::now() + wait);
        let until = [soon, app.later.next()].into_iter().flatten().min();
        tokio::select! {
            () = waiter.woken() => waiter.used(),
            () = sleep(until) => {}
            () = app.drain.cancelled() => {}
        }
    }
}

/// For ever, where there is nothing to wait for.
async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Decides all there is. How many turns are left, because something went wrong with them.
pub async fn tick(app: &App) -> Result<usize> {
    Planner::new(app).work().await
}

type Run = (Namespace, RunId);

struct Planner<'a> {
    app: &'a App,
    next_runs: NextRuns,
    served: Served,
    queue: VecDeque<Unit>,
    looked: Instant,
    working: JoinSet<(Run, Result<(), usize>)>,
    busy: HashSet<Run>,
    /// Runs that are left alone until the next tick, and how many of their turns went wrong.
    left: HashMap<Run, usize>,
}

impl<'a> Planner<'a> {
    fn new(app: &'a App) -> Self {
        Self {
            app,
            next_runs: NextRuns::default(),
            served: Served::default(),
            queue: VecDeque::new(),
            looked: Instant::now(),
            working: JoinSet::new(),
            busy: HashSet::new(),
            left: HashMap::new(),
        }
    }

    async fn work(mut self) -> Result<usize> {
        self.look().await?;
        loop {
            self.start();
            if self.working.is_empty() {
                return Ok(self.left.values().sum());
            }
            if let Ok(Some(Ok((run, done)))) = timeout_at(self.looked + LOOK_AGAIN, self.working.join_next()).await {
                self.busy.remove(&run);
                if let Err(left) = done {
                    self.left.insert(run, left);
                }
            }
            // What was decided may have brought the next turns, and others may have come.
            let is_time = self.looked.elapsed() >= LOOK_AGAIN;
            if is_time || (self.queue.is_empty() && self.working.len() < AT_ONCE) {
                self.look().await?;
            }
        }
    }

    async fn look(&mut self) -> Result<()> {
        if self.app.drain.is_cancelled() {
            self.queue.clear();
            self.looked = Instant::now();
            return Ok(());
        }
        let (all, whole) = turns::find(self.app, &mut self.next_runs).await?;
        if whole {
            self.app.later.retain(&all);
        }
        let mut found = self.served.order(all);
        found.retain(|unit| {
            let run = (unit.namespace.clone(), unit.run);
            !self.busy.contains(&run) && !self.left.contains_key(&run) && !self.app.later.waits(unit, Instant::now())
        });
        self.queue = found;
        self.looked = Instant::now();
        Ok(())
    }

    fn start(&mut self) {
        let mut later = VecDeque::new();
        while self.working.len() < AT_ONCE
            && let Some(unit) = self.queue.pop_front()
        {
            let busy = self.busy.iter().filter(|(namespace, _)| *namespace == unit.namespace).count();
            if busy >= AT_ONCE_EACH {
                later.push_back(unit);
                continue;
            }
            let run = (unit.namespace.clone(), unit.run);
            self.served.note(&unit);
            self.busy.insert(run.clone());
            let app = self.app.clone();
            self.working.spawn(async move { (run, work_on(&app, unit).await) });
        }
        later.append(&mut self.queue);
        self.queue = later;
    }
}

/// Otherwise how many turns went wrong. None is an error as well if none was decided: the next look would find the same.
async fn work_on(app: &App, unit: Unit) -> Result<(), usize> {
    let (namespace, run, count) = (unit.namespace.clone(), unit.run, unit.jobs.len());
    let later = &app.later;
    match reader::decide(app, unit.clone()).await {
        Ok(Decided::Turns(0)) => Err(0),
        Ok(Decided::Turns(_)) => {
            later.forget(&namespace, run);
            Ok(())
        }
        Ok(Decided::NotYet) => {
            later.note(&unit, Instant::now());
            Ok(())
        }
        Err(problem) => {
            tracing::warn!(%namespace, %run, problem = %problem.0, "the run could not be planned");
            Err(count)
        }
    }
}
