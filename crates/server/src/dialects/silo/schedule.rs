//! Definitions that fire by the calendar.
//!
//! A record per definition says when it fires next. Firing writes the next time under the version it was read at, so that of
//! several servers one fires. Times that passed while no server ran are let go.

use super::{
    Silo,
    definitions::{self, Definition, InForce, ScopeKind},
    error::Result,
    jobs, products,
    trigger::{self, Target, TriggerOptions},
};
use crate::{
    app::App,
    calendar::Calendar,
    flows::begun,
    scheduler::{LATE_MAX, between, pause},
};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use windlass_core::{Command, Millis, Timestamp, commands::records::Expect};
use windlass_product::{
    Products, items, projects,
    records::{self, Kept, Kind, Of, Put},
    rules::{item::Item, trigger::Trigger},
};

const SCHEDULE: Kind<Next> = Kind::new("silo_schedule");

/// Where another server is about to fire, it is looked again whether it did.
const LOOK_AGAIN: Millis = Millis::from_secs(1);
/// Jobs made in one transaction.
const JOBS_AT_ONCE: usize = 500;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Next {
    cron: String,
    timezone: String,
    /// None: the time never comes.
    at: Option<Timestamp>,
}

fn calendar(definition: &Definition) -> Option<(Calendar, String, String)> {
    let cron = definition.trigger.cron.clone().filter(|_| definition.trigger.kind == "schedule")?;
    let zone = definition.trigger.timezone.clone().unwrap_or_else(|| "UTC".into());
    Calendar::new(&cron, Some(&zone)).ok().map(|calendar| (calendar, cron, zone))
}

/// When it fires next, if ever.
pub async fn next_run(app: &App, definition: &Definition) -> Result<Option<Timestamp>> {
    if definition.trigger.kind != "schedule" {
        return Ok(None);
    }
    Ok(records::get(&products(app), SCHEDULE, &definition.name).await?.and_then(|kept| kept.value.at))
}

/// Makes the records say what the definitions in force say.
pub async fn follow(app: &Silo) -> Result<()> {
    let now = app.engine.wall().await?;
    let definitions = definitions::all(app).await?;
    let products = products(app);
    let known = records::list(&products, SCHEDULE, Of::All).await?;
    for one in &definitions {
        let Some((calendar, cron, timezone)) = calendar(&one.definition) else { continue };
        let before = known.iter().find(|kept| *kept.key == *one.definition.name);
        if before.is_some_and(|kept| kept.value.cron == cron && kept.value.timezone == timezone) {
            continue;
        }
        let next = Next { cron, timezone, at: calendar.strictly_after(now) };
        let put = Put::new(&products, SCHEDULE, &one.definition.name, Expect::Anything).value(&next)?;
        records::commit(&products, vec![put]).await?;
    }
    for kept in known {
        let scheduled = |one: &InForce| *one.definition.name == *kept.key && calendar(&one.definition).is_some();
        if !definitions.iter().any(scheduled) {
            let delete = records::delete(&products, SCHEDULE, &kept.key, kept.unchanged());
            records::commit(&products, vec![delete]).await?;
        }
    }
    app.own.scheduler.notify_one();
    Ok(())
}

/// Runs until it is aborted.
pub async fn run(app: Silo) {
    loop {
        let next = tick(&app).await.map_err(|refused| refused.message);
        pause(next, &app.own.scheduler, "scheduled definitions").await;
    }
}

/// Fires what is due, and says how long it is to the next one.
pub async fn tick(app: &App) -> Result<Option<Duration>> {
    let mut soonest: Option<Timestamp> = None;
    for kept in records::list(&products(app), SCHEDULE, Of::All).await? {
        let Some(at) = kept.value.at else { continue };
        let now = app.engine.wall().await?;
        let next = if at <= now { fire(app, &kept, at, now).await? } else { Some(at) };
        soonest = [soonest, next].into_iter().flatten().min();
    }
    let now = app.engine.wall().await?;
    Ok(soonest.map(|at| between(now, at)))
}

