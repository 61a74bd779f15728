//! Lists without pages: as long as anybody can use, and a word when there is more.

use super::{
    HttpError, Result,
    body::{JSON, Json},
    namespace,
};
use crate::app::App;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

pub const LIST_MAX: usize = 10_000;
/// Bytes of such a list.
pub const LIST_BYTES_MAX: usize = 64 << 20;

/// Says that a list was cut.
pub const MORE: &str = "x-windlass-more";

pub async fn bare<T: Serialize + Send + 'static>(app: &App, items: Vec<T>, more: bool) -> Result<Response> {
    let mut response = large(app, StatusCode::OK, items).await?;
    if more {
        response.headers_mut().insert(MORE, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// An answer that takes its time to write.
pub async fn large<T: Serialize + Send + 'static>(app: &App, status: StatusCode, body: T) -> Result<Response> {
    let text = app.aside.run(&namespace(), move || serde_json::to_vec(&body)).await?;
    let text = text.map_err(|error| {
        HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be written: {error}"))
    })?;
    let mut response = Json(status, ()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    *response.body_mut() = Body::from(text);
    Ok(response)
}
