//! Workflows that start by the calendar: the newest live version of each.
//!
//! A record per schedule says when it starts next. Starting writes the next time under the version it was read at, in the transaction
//! that makes the run, so that of several servers one starts it. Times that passed while no server ran are let go.

use super::{
    Neops, definitions,
    error::{HttpError, Result},
    runs::{
        row::{self, Trigger},
        submit::{self, Start},
    },
};
use crate::{
    calendar::Calendar,
    dialects::neops::namespace,
    flows::begun,
    problem::Problem,
    records::Records,
    running::Running,
    scheduler::{LATE_MAX, between, pause},
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use windlass_api::Uuid;
use windlass_core::{
    Command, Millis, Timestamp,
    commands::{all::All, records::Expect},
};
use windlass_engine::records::Kept;
use windlass_plan::{
    Budget, Meter,
    neops::{document::Document, reference::Reference, schedule::Cron, scope::Scope, template},
};

/// Where another server is about to start a run, it is looked again whether it did.
const LOOK_AGAIN: Millis = Millis::from_secs(1);

/// By workflow and position: `package/name#0`.
const NEXT: Records<Next> = Records::new("neops_cron", namespace);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Next {
    /// The version whose schedule it is.
    workflow: String,
    cron: String,
    time_zone: String,
    /// None: the time never comes.
    at: Option<Timestamp>,
    /// The run that it started last.
    run: Option<Uuid>,
}

/// Starts what is due, in the background.
pub fn start(neops: Neops) -> Running {
    let mut running = Running::default();
    running.tasks.push(tokio::spawn(run(neops)));
    running
}

/// Runs until it is aborted.
async fn run(neops: Neops) {
    loop {
        let next = async {
            follow(&neops).await?;
            tick(&neops).await
        };
        let next = next.await.map_err(|refused: HttpError| refused.message);
        pause(next, &neops.own.scheduler, "scheduled neops workflows").await;
    }
}

/// Makes the records say what the newest live versions say.
pub async fn follow(neops: &Neops) -> Result<()> {
    let now = neops.engine.wall().await?;
    let (mut known, mut commands) = (BTreeMap::new(), Vec::new());
    NEXT.each(neops, None, |kept| known.insert(kept.key.clone(), kept).is_none()).await?;
    for (id, _) in definitions::newest_live(neops).await?.into_iter().filter(|(_, cron)| *cron) {
        let Some(reference) = Reference::parse(&id) else { continue };
        for (at, cron) in schedules(neops, &reference).await?.iter().enumerate().filter(|(_, cron)| cron.enabled) {
            let key = format!("{}/{}#{at}", reference.package, reference.name);
            let before = known.remove(&*key);
            let same = |next: &Next| (&next.cron, &next.time_zone) == (&cron.cron, &cron.time_zone);
            let kept = before.as_ref().filter(|kept| same(&kept.value));
            if kept.is_some_and(|kept| kept.value.workflow == id) {
                continue;
            }
            let at = match kept {
                Some(kept) => kept.value.at,
                None => Calendar::new(&cron.cron, Some(&cron.time_zone))?.strictly_after(now),
            };
            let run = before.as_ref().and_then(|kept| kept.value.run);
            let (cron, time_zone) = (cron.cron.clone(), cron.time_zone.clone());
            let next = Next { workflow: id.clone(), cron, time_zone, at, run };
            commands.push(NEXT.put(&key, &next, before.map_or(Expect::Nothing, |kept| kept.unchanged())).into());
        }
    }
    commands.extend(known.values().map(|kept| Command::from(NEXT.delete(&kept.key, kept.unchanged()))));
    for command in commands {
        // Another server may have been faster, and says the same.
        definitions::written(neops.engine.run(All { commands: vec![command] }).await)?;
    }
    Ok(())
}

async fn schedules(neops: &Neops, reference: &Reference) -> Result<Vec<Cron>, Problem> {
    let found = definitions::resolve(neops, reference).await?;
    Ok(found.and_then(|(_, document)| Document::read(&document).ok()).map(|read| read.cron).unwrap_or_default())
}

/// Starts what is due, and says how long it is to the next one.
pub async fn tick(neops: &Neops) -> Result<Option<Duration>> {
    let mut all = Vec::new();
    NEXT.each(neops, None, |kept| {
        all.push(kept);
        true
    })
    .await?;
    let mut soonest: Option<Timestamp> = None;
    for kept in all {
        let Some(at) = kept.value.at else { continue };
        let now = neops.engine.wall().await?;
        let next = if at <= now { fire(neops, &kept, at, now).await? } else { Some(at) };
        soonest = [soonest, next].into_iter().flatten().min();
    }
    let now = neops.engine.wall().await?;
    Ok(soonest.map(|at| between(now, at)))
}

/// What ended its server twice is let go, until another version of the workflow is published.
async fn fire(neops: &Neops, kept: &Kept<Next>, at: Timestamp, now: Timestamp) -> Result<Option<Timestamp>> {
    let name = format!("{}/cron/{}@{}", namespace(), kept.key, kept.value.workflow);
    let begun = match begun::begin(neops, name).await {
        Err(problem) if begun::is_elsewhere(&problem) => return Ok(Some(now + LOOK_AGAIN)),
        begun => begun?,
    };
    if begun.is_none() {
        tracing::warn!(schedule = &*kept.key, why = &*begun::why(), "a scheduled neops workflow is not started");
    }
    let fired = fire_begun(neops, kept, begun.is_some() && now - at <= LATE_MAX, now).await;
    match (begun, &fired) {
        (Some(begun), Ok(_)) => begun.ended().await,
        (Some(begun), Err(_)) => begun.given_up().await,
        (None, _) => {}
    }
    fired
}

async fn fire_begun(neops: &Neops, kept: &Kept<Next>, starts: bool, now: Timestamp) -> Result<Option<Timestamp>> {
    let calendar = Calendar::new(&kept.value.cron, Some(&kept.value.time_zone))?;
    let mut next = Next { at: calendar.strictly_after(now), ..kept.value.clone() };
    let (soon, put) = (next.at, |next: &Next| Command::from(NEXT.put(&kept.key, next, kept.unchanged())));
    let wanted = if starts { wanted(neops, kept).await? } else { None };
    let Some((workflow, cron)) = wanted else {
        definitions::written(neops.engine.run(All { commands: vec![put(&next)] }).await)?;
        return Ok(soon);
    };
    let id = windlass_engine::ids::run_id().0;
    next.run = Some(id);
    let start = Start {
        workflow,
        ids: Vec::new(),
        query: Some(cron.query).filter(|query| !query.is_empty()),
        parameters: cron.parameters,
        id: Some(id),
        trigger: Trigger::Cron,
        by: None,
        also: vec![put(&next)],
    };
    match submit::start(neops, start).await {
        Ok(_) => {}
        // Another server started it.
        Err(refused) if refused.status == StatusCode::CONFLICT => {}
        Err(refused) => {
            tracing::warn!(
                schedule = &*kept.key,
                why = refused.message,
                "a scheduled neops workflow could not be started"
            );
            definitions::written(neops.engine.run(All { commands: vec![put(&Next { run: None, ..next })] }).await)?;
        }
    }
    Ok(soon)
}

/// What is to be started now: nothing, if the condition does not hold, or the last run has not ended and none may overlap.
async fn wanted(neops: &Neops, kept: &Kept<Next>) -> Result<Option<(Reference, Cron)>> {
    let Some(reference) = Reference::parse(&kept.value.workflow) else { return Ok(None) };
    let position = kept.key.rsplit_once('#').and_then(|(_, at)| at.parse().ok()).unwrap_or(usize::MAX);
    let Some(cron) = schedules(neops, &reference).await?.into_iter().nth(position) else { return Ok(None) };
    let parameters = [("parameters", Value::Object(cron.parameters.clone())), ("context", json!({}))];
    if let Some(text) = &cron.condition {
        // Of so little that it is evaluated on the spot.
        let held = template::holds(text, &Scope::of(parameters), &Meter::new(Budget::default().small()));
        if let Err(why) = &held {
            tracing::warn!(schedule = &*kept.key, why, "a scheduled neops workflow was not started");
        }
        if held != Ok(true) {
            return Ok(None);
        }
    }
    let running = match kept.value.run.filter(|_| !cron.overlaps) {
        Some(run) => row::find(neops, run).await?.is_some_and(|row| !row.value.status.is_final()),
        None => false,
    };
    Ok((!running).then_some((reference, cron)))
}
