//! Who calls.

use super::HttpError;
use crate::{auth::Caller, guard};
use axum::extract::FromRequestParts;
use http::request::Parts;
use std::sync::Arc;

pub struct Who(pub Caller);

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = HttpError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        Ok(Self(guard::caller(parts)?))
    }
}

/// In whose name a worker is registered, claims and reports. Those without a token have one name together.
pub fn principal(caller: &Caller) -> Option<Arc<str>> {
    Some(caller.name.clone())
}
