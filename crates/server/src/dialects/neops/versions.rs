//! What a client asks before it begins: whether there is a server, which version it speaks, and whether they fit.

use super::{
    Own,
    body::{Json, Sent, created, ok},
};
use crate::{
    dialect::Mount,
    route::{Access, Route},
};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::{Value, json};

/// The version of the original engine whose contract this is.
pub const VERSION: &str = "0.43.0-beta.8";

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/", Access::Open, root).says("What this is"),
        on.get("/version", Access::Open, version).says("The version of the protocol"),
        on.post("/version/compatibility", Access::Open, compatibility).says("Does a client's version fit?"),
        on.get("/me", Access::Open, me).says("Who is calling"),
    ]
}

/// People are shown something to read.
async fn root(headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        return Redirect::to("/docs").into_response();
    }
    ([(header::VARY, "accept")], "Windlass\n").into_response()
}

async fn version() -> Json<Value> {
    ok(json!({"version": VERSION}))
}

#[derive(Deserialize)]
struct Client {
    version: String,
    library: String,
}

async fn compatibility(Sent(client): Sent<Client>) -> Json<Value> {
    created(json!({
        "compatible": true,
        "deprecated": false,
        "version": VERSION,
        "checkedLibrary": client.library,
        "checkedVersion": client.version,
    }))
}

/// The original's own authorization is what is off here; tokens are another matter.
async fn me() -> Json<Value> {
    ok(json!({"mode": "disabled", "anonymous": true}))
}
