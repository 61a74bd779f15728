//! What a failed run left done, job by job, and what became of it since: rolled back, or settled by hand. The finished run's jobs
//! never change; what is rolled back later is so by jobs of its own, under a run of its own that nobody sees.

use super::{
    bundle::Bundle,
    end,
    row::{Row, Status},
    submit::staged,
    turn::{Act, Turn, fail},
};
use crate::{
    dialects::neops::{HttpError, Neops, Result, job, job::JobBrief, locks, namespace},
    flows,
    problem::Problem,
    records::Records,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};
use windlass_api::Uuid;
use windlass_core::{
    Command, Job, JobId, Payload, RunId, State, Timestamp,
    commands::{
        advance::Move,
        records::{Expect, PutRecord},
        submit_run::{RunNode, RunPlan, SubmitRun},
    },
    policy::ParentPolicy,
};
use windlass_engine::{ids, records::Kept};

const LEDGER: Records<Vec<Entry>> = Records::new("neops_ledger", namespace);
/// Entries of one record.
const PAGE: usize = 500;
/// Jobs that are named as being in the way of another.
const BLOCKERS_MAX: usize = 20;
/// Jobs that are rolled back at a time.
pub const AT_ONCE_MAX: usize = 900;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stand {
    Open,
    RollbackInProgress,
    RolledBack,
    RollbackFailed,
    Resolved,
}

impl Stand {
    pub fn is_settled(self) -> bool {
        matches!(self, Self::RolledBack | Self::Resolved)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub job: Uuid,
    pub label: String,
    pub entity: Option<i64>,
    pub on: String,
    pub block: String,
    pub reversible: bool,
    /// The place of its step: later ones are undone first.
    pub wave: usize,
    pub stand: Stand,
    pub rollbacks: Vec<Uuid>,
    /// By whom, when, and why.
    pub resolved: Option<(Option<String>, Timestamp, String)>,
}

/// Rollback jobs and what became of them, by the step and the entity that they undo.
pub type Undone = HashMap<(String, Option<i64>), (Uuid, Stand)>;

pub fn entries(turn: &Turn<'_>, ran: &[end::Done], undone: &Undone) -> Vec<Entry> {
    let done = ran.iter().filter(|(ran, ..)| ran.claimed && !ran.pure);
    let entry = |(ran, _, told): &end::Done| {
        let undone = undone.get(&(told.label.clone(), told.entity));
        Entry {
            job: ran.job.0,
            label: told.label.clone(),
            entity: told.entity,
            on: told.on.clone(),
            block: turn.plan.bundle.blocks[ran.step].id.to_string(),
            reversible: ran.reversible,
            wave: ran.step,
            stand: undone.map_or(Stand::Open, |(_, stand)| *stand),
            rollbacks: undone.map(|(job, _)| *job).into_iter().collect(),
            resolved: None,
        }
    };
    done.map(entry).collect()
}

/// What became of the rollback jobs of the run itself, by step and entity.
pub async fn undone(turn: &Turn<'_>) -> Result<Undone, Problem> {
    let all = flows::jobs(turn.neops, &namespace(), RunId(turn.run)).await?;
    let one = |job: &Job| {
        let told = JobBrief::of(job).filter(|told| told.kind == job::Type::Rollback)?;
        Some(((told.label, told.entity), (job.key.id.0, stand(job.state))))
    };
    Ok(all.iter().filter_map(one).collect())
}

fn stand(state: State) -> Stand {
    match state {
        State::Completed => Stand::RolledBack,
        State::Failed => Stand::RollbackFailed,
        // Nobody began it.
        _ => Stand::Open,
    }
}

fn name(run: Uuid, at: usize) -> String {
    format!("{run}/{at:04}")
}

/// Writes a new ledger.
pub fn keep(run: Uuid, entries: &[Entry]) -> Vec<Command> {
    let pages = entries.chunks(PAGE).enumerate();
    let put = |(at, page): (usize, &[Entry])| {
        let parent = Some(run.to_string().into());
        PutRecord { parent, ..LEDGER.put(&name(run, at), &page.to_vec(), Expect::Anything) }.into()
    };
    pages.map(put).collect()
}

/// A ledger as it was read.
pub struct Ledger {
    run: Uuid,
    pages: Vec<Kept<Vec<Entry>>>,
}

impl Ledger {
    pub async fn read(neops: &Neops, run: Uuid) -> Result<Self, Problem> {
        let mut pages = Vec::new();
        LEDGER
            .each(neops, Some(&run.to_string()), |kept| {
                pages.push(kept);
                true
            })
            .await?;
        Ok(Self { run, pages })
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.pages.iter().flat_map(|page| &page.value)
    }

    pub fn each(&mut self, see: impl FnMut(&mut Entry)) {
        self.pages.iter_mut().flat_map(|page| &mut page.value).for_each(see);
    }

    pub fn is_settled(&self) -> bool {
        self.entries().all(|entry| entry.stand.is_settled())
    }

    /// Refused if somebody changed it since it was read. Kept for as long as the run when everything is settled.
    pub fn put(&self, expires_at: Option<Timestamp>) -> Vec<Command> {
        let put = |page: &Kept<Vec<Entry>>| {
            let parent = Some(self.run.to_string().into());
            PutRecord { parent, expires_at, ..LEDGER.put(&page.key, &page.value, page.unchanged()) }.into()
        };
        self.pages.iter().map(put).collect()
    }

