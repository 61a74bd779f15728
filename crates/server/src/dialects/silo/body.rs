//! How this protocol reads requests and writes answers.
//!
//! What a path names is looked for before the body is read, so that a caller who has the wrong object hears that first.

use super::{
    error::{HttpError, Result},
    products,
};
pub use crate::ask::{Answer as Json, created, ok};
pub use crate::wire_time::text as time;
use crate::{app::App, ask};
use axum::{
    extract::{FromRef, FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri, header, request::Parts};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use std::{collections::HashMap, convert::Infallible};
use windlass_product::Products;

/// The items of this dialect.
pub struct Here(pub Products);

impl<S: Sync> FromRequestParts<S> for Here
where
    App: FromRef<S>,
{
    type Rejection = Infallible;
    async fn from_request_parts(_: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self(products(&App::from_ref(state))))
    }
}

/// The body as it came.
pub struct Raw(Bytes);

impl<S: Sync> FromRequest<S> for Raw {
    type Rejection = HttpError;
    async fn from_request(request: Request, _: &S) -> Result<Self> {
        let kind = request.headers().get(header::CONTENT_TYPE).cloned();
        let bytes = ask::read(request.into_body()).await?;
        let foreign = kind.is_some_and(|kind| !ask::is_json(&kind));
        if foreign && !bytes.is_empty() {
            return Err(HttpError::invalid("the body must be application/json"));
        }
        Ok(Self(bytes))
    }
}

impl Raw {
    /// An empty body counts as `{}`.
    pub async fn parse<T: DeserializeOwned + Send + 'static>(self, app: &App) -> Result<T> {
        Ok(ask::parse(app, super::namespace, self.0).await?)
    }
}

/// For fields where null says something else than nothing: `Some(None)` is null.
pub fn told<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// The query, by name; the first of several counts.
pub struct Params(HashMap<String, String>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = HttpError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let pairs = pairs.map_err(|error| HttpError::invalid(error.body_text()))?.0;
        let mut found = HashMap::new();
        for (name, value) in pairs {
            found.entry(name).or_insert(value);
        }
        Ok(Self(found))
    }
}

pub const LIMIT: usize = 50;
pub const LIMIT_MAX: usize = 500;

impl Params {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The first of several names for the same thing.
    pub fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    pub fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>> {
        Ok(self.get(name).map(|text| ask::number(name, text, least, most)).transpose()?)
    }

    /// Offset and limit.
    pub fn page(&self) -> Result<(usize, usize)> {
        let limit = self.number("limit", 1, LIMIT_MAX as u64)?.map_or(LIMIT, |limit| limit as usize);
        let offset = self.number("offset", 0, u32::MAX.into())?.unwrap_or(0) as usize;
        Ok((offset, limit))
    }
}

// What cannot be a part of a path is nowhere.
crate::path::extractor!(HttpError, |_, uri: &Uri| HttpError::missing("such path:", uri.path()));

/// A bare list, and how many there are in all.
pub struct Listed<T>(pub Vec<T>, pub usize);

impl<T: Serialize> IntoResponse for Listed<T> {
    fn into_response(self) -> Response {
        let mut response = ask::Answer(StatusCode::OK, self.0).into_response();
        response.headers_mut().insert("x-total-count", HeaderValue::from(self.1));
        response
    }
}

/// One page of what was found.
pub fn page<T>(all: Vec<T>, (offset, limit): (usize, usize)) -> Listed<T> {
    let total = all.len();
    Listed(all.into_iter().skip(offset).take(limit).collect(), total)
}
