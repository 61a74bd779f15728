//! Runs of workflows: acquire, lock, execute, and roll back what failed.
//!
//! A run is a run of the rules with jobs for workers, and steps whose turns are decided here ([`turn`]). What callers see of it
//! stands in one record ([`row`]).

mod abort;
pub mod ahead;
mod begin;
mod bundle;
pub mod context;
mod end;
mod lanes;
mod ledger;
pub mod left;
mod page;
mod read;
mod remedy;
pub mod reported;
pub mod row;
mod steps;
pub mod submit;
pub mod turn;
mod waiting;

pub use bundle::Plan;

use super::{
    Neops, Own, board,
    body::{Params, Path, Sent, created, id},
    error::{HttpError, Result},
    job,
    listing::{LIST_BYTES_MAX, LIST_MAX, bare, large},
    namespace,
};
use crate::{
    dialect::Mount,
    guard,
    problem::Problem,
    route::{Access, Route},
};
use axum::{
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};
use row::{Row, Status, Trigger};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use submit::Start;
use windlass_api::Uuid;
use windlass_core::{Facet, Millis, principal::ANONYMOUS};
use windlass_plan::neops::{entity::ID_MAX, reference::Reference, secrets};

/// Entities that a run may be started on.
const IDS_MAX: usize = 10_000;
/// Bytes of a run's parameters: its record has to hold them.
const PARAMETERS_MAX: usize = 512 << 10;
/// How long a run that ended counts as active.
const STILL_ACTIVE: Millis = Millis::from_secs(300);

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.post("/workflow-execution", Access::Editor, execute).says("Start a run of a workflow"),
        on.get("/workflow-execution", Access::Viewer, list).says("Runs, the newest first"),
        on.get("/workflow-execution/active", Access::Viewer, active).says("Runs that have not ended, or just did"),
        on.get("/workflow-execution/latest", Access::Viewer, latest).says("The newest run of every workflow"),
        on.get("/workflow-execution/page", Access::Viewer, page::page).says("A page of runs"),
        on.get("/workflow-execution/id/{id}", Access::Viewer, get).says("A run"),
        on.get("/workflow-execution/state/{state}", Access::Viewer, in_state).says("Runs in a state"),
        on.get("/workflow-execution/{id}/jobs", Access::Viewer, jobs).says("A page of a run's jobs"),
        on.delete("/workflow-execution/{id}", Access::Editor, abort::abort).says("Abort a run"),
        on.get("/workflow-execution/{id}/remediation", Access::Viewer, remedy::show)
            .says("What a failed run left done"),
        on.post("/workflow-execution/{id}/remediation/rollback", Access::Editor, remedy::roll_back)
            .says("Roll back what a failed run left done"),
        on.post("/workflow-execution/{id}/remediation/resolve", Access::Editor, remedy::resolve)
            .says("Settle by hand what a failed run left done"),
    ]
}

/// Who calls. None: somebody without a token.
pub struct By(pub Option<String>);

impl By {
    /// As the audit trail calls them.
    pub fn name(&self) -> Arc<str> {
        self.0.as_deref().unwrap_or(ANONYMOUS).into()
    }
}

