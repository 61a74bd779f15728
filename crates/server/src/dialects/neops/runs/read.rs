//! What turns look at: jobs as they ended, and what they gave.

use super::reported;
use crate::{
    app::App,
    dialects::neops::{
        blocks::Block,
        namespace,
        results::{self, StoredResult},
    },
    problem::Problem,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use windlass_core::{Job, JobId, JobKey, State, job::Reason};
use windlass_plan::neops::updates::Update;

/// Bytes of results that one turn looks at.
const BYTES_MAX: usize = 32 << 20;
const AT_ONCE: usize = 16;

/// Work that was made for a step, and for which entity.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Member(pub JobId, pub Option<u64>);

/// What is kept with a step whose work was made: the work, or the steps of the whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Made {
    pub members: Vec<Member>,
}

pub async fn made(app: &App, step: JobId) -> Result<Made, Problem> {
    let body = app.engine.store().body(&JobKey::new(&namespace(), step)).await?;
    let read = body.and_then(|body| serde_json::from_slice(body.payload.as_bytes()).ok());
    Ok(read.unwrap_or_default())
}

/// Each job, or the last of those it was tried as. The second says whether a worker had one of them.
pub async fn last(app: &App, jobs: &[JobId]) -> Result<HashMap<JobId, (Job, bool)>, Problem> {
    let mut found: HashMap<JobId, (Job, bool)> = HashMap::new();
    let mut open: Vec<(JobId, JobId)> = jobs.iter().map(|id| (*id, *id)).collect();
    while !open.is_empty() {
        let keys: Vec<JobKey> = open.iter().map(|(_, id)| JobKey::new(&namespace(), *id)).collect();
        let rows = app.engine.store().jobs_named(&keys).await?;
        let rows: HashMap<JobId, Job> = rows.into_iter().map(|job| (job.key.id, job)).collect();
        let mut next = Vec::new();
        for (first, id) in open {
            let Some(job) = rows.get(&id) else { continue };
            next.extend(job.live.retry_job.map(|copy| (first, copy)));
            let claimed = found.get(&first).is_some_and(|(_, claimed)| *claimed) || job.live.attempt > 0;
            found.insert(first, (job.clone(), claimed));
        }
        open = next;
    }
    Ok(found)
}

/// By job. The error is the run's own.
type Results = Result<HashMap<JobId, Value>, String>;

fn with_results(jobs: &[&Job]) -> Vec<JobKey> {
    jobs.iter().filter(|job| job.live.has_result).map(|job| job.key.clone()).collect()
}

/// What these jobs gave.
pub async fn results(app: &App, jobs: &[&Job]) -> Result<Results, Problem> {
    let (mut all, mut bytes) = (HashMap::new(), 0);
    for some in with_results(jobs).chunks(AT_ONCE) {
        // One that is too large is not even taken apart.
        let take = |text: &[u8], _: bool| {
            let value = (text.len() <= BYTES_MAX).then(|| serde_json::from_slice(text)).and_then(Result::ok);
            Some((text.len(), value.unwrap_or(Value::Null)))
        };
        for (id, (size, value)) in results::each(app, some, take).await? {
            bytes += size;
            all.insert(id, value);
        }
        if bytes > BYTES_MAX {
            return Ok(Err(format!("the results it looks at have more than {BYTES_MAX} bytes")));
        }
    }
    Ok(Ok(all))
}

/// The clauses that acquire jobs gave.
pub async fn acquires(app: &App, jobs: &[&Job]) -> Result<HashMap<JobId, Value>, Problem> {
    let take = |text: &[u8], _: bool| {
        let kept: StoredResult = serde_json::from_slice(text).ok()?;
        Some(kept.acquires.and_then(|acquires| serde_json::from_str(acquires.get()).ok()).unwrap_or_default())
    };
    Ok(results::each(app, &with_results(jobs), take).await?.into_iter().collect())
}

/// What a job changed, or the reason for which its result is none.
type Changed = Result<Vec<Value>, String>;

/// What these jobs changed, in their order, if what they gave meets the block's schema. The error is the run's own.
pub async fn changes(app: &App, jobs: &[&Job], block: Option<Arc<Block>>) -> Result<Changed, Problem> {
    let take = move |text: &[u8], here: bool| changed(block.as_deref(), text, here);
    let mut found: HashMap<JobId, Changed> = results::each(app, &with_results(jobs), take).await?.into_iter().collect();
    let mut all = Vec::new();
    for job in jobs {
        match found.remove(&job.key.id) {
            None => {}
            Some(Ok(changes)) => match reported::whole(app, job, changes).await? {
                Ok(changes) => all.extend(changes),
                Err(why) => return Ok(Err(why)),
            },
            Some(Err(why)) => return Ok(Err(why)),
        }
    }
    Ok(Ok(all))
}

/// Whether an acquire job gave no clauses.
pub fn acquires_none(text: &[u8]) -> bool {
    let kept: Result<StoredResult, _> = serde_json::from_slice(text);
    kept.is_ok_and(|kept| kept.acquires.is_none_or(|clauses| matches!(clauses.get(), "null" | "[]")))
}

/// None: it would take longer than a moment.
pub fn changed(block: Option<&Block>, text: &[u8], here: bool) -> Option<Changed> {
    let kept: StoredResult = match serde_json::from_slice(text) {
        Ok(kept) => kept,
        Err(error) => return Some(Err(error.to_string())),
    };
    if let (Some(block), Some(data)) = (block, &kept.data) {
        let checked = if here { block.check_result_here(data.get())? } else { block.check_result(data.get()) };
        if let Err(why) = checked {
            return Some(Err(format!("data: {why}")));
        }
    }
    let Some(updates) = kept.db_updates else { return Some(Ok(Vec::new())) };
    let mut updates: Value = serde_json::from_str(updates.get()).unwrap_or_default();
    if let Err(faults) = Update::read_all(&updates, "dbUpdates") {
        let first = faults.first().map(|fault| format!("{}: {}", fault.place, fault.text));
        return Some(Err(first.unwrap_or_default()));
    }
    match updates.get_mut("updates").map(Value::take) {
        Some(Value::Array(updates)) => Some(Ok(updates)),
        _ => Some(Ok(Vec::new())),
    }
}

/// A result as expressions see it.
pub fn shown(job: &Job, result: Option<&Value>) -> Value {
    let field = |name: &str| result.and_then(|result| result.get(name)).cloned().unwrap_or(Value::Null);
    json!({"success": job.state == State::Completed, "message": field("message"), "data": field("data")})
}

/// The code and the text of the reason for which a job did not succeed.
pub fn failure(job: &Job, label: &str) -> (&'static str, String) {
    let outcome = job.live.outcome.as_ref();
    let code = match outcome.map(|outcome| outcome.reason) {
        Some(Reason::WorkerLost | Reason::WorkerRemoved | Reason::LeaseExpired | Reason::TooManyLosses) => {
            "worker_lost"
        }
        Some(Reason::DeadlinePassed | Reason::TotalDeadlinePassed | Reason::PendingDeadlinePassed) => "job_timed_out",
        Some(Reason::Cancelled) => "aborted",
        _ => "step_failed",
    };
    let why = outcome.map(|outcome| outcome.message.to_string()).unwrap_or_default();
    (code, format!("step {label}: {why}"))
}

/// An error that passes is nobody's fault; others are the run's.
pub fn passes(problem: &Problem) -> bool {
    matches!(problem.0.status, 503 | 507)
}
