//! A run as its callers see it: one record, written in the transaction that brings what it says. Keys go by time, newest first,
//! because callers may bring their own ids; a second record leads from the id to it.

use super::super::{Neops, body::time, namespace};
use crate::{app::App, problem::Problem, records::Records};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use windlass_api::Uuid;
use windlass_core::{
    Command, Facet, Record, Timestamp,
    commands::records::{Expect, PutRecord},
};
use windlass_engine::{records::Kept, store::RecordQuery};
use windlass_plan::neops::{reference::EntityType, updates::Key};

pub const ROW: Records<Row> = Records::new("neops_run", namespace);
const ID: Records<String> = Records::new("neops_run_id", namespace);
const STATUS: &str = "status";
const OPEN: &str = "open";
const WORKFLOW: &str = "workflow";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    ResourceDiscovery,
    Locking,
    Running,
    Error,
    Rollback,
    CompletedAck,
    FailedSafeAck,
    FailedUnsafeAck,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ResourceDiscovery => "resource_discovery",
            Self::Locking => "locking",
            Self::Running => "running",
            Self::Error => "error",
            Self::Rollback => "rollback",
            Self::CompletedAck => "completed_ack",
            Self::FailedSafeAck => "failed_safe_ack",
            Self::FailedUnsafeAck => "failed_unsafe_ack",
        }
    }

    pub fn is_final(self) -> bool {
        matches!(self, Self::CompletedAck | Self::FailedSafeAck | Self::FailedUnsafeAck)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Trigger {
    Api,
    Cron,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub uuid: Uuid,
    pub workflow_id: String,
    pub workflow_name: String,
    pub status: Status,
    /// Code and text. Set when the run begins to fail.
    pub reason: Option<(String, String)>,
    pub unsafe_cause: Option<String>,
    pub retry_note: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub parameters: Map<String, Value>,
    pub ids: Vec<u64>,
    pub query: Option<String>,
    pub held: Vec<(String, u64)>,
    pub trigger: Trigger,
    pub started_by: Option<String>,
    pub aborted_by: Option<String>,
    /// How often what its steps changed was added to its context.
    pub context: u32,
    pub has_context: bool,
}

impl Row {
    pub fn key(&self) -> String {
        format!("{:016x}-{}", u64::MAX - self.created_at.0.max(0) as u64, self.uuid)
    }

    /// Notes a failure, the first one only: what follows from it is no reason.
    pub fn fail(&mut self, code: &str, why: &str) {
        if self.reason.is_none() {
            let why: String = why.chars().take(4_000).collect();
            self.reason = Some((code.into(), why));
        }
        if !self.status.is_final() && self.status != Status::Rollback {
            self.status = Status::Error;
        }
    }

    /// Leaves out what may be large. Such a row is for looking at, not for showing or keeping.
    pub fn lighten(&mut self) {
        (self.parameters, self.ids, self.held, self.query) = Default::default();
        if let Some((_, text)) = &mut self.reason {
            *text = String::new();
        }
    }

    /// It failed, or somebody ended it.
    pub fn is_failing(&self) -> bool {
        self.reason.is_some()
    }

    pub fn end(&mut self, status: Status, now: Timestamp) {
        (self.status, self.finished_at, self.retry_note) = (status, Some(now), None);
        if status != Status::FailedUnsafeAck {
            self.held.clear();
        }
    }

    pub fn locks(&self) -> Vec<Key> {
        self.held.iter().filter_map(|(entity, id)| Some((EntityType::parse(entity)?, *id))).collect()
    }

    /// One that has ended and keeps no lock goes after the retention.
    pub fn put(&mut self, app: &App, expect: Expect, now: Timestamp) -> Vec<Command> {
        self.updated_at = now;
        let over = self.status.is_final() && self.status != Status::FailedUnsafeAck;
        let expires_at = over.then(|| now + app.engine.settings().limits.retention);
        let open = if self.status.is_final() { "no" } else { "yes" };
        let facets = vec![
            Facet::new(STATUS, self.status.as_str()),
            Facet::new(OPEN, open),
            Facet::new(WORKFLOW, &self.workflow_id),
        ];
        let mut commands = vec![PutRecord { facets, expires_at, ..ROW.put(&self.key(), self, expect) }.into()];
        if over {
            let id = ID.put(&self.uuid.to_string(), &self.key(), Expect::Anything);
            commands.push(PutRecord { expires_at, ..id }.into());
        }
        commands
    }

    /// A new one: both records, or neither if the id is taken.
    pub fn create(&mut self, app: &App, now: Timestamp) -> Vec<Command> {
        let mut commands = vec![ID.put(&self.uuid.to_string(), &self.key(), Expect::Nothing).into()];
        commands.append(&mut self.put(app, Expect::Nothing, now));
        commands
    }

    /// As callers see it, with its parameters.
    pub fn show(&self) -> Value {
        let mut shown = self.head();
        shown["parameters"] = Value::Object(self.parameters.clone());
        shown
    }

    /// As on a page: without its parameters.
    pub fn head(&self) -> Value {
        let at = |at: Option<Timestamp>| at.map(time);
        let (code, reason) = self.reason.clone().unzip();
        let held = (!self.held.is_empty()).then(|| {
            let of = |entity: &str| -> Vec<u64> {
                self.held.iter().filter(|(of, _)| of == entity).map(|(_, id)| *id).collect()
            };
            json!({"devices": of("device"), "deviceGroups": of("group"), "interfaces": of("interface")})
        });
        let mut on = Map::new();
        on.insert("ids".into(), json!(self.ids));
        if let Some(query) = &self.query {
            on.insert("query".into(), json!(query));
        }
        json!({
            "uuid": self.uuid, "workflowId": self.workflow_id, "workflowName": self.workflow_name,
            "status": self.status.as_str(), "reason": reason, "reasonCode": code, "unsafeCause": self.unsafe_cause,
            "retryNote": self.retry_note, "createdAt": time(self.created_at), "updatedAt": time(self.updated_at),
            "startedAt": at(self.started_at), "finishedAt": at(self.finished_at), "executeOnParameters": on,
            "cmsResourcesLocked": !self.held.is_empty(), "heldLocks": held, "triggerType": self.trigger,
            "authorityBasis": "disabled", "startedBy": self.started_by, "startedByUsername": self.started_by,
            "abortedBy": self.aborted_by, "abortedByUsername": self.aborted_by,
        })
    }
}

pub async fn find(app: &App, run: Uuid) -> Result<Option<Kept<Row>>, Problem> {
    match ID.find(app, &run.to_string()).await? {
        Some(key) => ROW.find(app, &key.value).await,
        None => Ok(None),
    }
}

/// The same, by the way it was found before.
pub async fn look(neops: &Neops, run: Uuid) -> Result<Option<Kept<Row>>, Problem> {
    let known = neops.own.rows.lock().get(&run);
    if let Some(key) = known
        && let Some(kept) = ROW.find(neops, &key).await?
    {
        return Ok(Some(kept));
    }
    let found = find(neops, run).await?;
    if let Some(kept) = &found {
        neops.own.rows.lock().put(run, kept.key.clone(), 0);
    }
    Ok(found)
}

fn query(facet: Option<(&str, &str)>) -> RecordQuery {
    let facet = facet.map(|(name, value)| Facet::new(name, value));
    RecordQuery { facet, limit: READ_MIN, ..ROW.query() }
}

/// Rows that are read at a time, at first and at most: as many as are not too large together.
const READ_MIN: usize = 20;
const READ_MAX: usize = 500;
const READ_BYTES: usize = 4 << 20;

/// The newest first, each with its size, as long as the caller wants more.
pub async fn each(
    app: &App,
    facet: Option<(&str, &str)>,
    mut see: impl FnMut((Row, usize)) -> bool,
) -> Result<(), Problem> {
    let mut pages = app.engine.pages(query(facet));
    while let Some(page) = pages.next().await? {
        let bytes: usize = page.iter().map(|record| record.value.len()).sum();
        pages.read_at_once((READ_BYTES * page.len() / bytes.max(1)).clamp(READ_MIN, READ_MAX));
        let read = move || {
            let one = |record: &Record| Ok((ROW.read(record)?.value, record.value.len()));
            page.iter().map(one).collect::<Result<Vec<_>, Problem>>()
        };
        for row in app.aside.run(&namespace(), read).await?? {
            if !see(row) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Those that have not ended, behind a key, without what may be large.
pub async fn open_after(app: &App, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Kept<Row>>, Problem> {
    let mut found: Vec<Kept<Row>> = Vec::new();
    let take = |mut kept: Kept<Row>| {
        kept.value.lighten();
        found.push(kept);
        found.len() < limit
    };
    app.engine.each_record(RecordQuery { after, ..query(Some((OPEN, "yes"))) }, take).await?;
    Ok(found)
}

pub async fn open(app: &App, see: impl FnMut((Row, usize)) -> bool) -> Result<(), Problem> {
    each(app, Some((OPEN, "yes")), see).await
}

pub async fn in_state(app: &App, status: Status, see: impl FnMut((Row, usize)) -> bool) -> Result<(), Problem> {
    each(app, Some((STATUS, status.as_str())), see).await
}

/// The newest run of every workflow, of those that are looked at, without what may be large.
pub async fn latest(app: &App) -> Result<Vec<Row>, Problem> {
    const LOOKED_AT: usize = 20_000;
    let (mut found, mut seen) = (BTreeMap::new(), 0);
    each(app, None, |(mut row, _)| {
        seen += 1;
        row.lighten();
        found.entry(row.workflow_id.clone()).or_insert(row);
        seen < LOOKED_AT
    })
    .await?;
    Ok(found.into_values().collect())
}
