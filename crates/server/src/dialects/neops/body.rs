//! How this protocol reads requests and writes answers.

use super::error::HttpError;
use crate::{
    app::App,
    ask,
    path::{self, FromPath},
};
use axum::{
    body::Body,
    extract::{FromRef, FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header, request::Parts};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use windlass_api::Uuid;
use windlass_core::Timestamp;

/// As its clients expect it, to the letter.
pub const JSON: &str = "application/json; charset=utf-8";

/// A JSON body that is an object. Nothing at all counts as `{}`: its clients announce JSON also where they send none.
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned + Send + 'static, S: Sync> FromRequest<S> for Sent<T>
where
    App: FromRef<S>,
{
    type Rejection = HttpError;
    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let bytes = ask::read(request.into_body()).await?;
        Ok(Self(ask::parse(&App::from_ref(state), super::namespace, bytes).await?))
    }
}

/// The query, in order. Keys may repeat.
pub struct Params(pub Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = HttpError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

impl Params {
    /// The last of several of a name counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// False where it is not said.
    pub fn flag(&self, name: &str) -> Result<bool, HttpError> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(HttpError::bad(format!("{name} must be true or false, not {other:?}"))),
        }
    }

    /// None where it is not said.
    pub fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, HttpError> {
        let read = |text: &str| {
            let number = text.parse().ok().filter(|number| (least..=most).contains(number));
            number
                .ok_or_else(|| HttpError::bad(format!("{name} must be a number from {least} to {most}, not {text:?}")))
        };
        self.get(name).map(read).transpose()
    }

    pub fn time(&self, name: &'static str) -> Result<Option<Timestamp>, HttpError> {
        self.get(name).map(|text| Ok(crate::wire_time::parse(name, text)?)).transpose()
    }
}

/// Parts of the path, decoded.
pub struct Path<T>(pub T);

impl<T: FromPath, S: Sync> FromRequestParts<S> for Path<T> {
    type Rejection = HttpError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        path::take(parts).map(Self).map_err(HttpError::bad)
    }
}

/// A text that has to be an id.
pub fn id(name: &str, text: &str) -> Result<Uuid, HttpError> {
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

/// Three digits and `Z`, everywhere.
pub fn time(at: Timestamp) -> String {
    crate::wire_time::text(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_be_written_as_floats_and_nothing_else() {
        let read = |text: &str| serde_json::from_str::<Whole>(text).ok().map(|whole| whole.0);
        assert_eq!([read("3"), read("3.0"), read("0")], [Some(3), Some(3), Some(0)]);
        for junk in ["-1", "1.5", "\"1\"", "true", "null", "1e300"] {
            assert_eq!(read(junk), None, "{junk}");
        }
    }

    #[test]
    fn flags_and_numbers_of_a_query_are_read_strictly() {
        let params = |pairs: &[(&str, &str)]| {
            Params(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let query = params(&[("a", "true"), ("b", "yes"), ("n", "7"), ("s", "x"), ("s", "y")]);
        assert_eq!((query.flag("a").unwrap(), query.flag("none").unwrap()), (true, false));
        assert!(query.flag("b").is_err() && query.number("n", 0, 6).is_err() && query.number("a", 0, 6).is_err());
        assert_eq!(query.number("n", 0, 7).unwrap(), Some(7));
        assert_eq!(query.all("s").collect::<Vec<_>>(), ["x", "y"]);
    }
}