    /// What has to be settled before others can be rolled back, by the place of its step.
    fn unsettled(&self) -> BTreeMap<usize, Vec<Uuid>> {
        let mut waves: BTreeMap<usize, Vec<Uuid>> = BTreeMap::new();
        for entry in self.entries().filter(|entry| !entry.stand.is_settled()) {
            waves.entry(entry.wave).or_default().push(entry.job);
        }
        waves
    }

    pub fn show(&self, row: &Row) -> Value {
        let unsettled = self.unsettled();
        let entry = |entry: &Entry| {
            // What was done after it. Of many some are named: each of them has to be settled all the same.
            let after = unsettled.range(entry.wave + 1..).flat_map(|(_, jobs)| jobs);
            let blocked: Vec<&Uuid> = after.take(BLOCKERS_MAX).collect();
            let open = matches!(entry.stand, Stand::Open | Stand::RollbackFailed);
            let (by, at, note) = match &entry.resolved {
                Some((by, at, note)) => (by.clone(), Some(super::super::body::time(*at)), Some(note.clone())),
                None => (None, None, None),
            };
            json!({
                "jobUuid": entry.job, "stepLabel": entry.label, "entityId": entry.entity, "runOn": entry.on,
                "functionBlock": entry.block, "reversible": entry.reversible, "executionWave": entry.wave,
                "state": entry.stand, "rollbackJobUuids": entry.rollbacks,
                "rollbackableNow": open && entry.reversible && blocked.is_empty(), "rollbackBlockedBy": blocked,
                "resolvedBy": by, "resolvedByUsername": by, "resolvedAt": at, "resolutionNote": note,
            })
        };
        json!({
            "workflowExecutionId": self.run, "status": row.status.as_str(),
            "reason": row.reason.as_ref().map(|(_, why)| why), "cmsResourcesLocked": !row.held.is_empty(),
            "complete": self.is_settled(), "entries": self.entries().map(entry).collect::<Vec<_>>(),
        })
    }

    /// Jobs that roll these back, later steps first, in a run of their own.
    pub async fn roll_back(&mut self, neops: &Neops, chosen: &[Uuid]) -> Result<Option<SubmitRun>> {
        let chosen: HashSet<&Uuid> = chosen.iter().collect();
        let mut waves: BTreeMap<usize, Vec<Uuid>> = BTreeMap::new();
        for entry in self.entries().filter(|entry| chosen.contains(&entry.job)) {
            waves.entry(entry.wave).or_default().push(entry.job);
        }
        let count: usize = waves.values().map(Vec::len).sum();
        if count == 0 {
            return Ok(None);
        }
        if count > AT_ONCE_MAX {
            return Err(HttpError::bad(format!("{count} jobs at a time; at most {AT_ONCE_MAX}")));
        }
        let mut nodes: Vec<RunNode> = Vec::new();
        let mut before: Vec<Arc<str>> = Vec::new();
        let mut made: HashMap<Uuid, Uuid> = HashMap::new();
        for jobs in waves.into_values().rev() {
            let mut names = Vec::new();
            for done in jobs {
                let gone = || HttpError::conflict(format!("job {done} is gone and cannot be rolled back; resolve it"));
                let node = end::undo(neops, self.run, JobId(done), format!("undo.{}", nodes.len())).await?;
                let mut node = node.ok_or_else(gone)?;
                node.needs = before.clone();
                made.insert(done, node.job.id.0);
                names.push(node.name.clone());
                nodes.push(node);
            }
            before = names;
        }
        let all = nodes.iter().map(|node| node.name.clone()).collect();
        nodes.push(staged("end".into(), all, ParentPolicy::RunAnyway));
        self.each(|entry| {
            if let Some(job) = made.get(&entry.job) {
                entry.stand = Stand::RollbackInProgress;
                entry.rollbacks.push(*job);
            }
        });
        let id = ids::run_id();
        let plan = RunPlan { parts: Bundle::remedy(id.0, self.run).parts(), ..RunPlan::default() };
        Ok(Some(SubmitRun { plan, ..SubmitRun::new(namespace(), id, nodes) }))
    }
}

/// The jobs that rolled back what was left have ended.
pub async fn remedied(turn: &Turn<'_>) -> Result<Act, Problem> {
    let Some(job) = turn.job else { return Ok(Act::step(fail("its turn is over"))) };
    let jobs = super::read::last(turn.neops, &job.spec.parents).await?;
    let ended: HashMap<Uuid, Stand> = jobs.iter().map(|(id, (job, _))| (id.0, stand(job.state))).collect();
    let mut ledger = Ledger::read(turn.neops, turn.run).await?;
    ledger.each(|entry| {
        if let Some(stand) = entry.rollbacks.last().and_then(|job| ended.get(job)) {
            entry.stand = *stand;
        }
    });
    let (row, also) = conclude(turn.neops, &ledger, turn.row.clone()).await?;
    let over = Move::Complete { result: Payload::default() };
    let freed = row.status == Status::FailedSafeAck;
    let act = Act::with(row, also, over);
    Ok(if freed { act.frees() } else { act })
}

/// When nothing is left, the run has failed safely after all, and its locks go.
pub async fn conclude(neops: &Neops, ledger: &Ledger, mut row: Row) -> Result<(Row, Vec<Command>), Problem> {
    let now = neops.engine.now().await?;
    let over = ledger.is_settled() && row.status == Status::FailedUnsafeAck;
    let mut also = ledger.put(over.then(|| now + neops.engine.settings().limits.retention));
    if over {
        also.extend(locks::release(&row.locks()));
        let finished = row.finished_at;
        row.end(Status::FailedSafeAck, now);
        row.finished_at = finished;
    }
    Ok((row, also))
}