impl<S: Sync> FromRequestParts<S> for By {
    type Rejection = HttpError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let name = guard::caller(parts)?.name.to_string();
        Ok(Self(Some(name).filter(|name| name != ANONYMOUS)))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Execute {
    workflow: String,
    execute_on_parameters: On,
    parameters: Map<String, Value>,
    workflow_execution_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct On {
    #[serde(default)]
    ids: Vec<super::body::Whole>,
    query: Option<String>,
}

async fn execute(State(neops): State<Neops>, By(by): By, Sent(body): Sent<Execute>) -> Result<Response> {
    let odd =
        || HttpError::bad(format!("workflow must be a reference such as package/name:1, not {:?}", body.workflow));
    let workflow = Reference::parse(&body.workflow).ok_or_else(odd)?;
    if body.execute_on_parameters.ids.len() > IDS_MAX {
        return Err(HttpError::bad(format!("executeOnParameters.ids: at most {IDS_MAX}")));
    }
    if let Some(odd) = body.execute_on_parameters.ids.iter().find(|id| !(1..=ID_MAX).contains(&id.0)) {
        return Err(HttpError::bad(format!("executeOnParameters.ids: must be from 1 to {ID_MAX}, not {}", odd.0)));
    }
    let bytes = Value::Object(body.parameters.clone()).to_string().len();
    if bytes > PARAMETERS_MAX {
        return Err(HttpError::bad(format!("parameters: {bytes} bytes; at most {PARAMETERS_MAX}")));
    }
    let mut ids: Vec<u64> = body.execute_on_parameters.ids.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let start = Start {
        workflow,
        ids,
        query: body.execute_on_parameters.query,
        parameters: body.parameters,
        id: body.workflow_execution_id,
        trigger: Trigger::Api,
        by,
        also: Vec::new(),
    };
    Ok(created(submit::start(&neops, start).await?.show()).into_response())
}

/// The first of many, and whether there are more.
#[derive(Default)]
struct First {
    rows: Vec<Row>,
    bytes: usize,
    more: bool,
}

impl First {
    fn take(&mut self, (row, bytes): (Row, usize)) -> bool {
        self.bytes += bytes;
        self.more = self.rows.len() == LIST_MAX || self.bytes > LIST_BYTES_MAX;
        if !self.more {
            self.rows.push(row);
        }
        !self.more
    }

    async fn answer(self, neops: &Neops) -> Result<Response> {
        let rows = self.rows;
        let shown = neops.aside.run(&namespace(), move || rows.iter().map(Row::show).collect::<Vec<_>>()).await?;
        bare(neops, shown, self.more).await
    }
}

async fn list(State(neops): State<Neops>) -> Result<Response> {
    let mut all = First::default();
    row::each(&neops, None, |row| all.take(row)).await?;
    all.answer(&neops).await
}

async fn active(State(neops): State<Neops>) -> Result<Response> {
    let mut all = First::default();
    row::open(&neops, |row| all.take(row)).await?;
    let since = neops.engine.now().await?.0 - STILL_ACTIVE.0;
    let mut looked_at = 0;
    row::each(&neops, None, |found| {
        looked_at += 1;
        let just = found.0.status.is_final() && found.0.finished_at.is_some_and(|at| at.0 >= since);
        (!just || all.take(found)) && looked_at < LIST_MAX
    })
    .await?;
    all.answer(&neops).await
}

async fn latest(State(neops): State<Neops>) -> Result<Response> {
    let mut all = First::default();
    for light in row::latest(&neops).await? {
        let Some(kept) = row::find(&neops, light.uuid).await? else { continue };
        let bytes = kept.value.show().to_string().len();
        if !all.take((kept.value, bytes)) {
            break;
        }
    }
    all.answer(&neops).await
}

async fn in_state(State(neops): State<Neops>, Path(state): Path<String>) -> Result<Response> {
    let mut all = First::default();
    if let Some(status) = known_state(&state)? {
        row::in_state(&neops, status, |row| all.take(row)).await?;
    }
    all.answer(&neops).await
}

/// None: a state that no run here is ever seen in.
fn known_state(text: &str) -> Result<Option<Status>> {
    const PASSING: [&str; 12] = [
        "new",
        "valid",
        "ready",
        "resources_discovered",
        "scheduled",
        "locked",
        "completed",
        "failed_safe",
        "failed_unsafe",
        "blocked_waiting",
        "error",
        "rollback",
    ];
    let lower = text.to_ascii_lowercase();
    let found = serde_json::from_value(Value::from(lower.as_str())).ok();
    match found {
        None if !PASSING.contains(&lower.as_str()) => Err(HttpError::bad(format!("there is no state {text:?}"))),
        found => Ok(found),
    }
}

async fn get(State(neops): State<Neops>, Path(run): Path<String>) -> Result<Response> {
    let run = id("id", &run)?;
    let kept = row::look(&neops, run).await?.ok_or_else(|| HttpError::not_found(format!("there is no run {run}")))?;
    let mut shown = kept.value.show();
    shown["context"] = match context(&neops, &kept.value).await? {
        Some(mut context) => {
            let strip = move || {
                secrets::strip(&mut context);
                context
            };
            neops.aside.run(&namespace(), strip).await?
        }
        None => context::empty(),
    };
    large(&neops, StatusCode::OK, shown).await
}

async fn jobs(State(neops): State<Neops>, Path(run): Path<String>, params: Params) -> Result<Response> {
    let run = id("id", &run)?;
    row::find(&neops, run).await?.ok_or_else(|| HttpError::not_found(format!("there is no run {run}")))?;
    Ok(board::page::of(&neops, &params, Facet::new(job::RUN, &run.to_string())).await?.into_response())
}

/// None: it is about no entity.
async fn context(neops: &Neops, row: &Row) -> Result<Option<Value>, Problem> {
    match row.has_context || row.context > 0 {
        true => context::value(neops, row.uuid, row.context).await.map(Some),
        false => Ok(None),
    }
}
