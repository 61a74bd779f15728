//! Two versions side by side. Deleted ones can be compared too.

use super::{
    super::{
        body::{Params, ok, time},
        error::{HttpError, Result},
    },
    DOCUMENT, named, show, unknown,
};
use crate::app::App;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use windlass_plan::neops::compare;

pub async fn compare(State(app): State<App>, params: Params) -> Result<Response> {
    let (from, old) = side(&app, &params, "from").await?;
    let (to, new) = side(&app, &params, "to").await?;
    let found = app.aside.run(&super::super::namespace(), move || compare::compare(&old, &new)).await?;
    let floor = show::level(compare::floor(&found));
    Ok(ok(json!({"from": from, "to": to, "floor": floor, "findings": show::findings(&found)})).into_response())
}

async fn side(app: &App, params: &Params, name: &str) -> Result<(Value, Value)> {
    let id = params.get(name).ok_or_else(|| HttpError::bad(format!("{name} is missing")))?;
    let (reference, workflow) = named(app, id).await?;
    let entry = workflow.value.entry(&reference).ok_or_else(|| unknown(id))?;
    let document = DOCUMENT.find(app, id).await?.ok_or_else(|| unknown(id))?;
    let shown = json!({
        "id": id, "version": entry.version.to_string(), "createdAt": time(entry.created_at),
        "createdByUsername": entry.by, "deletedAt": show::maybe(entry.deleted_at),
    });
    Ok((shown, document.value))
}
