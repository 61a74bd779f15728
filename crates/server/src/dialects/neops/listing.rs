//! Lists without pages: as long as anybody can use, and a word when there is more.

use super::body::ok;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use serde::Serialize;

pub const LIST_MAX: usize = 10_000;

/// Says that a list was cut.
pub const MORE: &str = "x-windlass-more";

pub fn bare<T: Serialize>(items: Vec<T>, more: bool) -> Response {
    let mut response = ok(items).into_response();
    if more {
        response.headers_mut().insert(MORE, HeaderValue::from_static("true"));
    }
    response
}
