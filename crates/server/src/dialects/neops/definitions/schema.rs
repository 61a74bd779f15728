//! The JSON Schema of a workflow document, for editors.

use super::super::body::JSON;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

pub const SCHEMA: &str = include_str!("workflow.schema.json");

pub async fn schema() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(JSON))], SCHEMA).into_response()
}
