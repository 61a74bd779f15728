//! A job as this protocol's clients see it: what it does not store is derived.

use crate::{
    app::App,
    dialects::neops::{
        Result,
        body::time,
        job::{JobBrief, Type},
        workers,
    },
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{collections::HashMap, sync::Arc};
use windlass_core::{Job, State, Timestamp, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pending,
    Polled,
    Pushed,
}

impl Status {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Polled, Self::Pushed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Polled => "polled",
            Self::Pushed => "pushed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub fn of(state: State) -> Self {
        match state {
            State::Blocked | State::Scheduled | State::Pending => Self::Pending,
            State::Claimed | State::Running => Self::Polled,
            State::Completed | State::Failed | State::Cancelled | State::Skipped => Self::Pushed,
        }
    }

    pub fn states(self) -> impl Iterator<Item = State> {
        State::ALL.into_iter().filter(move |state| Self::of(*state) == self)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub function_block_id: Arc<str>,
    pub job_id: String,
    pub step_label: String,
    pub status: Status,
    pub r#type: Type,
    pub result_status: Option<String>,
    pub worker_id: Option<String>,
    pub worker_name: Option<String>,
    pub worker_deleted: bool,
    pub workflow_execution_id: String,
    pub entity_id: Option<i64>,
    pub created_at: String,
    pub updated_at: String,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub retry_count: u32,
    pub canceled: bool,
    pub result_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_data_omitted: Option<bool>,
    /// For filters and orders.
    #[serde(skip)]
    pub created: Timestamp,
    #[serde(skip)]
    pub updated: Timestamp,
}

impl Row {
    /// One word for all that became of it.
    pub fn state(&self) -> &str {
        match (&self.result_status, self.canceled) {
            (_, true) => "canceled",
            (Some(status), false) => status,
            (None, false) => self.status.as_str(),
        }
    }
}

/// How often it was tried before. Each of those tries is a job of its own.
fn retries(job: &Job) -> u32 {
    let own = job.state == State::Failed && job.live.attempt > 0;
    job.spec.retry_of.map_or(0, |_| job.live.spent.saturating_sub(u32::from(own)))
}

fn message(job: &Job) -> Option<String> {
    let failed = job.live.outcome.as_ref().map(|outcome| outcome.message.to_string());
    let done = || job.live.progress.as_ref().map(|progress| progress.message.to_string());
    let said = if job.state == State::Completed { done() } else { failed };
    said.filter(|said| job.state.is_final() && !said.is_empty())
        .map(|said| said.chars().take(super::result::MESSAGE_MAX).collect())
}

fn updated(job: &Job) -> Timestamp {
    let live = &job.live;
    [Some(job.spec.created_at), live.claimed_at, live.started_at, live.finished_at]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or_default()
}

/// What is looked up once for all rows of an answer.
pub struct Shows<'a> {
    app: &'a App,
    /// Name, and whether it was deleted.
    workers: HashMap<WorkerId, (Option<String>, bool)>,
    digested: HashMap<windlass_api::Uuid, bool>,
}

impl<'a> Shows<'a> {
    pub fn new(app: &'a App) -> Self {
        Self { app, workers: HashMap::new(), digested: HashMap::new() }
    }

    async fn worker(&mut self, id: &WorkerId) -> Result<(Option<String>, bool)> {
        if let Some(known) = self.workers.get(id) {
            return Ok(known.clone());
        }
        let known = workers::find(self.app, id.as_str(), true).await?;
        let told = known.map_or((None, true), |known| (known.name(), known.deleted_at.is_some()));
        self.workers.insert(id.clone(), told.clone());
        Ok(told)
    }

    async fn digested(&mut self, run: windlass_api::Uuid) -> Result<bool> {
        if let Some(known) = self.digested.get(&run) {
            return Ok(*known);
        }
        let digested = crate::dialects::neops::digested(self.app, run).await?;
        self.digested.insert(run, digested);
        Ok(digested)
    }

    /// None: it is none of the blackboard's.
    pub async fn row(&mut self, job: &Job) -> Result<Option<Row>> {
        let Some(told) = JobBrief::of(job) else { return Ok(None) };
        let worker = job.live.lease.as_ref().map(|lease| lease.worker.clone());
        let (worker_name, worker_deleted) = match &worker {
            Some(worker) => self.worker(worker).await?,
            None => (None, false),
        };
        let word = if job.state == State::Completed { "success" } else { "failed" };
        let result_status = match job.state.is_final() {
            true if self.digested(told.run).await? => Some(format!("{word}-ack")),
            true => Some(word.to_owned()),
            false => None,
        };
        Ok(Some(Row {
            function_block_id: told.block,
            job_id: job.id().to_string(),
            step_label: told.label,
            status: Status::of(job.state),
            r#type: told.kind,
            result_status,
            worker_name,
            worker_deleted,
            workflow_execution_id: told.run.to_string(),
            entity_id: told.entity,
            created_at: time(job.spec.created_at),
            updated_at: time(updated(job)),
            started_at: job.live.claimed_at.filter(|_| worker.is_some()).map(time),
            finished_at: job.live.finished_at.map(time),
            retry_count: retries(job),
            canceled: job.state.is_final() && worker.is_none(),
            result_message: message(job),
            worker_id: worker.map(|worker| worker.to_string()),
            result_data: None,
            result_data_omitted: None,
            created: job.spec.created_at,
            updated: updated(job),
        }))
    }
}

pub async fn row(app: &App, job: &Job) -> Result<Option<Row>> {
    Shows::new(app).row(job).await
}
