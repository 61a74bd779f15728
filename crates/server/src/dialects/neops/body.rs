//! How this protocol reads requests and writes answers.

use super::error::{HttpError, Result};
use crate::{app::App, ask};
pub use crate::{ask::Params, wire_time::text as time};
use axum::{
    body::Body,
    extract::{FromRef, FromRequest, Request},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use windlass_api::Uuid;

/// As its clients expect it, to the letter.
pub const JSON: &str = "application/json; charset=utf-8";

/// A JSON body that is an object. Nothing at all counts as `{}`: its clients announce JSON also where they send none.
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned + Send + 'static, S: Sync> FromRequest<S> for Sent<T>
where
    App: FromRef<S>,
{
    type Rejection = HttpError;
    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let bytes = ask::read(request.into_body()).await?;
        Ok(Self(ask::parse(&App::from_ref(state), super::namespace, bytes).await?))
    }
}

crate::path::extractor!(HttpError, |why, _| HttpError::bad(why));

/// A text that has to be an id.
pub fn id(name: &str, text: &str) -> Result<Uuid> {
    text.parse().map_err(|_| HttpError::bad(format!("{name} must be a UUID, not {text:?}")))
}

/// A number without a fraction. Some of its clients write `1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(from)?;
        // Up to here every whole number has a float of its own.
        let fits = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
        fits.then_some(Self(number as u64))
            .ok_or_else(|| serde::de::Error::custom("must be a whole number, at least 0"))
    }
}

/// JSON with a status.
pub struct Json<T>(pub StatusCode, pub T);

pub fn ok<T>(body: T) -> Json<T> {
    Json(StatusCode::OK, body)
}

pub fn created<T>(body: T) -> Json<T> {
    Json(StatusCode::CREATED, body)
}

/// A status, and no body.
pub fn empty(status: StatusCode) -> Response {
    (status, Body::empty()).into_response()
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let mut response = ask::Answer(self.0, self.1).into_response();
        if response.status() == self.0 {
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        response
    }
}
