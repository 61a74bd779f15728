//! Runs that wait for a lock. Each is written down under the lock it waits for, so that whoever gives the lock back, on
//! whatever server, can tell the planners of its turn again. A note that is lost costs a pause, not the run.

use crate::{
    dialects::neops::{Neops, namespace},
    problem::Problem,
    records::Records,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use windlass_api::Uuid;
use windlass_core::{
    JobId, Millis, RunId,
    commands::{
        records::{Expect, PutRecord},
        remind::Remind,
    },
};
use windlass_engine::{records::Kept, store::RecordQuery};

const WAITING: Records<Waiting> = Records::new("neops_lock_wait", namespace);
/// Runs that are told when locks go.
const TOLD_MAX: usize = 200;
/// Locks that are asked for one by one.
const SEEKS_MAX: usize = 100;
/// Longer than any pause.
const KEPT: Millis = Millis::from_secs(600);

#[derive(Clone, Serialize, Deserialize)]
struct Waiting {
    lock: String,
    run: Uuid,
    job: JobId,
}

/// Notes that a run waits for this lock.
pub async fn note(neops: &Neops, lock: &str, run: Uuid, job: JobId) -> Result<(), Problem> {
    let waiting = Waiting { lock: lock.into(), run, job };
    let expires_at = Some(neops.engine.now().await? + KEPT);
    let put = WAITING.put(&format!("{lock}/{run}"), &waiting, Expect::Anything);
    neops.engine.run(PutRecord { expires_at, ..put }).await?;
    Ok(())
}

/// These locks are free: whoever waits for one of them is looked at again.
pub async fn call(neops: &Neops, locks: Vec<(String, u64)>) {
    if let Err(problem) = try_call(neops, &locks).await {
        tracing::debug!(problem = %problem.0, "runs that wait for a lock go on after their pause");
    }
}

async fn try_call(neops: &Neops, locks: &[(String, u64)]) -> Result<(), Problem> {
    let mut left = TOLD_MAX;
    // A run waits for the first of its locks that is taken, in the order of their names.
    for kept in found(neops, locks).await? {
        let Waiting { run, job, .. } = kept.value;
        neops.engine.run(Remind { namespace: namespace(), run: RunId(run), job: Some(job) }).await?;
        // Gone already is as good.
        drop(neops.engine.run(WAITING.delete(&kept.key, Expect::Anything)).await);
        left -= 1;
        if left == 0 {
            break;
        }
    }
    Ok(())
}

/// Those that wait for one of these, by lock where there are few, else by looking at all that wait.
async fn found(neops: &Neops, locks: &[(String, u64)]) -> Result<Vec<Kept<Waiting>>, Problem> {
    let freed: HashSet<String> = locks.iter().map(|(entity, id)| format!("{entity}/{id}")).collect();
    let mut found = Vec::new();
    if freed.len() > SEEKS_MAX {
        WAITING
            .each(neops, None, |kept| {
                if freed.contains(&kept.value.lock) {
                    found.push(kept);
                }
                found.len() < TOLD_MAX
            })
            .await?;
        return Ok(found);
    }
    for lock in &freed {
        let after = Some(format!("{lock}/").into());
        let query = RecordQuery { after, limit: TOLD_MAX, ..WAITING.query() };
        let page = neops.engine.records(&query).await?;
        for record in &page {
            let kept = WAITING.read(record)?;
            if kept.value.lock != *lock {
                break;
            }
            found.push(kept);
        }
    }
    Ok(found)
}