async fn fire(app: &App, kept: &Kept<Next>, at: Timestamp, now: Timestamp) -> Result<Option<Timestamp>> {
    let Ok(one) = definitions::find(app, &kept.key).await else { return Ok(None) };
    let Some((calendar, ..)) = calendar(&one.definition) else { return Ok(None) };
    let next = Next { at: calendar.strictly_after(now), ..kept.value.clone() };
    let products = products(app);
    let mut commands = vec![Put::new(&products, SCHEDULE, &kept.key, kept.unchanged()).value(&next)?];
    if now - at <= LATE_MAX {
        match noted(app, &products, &one).await? {
            Some(jobs) => commands.extend(jobs),
            None => return Ok(Some(now + LOOK_AGAIN)),
        }
    }
    let mut pieces = commands.chunks(JOBS_AT_ONCE);
    // The first piece moves the time on; where that was done already, somebody else makes the jobs.
    let first = pieces.next().map(<[Command]>::to_vec).unwrap_or_default();
    if records::commit(&products, first).await?.is_some() {
        for piece in pieces {
            records::commit(&products, piece.to_vec()).await?;
        }
    }
    Ok(next.at)
}

/// The jobs that are due; none, where working them out ended the server twice, until the definition is changed. None: another
/// server is working them out.
async fn noted(app: &App, products: &Products, one: &InForce) -> Result<Option<Vec<Command>>> {
    let name = format!("{}/schedule/{}@{}", super::namespace(), one.definition.name, one.number);
    let begun = match begun::begin(app, name).await {
        Err(problem) if begun::is_elsewhere(&problem) => return Ok(None),
        begun => begun?,
    };
    let Some(begun) = begun else {
        tracing::warn!(definition = one.definition.name, why = &*begun::why(), "a schedule makes no jobs");
        return Ok(Some(Vec::new()));
    };
    let due = due_jobs(app, products, one).await;
    match &due {
        Ok(_) => begun.ended().await,
        Err(_) => begun.given_up().await,
    }
    due.map(Some)
}

/// A job for each target whose last one is over.
async fn due_jobs(app: &App, products: &Products, one: &InForce) -> Result<Vec<Command>> {
    let by: Arc<str> = "schedule".into();
    let mut commands = Vec::new();
    for target in targets(products, one).await? {
        if jobs::is_open(app, trigger::target_facet(&one.definition.name, &target)).await? {
            continue;
        }
        let job = trigger::make(products, one, Trigger::Schedule, &target, &by, &TriggerOptions::default()).await?;
        commands.push(trigger::submit(job));
    }
    Ok(commands)
}

async fn targets(products: &Products, one: &InForce) -> Result<Vec<Target>> {
    let scope = &one.definition.scope;
    let of_item = |item: Item| Target { item: Some(item), revision: None, project: None };
    let of_project = |code: String| Target { item: None, revision: None, project: Some(code) };
    match (scope.kind, &scope.part_number, &scope.project) {
        (ScopeKind::Project, _, Some(code)) => match projects::find(products, code).await {
            Ok(found) => Ok(vec![of_project(found.value.code)]),
            Err(_) => Ok(gone(one, code)),
        },
        (ScopeKind::Project, _, None) => {
            let all = records::list(products, records::PROJECT, Of::All).await?;
            Ok(all.into_iter().map(|kept| of_project(kept.value.code)).collect())
        }
        (_, Some(part), _) => match items::find(products, part).await {
            Ok(found) => Ok(vec![of_item(found.value)]),
            Err(_) => Ok(gone(one, part)),
        },
        (_, None, _) => {
            let all = records::list(products, records::ITEM, Of::All).await?;
            let wanted = all.into_iter().map(|kept| kept.value).filter(|item| one.definition.wants(item));
            Ok(wanted.map(of_item).collect())
        }
    }
}

fn gone(one: &InForce, what: &str) -> Vec<Target> {
    tracing::warn!(definition = one.definition.name, target = what, "a schedule's target does not exist");
    Vec::new()
}
