//! Runs that were ended from outside, past their own end: by whoever cancels runs natively. What they hold would be held for
//! ever, so somebody looks, now and then while runs are open, and ends them as a failure does.

use super::{
    end,
    row::{self, ROW, Row, Status},
    turn::{self, Turn},
    waiting,
};
use crate::{
    dialects::neops::{Neops, namespace},
    problem::Problem,
};
use std::time::Duration;
use tokio::time::sleep;
use windlass_core::{Refusal, RunId, commands::all::All, run::Run};
use windlass_engine::{Error, records::Kept};

/// Open runs that are looked at in a round; the next round goes on behind them.
const ROUND: usize = 200;
const EVERY: Duration = Duration::from_secs(30);

/// Runs until it is aborted. While no run is open nobody looks, unless other servers may have left some.
pub async fn run(neops: Neops) {
    let alone = neops.engine.settings().poll_every.is_none();
    loop {
        let open = round(&neops).await.unwrap_or_else(|problem| {
            tracing::warn!(problem = %problem.0, "runs that were cut off could not be looked for");
            true
        });
        if alone && !open {
            neops.own.begun.notified().await;
        }
        sleep(EVERY).await;
    }
}

/// Whether any run is open.
pub async fn round(neops: &Neops) -> Result<bool, Problem> {
    let after = neops.own.looked_at.lock().take();
    let page = row::open_after(neops, after, ROUND).await?;
    *neops.own.looked_at.lock() = page.last().filter(|_| page.len() == ROUND).map(|last| last.key.clone());
    let open = !page.is_empty();
    for kept in page {
        let found = neops.engine.read_record::<Run>(&namespace(), &kept.value.uuid.to_string()).await?;
        if found.is_none_or(|run| run.finished_at.is_some()) {
            end_cut_off(neops, kept).await?;
        }
    }
    Ok(open)
}

async fn end_cut_off(neops: &Neops, light: Kept<Row>) -> Result<(), Problem> {
    let run = light.value.uuid;
    // As it is now: its own end may just have come.
    let Some(kept) = ROW.find(neops, &light.key).await?.filter(|kept| !kept.value.status.is_final()) else {
        return Ok(());
    };
    let (held, now) = (kept.value.held.clone(), neops.engine.now().await?);
    let mut row = kept.value.clone();
    row.fail("aborted", "the run was cancelled");
    let mut also = Vec::new();
    match turn::load(neops, RunId(run)).await {
        Ok(plan) => {
            let turn = Turn { neops, run, plan, row: row.clone(), job: None };
            (row, also) = end::cut_off(&turn, row).await?;
        }
        Err(_) => {
            row.unsafe_cause = Some("engine_fault".into());
            row.end(Status::FailedUnsafeAck, now);
        }
    }
    let mut commands = row.put(neops, kept.unchanged(), now);
    commands.extend(also);
    match neops.engine.run(All { commands }).await {
        Ok(_) if row.held.is_empty() => waiting::call(neops, held).await,
        Ok(_) | Err(Error::Refused(Refusal::VersionMismatch { .. } | Refusal::NotFound { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
