//! How this protocol reads requests and writes answers.

use super::{
    error::{HttpError, Result},
    fault::{self, Fault},
    fields::Fields,
};
pub use crate::ask::{Answer as Json, Params, created, ok};
use crate::{app::App, ask};
use axum::extract::{FromRef, FromRequest, Request};
use bytes::Bytes;
use http::{StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_core::Timestamp;

/// A JSON body that is an object.
pub struct Sent(pub Fields);

impl<S: Sync> FromRequest<S> for Sent
where
    App: FromRef<S>,
{
    type Rejection = HttpError;
    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(ask::is_json);
        let bytes = ask::read(request.into_body()).await?;
        let fields = match bytes.len() {
            0..=ask::LARGE => read(&bytes, is_json),
            _ => {
                let app = App::from_ref(state);
                app.aside.run(&super::namespace(), move || read(&bytes, is_json)).await?
            }
        };
        Ok(Self(fields?))
    }
}

fn read(bytes: &Bytes, is_json: bool) -> Result<Fields, Fault> {
    if bytes.is_empty() {
        return Err(Fault::missing(&["body"], Value::Null));
    }
    if !is_json {
        return Err(no_object());
    }
    ask::check_depth(bytes).map_err(|problem| Fault::json(0, problem.0.detail))?;
    Fields::read(bytes)
}

/// Whatever stood there instead may be a password, so it is not repeated.
pub fn no_object() -> Fault {
    let msg = "Input should be a valid dictionary or object to extract fields from";
    Fault::new("model_attributes_type", &["body"], msg, Value::Null)
}

pub const LIMIT: usize = 50;
pub const LIMIT_MAX: u64 = 500;

/// Which part of a list.
#[derive(Clone, Copy, Debug)]
pub struct Paging {
    pub limit: usize,
    pub offset: usize,
}

pub fn paging(params: &Params) -> Result<Paging> {
    let number =
        |name: &str, most| params.get(name).map(|text| fault::number(&["query", name], text, 0, most)).transpose();
    match (number("limit", LIMIT_MAX), number("offset", u32::MAX.into())) {
        (Ok(limit), Ok(offset)) => {
            Ok(Paging { limit: limit.map_or(LIMIT, |limit| limit as usize), offset: offset.unwrap_or(0) as usize })
        }
        (limit, offset) => Err(HttpError::Invalid([limit.err(), offset.err()].into_iter().flatten().collect())),
    }
}

// What cannot be a part of a path is nowhere.
crate::path::extractor!(HttpError, |_, _| HttpError::plain(StatusCode::NOT_FOUND, "Not Found"));

/// A part of the path that has to be an id.
pub fn path_id(name: &str, text: &str) -> Result<windlass_api::Uuid> {
    Ok(fault::uuid(&["path", name], text)?)
}

/// A page of a list of so many.
pub fn page<T: Serialize>(items: Vec<T>, total: usize, paging: Paging) -> Json<Value> {
    ok(json!({"items": items, "total": total, "limit": paging.limit, "offset": paging.offset}))
}

/// Six digits and `Z`, everywhere.
pub fn time(at: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::MAX);
    format!("{time:.6}")
}
