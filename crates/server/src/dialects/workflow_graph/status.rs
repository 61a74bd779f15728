//! A workflow as it is kept, and as it is shown: what was created, with the jobs of its latest run laid over it.

use super::{
    body::{HttpError, Result},
    namespace, translate, wire,
};
use crate::{app::App, flows};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Arc};
use windlass_core::{
    Command, Job, RecordKey, RunId,
    commands::records::{Expect, PutRecord},
    run::{Run, RunState},
};
use windlass_engine::store::{JobQuery, RecordQuery};

const KIND: &str = "wfg_workflow";
/// A workflow's jobs are kept in pieces, because a record has a limit and a workflow may have ten thousand jobs.
const PART_KIND: &str = "wfg_jobs";
const PART_BYTES: usize = 512 << 10;
const PAGE: usize = 1_000;

#[derive(Serialize, Deserialize)]
struct StatusHead {
    name: String,
    trigger: String,
    parts: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
}

pub struct Stored {
    pub id: String,
    pub name: String,
    pub trigger: String,
    pub run: Option<RunId>,
    pub jobs: Vec<wire::Job>,
    /// Of the head's record; 0: not stored yet.
    pub version: u64,
    /// How many pieces its stored jobs are in.
    pub parts: usize,
}

fn key(kind: &str, key: &str) -> RecordKey {
    RecordKey { namespace: namespace(), kind: kind.into(), key: key.into() }
}

fn put(key: RecordKey, parent: Option<&str>, value: String, expect: Expect) -> Command {
    let parent = parent.map(Arc::from);
    PutRecord { key, expect, parent, value: value.into(), facets: Vec::new(), expires_at: None }.into()
}

fn damaged(error: impl std::fmt::Display) -> HttpError {
    HttpError(http::StatusCode::INTERNAL_SERVER_ERROR, format!("a stored workflow cannot be read: {error}"))
}

impl Stored {
    /// The head alone, for a workflow whose jobs are stored already.
    pub fn put_head(&self) -> Result<Command> {
        self.head(self.parts)
    }

    fn head(&self, parts: usize) -> Result<Command> {
        let head = StatusHead { name: self.name.clone(), trigger: self.trigger.clone(), parts, run: self.run };
        let expect = if self.version == 0 { Expect::Nothing } else { Expect::Version(self.version) };
        Ok(put(key(KIND, &self.id), None, serde_json::to_string(&head).map_err(damaged)?, expect))
    }

    /// Everything.
    pub fn put_all(&self) -> Result<Vec<Command>> {
        let parts = self.in_parts()?;
        let mut commands = vec![self.head(parts.len())?];
        for (at, part) in parts.into_iter().enumerate() {
            commands.push(put(key(PART_KIND, &part_key(&self.id, at)), Some(&self.id), part, Expect::Anything));
        }
        Ok(commands)
    }

    fn in_parts(&self) -> Result<Vec<String>> {
        let mut parts = vec![String::from("[")];
        for job in &self.jobs {
            let text = serde_json::to_string(job).map_err(damaged)?;
            let last = parts.last_mut().expect("there is one from the start");
            if last.len() > 1 && last.len() + text.len() > PART_BYTES {
                last.push(']');
                parts.push(format!("[{text}"));
            } else {
                if last.len() > 1 {
                    last.push(',');
                }
                last.push_str(&text);
            }
        }
        parts.last_mut().expect("there is one from the start").push(']');
        Ok(parts)
    }
}

fn part_key(id: &str, at: usize) -> String {
    format!("{id}/{at:06}")
}

pub async fn load(app: &App, id: &str) -> Result<Option<Stored>> {
    let Some(record) = app.engine.store().record(&key(KIND, id)).await? else { return Ok(None) };
    let head: StatusHead = serde_json::from_str(&record.value).map_err(damaged)?;
    let mut jobs = Vec::new();
    for at in 0..head.parts {
        if let Some(part) = app.engine.store().record(&key(PART_KIND, &part_key(id, at))).await? {
            jobs.append(&mut serde_json::from_str(&part.value).map_err(damaged)?);
        }
    }
    let StatusHead { name, trigger, run, parts } = head;
    Ok(Some(Stored { id: id.to_owned(), name, trigger, run, jobs, version: record.version, parts }))
}

/// The run the workflow points at, without its jobs.
pub async fn run_of(app: &App, id: &str) -> Result<Option<RunId>> {
    let Some(record) = app.engine.store().record(&key(KIND, id)).await? else {
        return Err(HttpError::bare(http::StatusCode::NOT_FOUND));
    };
    Ok(serde_json::from_str::<StatusHead>(&record.value).map_err(damaged)?.run)
}

/// Ids in order of creation: ids of created workflows grow with time.
pub async fn ids(app: &App, after: Option<String>) -> Result<Vec<String>> {
    let after = after.map(Arc::from);
    let query = RecordQuery { after, limit: PAGE, ..RecordQuery::all(namespace(), KIND) };
    let found = app.engine.store().records(&query).await?;
    Ok(found.into_iter().map(|record| record.key.key.to_string()).collect())
}

pub async fn is_running(app: &App, run: RunId) -> Result<bool> {
    let found = app.engine.read_record::<Run>(&namespace(), &run.to_string()).await?;
    Ok(found.is_some_and(|run| run.state() == RunState::Running))
}

/// What clients see.
pub async fn show(app: &App, stored: Stored) -> Result<wire::Workflow> {
    let mut latest: HashMap<Arc<str>, Job> = HashMap::new();
    if let Some(run) = stored.run {
        for job in flows::jobs(app, &namespace(), run).await? {
            if let Some(node) = &job.spec.node {
                latest.insert(node.name.clone(), job);
            }
        }
    }
    let shown = |created: wire::Job| match latest.get(created.id.as_str()) {
        Some(job) => translate::shown(&created, job),
        None => created,
    };
    let jobs = stored.jobs.into_iter().map(shown).collect();
    Ok(wire::Workflow { id: stored.id, name: stored.name, trigger: stored.trigger, jobs })
}

/// The executions of one job of a workflow, the oldest first.
pub async fn executions(app: &App, workflow: &str, job: &str, limit: usize) -> Result<Vec<Job>> {
    let facet = Some(translate::node_facet(workflow, job));
    let query = JobQuery { namespace: Some(namespace()), facet, limit, ..JobQuery::default() };
    let mut found = app.engine.store().jobs(&query).await?;
    found.reverse();
    Ok(found)
}
