//! Fires calendar schedules. The rules know no calendars, so somebody who does has to tell them the next time.
//!
//! Any number of servers may do this at once: a firing names the time it is for, and of two for the same time the second
//! is refused. A time that passed while no server ran is made up for once, or let go, as the schedule says; either way
//! the schedule goes on from now. Fixed intervals need none of this: the sweep fires them.
//!
//! Calendars go by the clock on the wall. If that is set forward, what is passed over is made up for in the same way; if it is
//! set back, what was fired is not fired again.
//!
//! Dialects keep schedules of their own, with jobs and runs that only they can make; how they wait is the same for all.

use crate::{
    app::App,
    auth::{hash, system_namespace},
    calendar::Calendar,
    problem::Result,
};
use std::{fmt::Display, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use windlass_core::{
    Millis, Namespace, RecordKey, Timestamp,
    commands::fire::Fire,
    schedule::{Rule, Schedule},
};
use windlass_engine::{records::readable, store::RecordQuery};

/// Where other servers may have written schedules, they are found by looking.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_secs(600);
/// So soon is it noticed that somebody set the clock on the wall, if that moved it by more than so much.
const WATCH_EVERY: Duration = Duration::from_secs(5);
const JUMP_MS: i64 = 2_000;
/// After a failure: the store is away, or a schedule cannot be fired.
const RETRY: Duration = Duration::from_secs(10);
/// A firing of a dialect's schedule that is later than this was missed: no busy server takes so long.
pub const LATE_MAX: Millis = Millis::from_secs(30);

/// Points at a calendar schedule, wherever it is: the scheduler looks through all namespaces by these.
const POINTER: &str = "calendar";

pub fn pointer(namespace: &Namespace, name: &str) -> RecordKey {
    let key = hash(&format!("{namespace}/{name}"));
    RecordKey { namespace: system_namespace(), kind: POINTER.into(), key: key.into() }
}

/// Where a pointer leads.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Pointer {
    pub namespace: Namespace,
    pub name: String,
}

/// Runs until it is aborted.
pub async fn run(app: App) {
    loop {
        let next = match tick(&app).await {
            Ok(next) => next.map(|wait| Instant::now() + wait.min(WAIT_MAX)),
            Err(problem) => {
                tracing::warn!(problem = %problem.0, "schedules could not be read");
                Some(Instant::now() + RETRY)
            }
        };
        let shared = app.engine.settings().poll_every.map(|_| Instant::now() + LOOK_EVERY);
        let until = [next, shared].into_iter().flatten().min();
        tokio::select! {
            () = app.schedules_changed.notified() => {}
            () = sleep(&app, until) => {}
        }
    }
}

/// For ever, where there is nothing to wait for. Shorter, if somebody sets the clock on the wall meanwhile.
async fn sleep(app: &App, until: Option<Instant>) {
    let Some(until) = until else { return std::future::pending().await };
    let (begun, first) = (Instant::now(), app.engine.wall().await);
    while Instant::now() < until {
        sleep_until(until.min(Instant::now() + WATCH_EVERY)).await;
        if let (Ok(first), Ok(wall)) = (&first, app.engine.wall().await) {
            let passed = begun.elapsed().as_millis() as i64;
            if ((wall - *first).0 - passed).abs() > JUMP_MS {
                return tracing::info!("the system clock was changed: checking all schedules");
            }
        }
    }
}

/// Fires what is due, and says how long it is to the next one.
pub async fn tick(app: &App) -> Result<Option<Duration>> {
    let mut pages = app.engine.pages(RecordQuery::all(system_namespace(), POINTER));
    let mut wait: Option<Duration> = None;
    while let Some(found) = pages.next().await? {
        for pointer in found.iter().filter_map(readable::<Pointer>) {
            let next = look(app, &pointer.namespace, &pointer.name).await?;
            wait = [wait, next].into_iter().flatten().min();
        }
    }
    Ok(wait)
}

/// Fires one schedule if its time has come. How long to wait for the next time, if there is one.
async fn look(app: &App, namespace: &Namespace, name: &str) -> Result<Option<Duration>> {
    let Some(schedule) = app.engine.read_record::<Schedule>(namespace, name).await? else { return Ok(None) };
    let Rule::Calendar(text) = &schedule.rule else { return Ok(None) };
    if schedule.paused {
        return Ok(None);
    }
    let now = app.engine.wall().await?;
    if schedule.next_at > now {
        return Ok(Some(between(now, schedule.next_at)));
    }
    let next = Calendar::restore(text).ok().and_then(|calendar| calendar.after(now));
    let Some(next_at) = next else {
        tracing::warn!(%namespace, name, "the schedule's time never comes again");
        return Ok(None);
    };
    let expected_at = schedule.next_at;
    let fire = Fire { namespace: namespace.clone(), name: name.into(), expected_at, next_at, wall: now };
    match app.engine.run(fire).await {
        Ok(_) => Ok(Some(between(now, next_at))),
        // Another server was first, or what it makes is refused now: look again in a while.
        Err(windlass_engine::Error::Refused(refusal)) => {
            tracing::debug!(%namespace, name, %refusal, "the schedule was not fired");
            Ok(Some(RETRY))
        }
        Err(error) => Err(error.into()),
    }
}

/// Waits for the next time of a dialect's schedules: for what looking at them came to, or until it is rung for.
pub async fn pause<E: Display>(next: Result<Option<Duration>, E>, rung: &Notify, what: &str) {
    let wait = match next {
        Ok(next) => next.unwrap_or(LOOK_EVERY).min(LOOK_EVERY),
        Err(why) => {
            tracing::warn!(%why, "{what} could not be looked at");
            LOOK_EVERY
        }
    };
    tokio::select! {
        () = rung.notified() => {}
        () = tokio::time::sleep(wait) => {}
    }
}

pub fn between(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_millis((then - now).0.max(1).unsigned_abs())
}
