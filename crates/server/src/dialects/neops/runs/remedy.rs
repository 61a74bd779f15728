//! Remedies for runs that failed unsafely, asked for by people.

use super::{
    ledger::{Entry, Ledger, Stand, conclude},
    row::{self, Row, Status},
    waiting,
};
use crate::dialects::neops::{
    HttpError, Neops, Result,
    body::{Path, Sent, id, ok},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use windlass_api::Uuid;
use windlass_core::{
    Command, Refusal,
    commands::{all::All, audited::Audited},
};
use windlass_engine::{Error, records::Kept};

const TRIES: usize = 5;
const NOTE_MAX: usize = 4_000;

#[derive(Deserialize)]
pub struct Chosen {
    #[serde(default)]
    jobs: Vec<Uuid>,
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolve {
    #[serde(flatten)]
    chosen: Chosen,
    note: String,
    #[serde(default)]
    continue_rollback: bool,
}

async fn find(neops: &Neops, run: &str) -> Result<(Kept<Row>, Ledger)> {
    let run = id("uuid", run)?;
    let kept = row::find(neops, run).await?.ok_or_else(|| HttpError::not_found(format!("there is no run {run}")))?;
    match kept.value.status {
        Status::FailedUnsafeAck | Status::FailedSafeAck | Status::Rollback => {}
        other => return Err(HttpError::conflict(format!("the run is {}; there is nothing to remedy", other.as_str()))),
    }
    Ok((kept, Ledger::read(neops, run).await?))
}

pub async fn show(State(neops): State<Neops>, Path(run): Path<String>) -> Result<Response> {
    let (kept, ledger) = find(&neops, &run).await?;
    Ok(ok(ledger.show(&kept.value)).into_response())
}

pub async fn roll_back(
    State(neops): State<Neops>,
    by: super::By,
    Path(run): Path<String>,
    Sent(body): Sent<Chosen>,
) -> Result<Response> {
    for _ in 0..TRIES {
        let (kept, mut ledger) = find(&neops, &run).await?;
        let chosen = body.to_roll_back(&ledger)?;
        let submit = ledger.roll_back(&neops, &chosen).await?;
        let mut commands = ledger.put(None);
        commands.extend(submit.map(Command::from));
        if write(&neops, (&by, "run_rolled_back", &run), commands).await? {
            return Ok(
                ok(json!({"createdRollbackJobs": chosen.len(), "ledger": ledger.show(&kept.value)})).into_response()
            );
        }
    }
    Err(busy())
}

pub async fn resolve(
    State(neops): State<Neops>,
    by: super::By,
    Path(run): Path<String>,
    Sent(body): Sent<Resolve>,
) -> Result<Response> {
    if body.note.trim().is_empty() || body.note.len() > NOTE_MAX {
        return Err(HttpError::bad(format!("note must say why, in at most {NOTE_MAX} bytes")));
    }
    for _ in 0..TRIES {
        let (kept, mut ledger) = find(&neops, &run).await?;
        let (chosen, now) = (body.chosen.to_resolve(&ledger)?, neops.engine.now().await?);
        let settled: HashSet<Uuid> = chosen.iter().copied().collect();
        ledger.each(|entry| {
            if settled.contains(&entry.job) {
                entry.stand = Stand::Resolved;
                entry.resolved = Some((by.0.clone(), now, body.note.clone()));
            }
        });
        let rest = match body.continue_rollback {
            true => Chosen { jobs: Vec::new(), all: true }.to_roll_back(&ledger)?,
            false => Vec::new(),
        };
        let submit = ledger.roll_back(&neops, &rest).await?;
        let held = kept.value.held.clone();
        let (mut row, mut commands) = conclude(&neops, &ledger, kept.value.clone()).await?;
        commands.append(&mut row.put(&neops, kept.unchanged(), now));
        commands.extend(submit.map(Command::from));
        if write(&neops, (&by, "run_resolved", &run), commands).await? {
            if row.held.is_empty() {
                waiting::call(&neops, held).await;
            }
            let body =
                json!({"resolvedJobs": chosen.len(), "createdRollbackJobs": rest.len(), "ledger": ledger.show(&row)});
            return Ok(ok(body).into_response());
        }
    }
    Err(busy())
}

/// False: somebody was faster.
async fn write(
    neops: &Neops,
    (by, act, run): (&super::By, &'static str, &str),
    commands: Vec<Command>,
) -> Result<bool> {
    if commands.is_empty() {
        return Ok(true);
    }
    match neops.engine.run(Audited::told(&by.name(), act, run, All { commands })).await {
        Ok(_) => Ok(true),
        Err(Error::Refused(Refusal::VersionMismatch { .. } | Refusal::NotFound { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn busy() -> HttpError {
    HttpError::conflict("others are at work on this run; try again")
}

impl Chosen {
    fn known(&self, ledger: &Ledger) -> Result<()> {
        if self.all != self.jobs.is_empty() {
            return Err(HttpError::bad("name jobs, or say all: true"));
        }
        match self.jobs.iter().find(|job| ledger.entries().all(|entry| entry.job != **job)) {
            Some(job) => Err(HttpError::bad(format!("jobs: the ledger has no job {job}"))),
            None => Ok(()),
        }
    }

    fn to_roll_back(&self, ledger: &Ledger) -> Result<Vec<Uuid>> {
        self.known(ledger)?;
        let named: HashSet<&Uuid> = self.jobs.iter().collect();
        let open = |entry: &Entry| matches!(entry.stand, Stand::Open | Stand::RollbackFailed) && entry.reversible;
        let wanted = |entry: &Entry| if self.all { open(entry) } else { named.contains(&entry.job) };
        // Whatever was done after one of them and stays is in its way.
        let stays = ledger.entries().filter(|entry| !entry.stand.is_settled() && !wanted(entry));
        let last = stays.max_by_key(|entry| entry.wave);
        let free = |entry: &Entry| last.is_none_or(|last| last.wave <= entry.wave);
        let chosen: Vec<&Entry> = ledger.entries().filter(|entry| wanted(entry)).collect();
        if self.all {
            return Ok(chosen.into_iter().filter(|entry| free(entry)).map(|entry| entry.job).collect());
        }
        for entry in &chosen {
            let job = entry.job;
            let why = match last.filter(|_| !free(entry)) {
                Some(by) => format!("job {job} waits for job {}, which was done after it", by.job),
                None if !entry.reversible => format!("job {job} cannot be rolled back; resolve it"),
                None if !open(entry) => format!("job {job} is not open"),
                None => continue,
            };
            return Err(HttpError::conflict(why));
        }
        Ok(chosen.into_iter().map(|entry| entry.job).collect())
    }

    fn to_resolve(&self, ledger: &Ledger) -> Result<Vec<Uuid>> {
        self.known(ledger)?;
        let jobs: HashSet<&Uuid> = self.jobs.iter().collect();
        let named = ledger.entries().filter(|entry| self.all || jobs.contains(&entry.job));
        let mut chosen = Vec::new();
        for entry in named {
            match entry.stand {
                Stand::RollbackInProgress if !self.all => {
                    return Err(HttpError::conflict(format!("job {} is being rolled back", entry.job)));
                }
                Stand::Open | Stand::RollbackFailed => chosen.push(entry.job),
                Stand::RollbackInProgress | Stand::RolledBack | Stand::Resolved => {}
            }
        }
        Ok(chosen)
    }
}
