//! Paths as clients write them who can say nothing but an address: `/~TOKEN/api/…`, and `//api/…` where somebody's address
//! ended in a slash.
//!
//! Looked at only where no route fits, so that everybody else pays nothing for it. The token leaves the path before anything
//! is matched, counted or told, so it is in no log, no metric and no error.

use axum::extract::Request;
use http::{Uri, uri::PathAndQuery};
use std::sync::Arc;

/// Goes with a request that came so, with the token that was in its path. Shows itself to nobody.
#[derive(Clone)]
pub struct Prefixed(pub Option<Arc<str>>);

/// Whether the path was one of these, and is an ordinary one now.
pub fn take(request: &mut Request) -> bool {
    let Some((token, path)) = split(request.uri()) else { return false };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(path);
    let Ok(uri) = Uri::from_parts(parts) else { return false };
    *request.uri_mut() = uri;
    request.extensions_mut().insert(Prefixed(token));
    true
}

pub fn split(uri: &Uri) -> Option<(Option<Arc<str>>, PathAndQuery)> {
    let whole = uri.path_and_query()?.as_str();
    let (token, rest) = match whole.strip_prefix("/~") {
        Some(rest) => {
            let (token, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            (Some(token.into()), rest)
        }
        None if whole.starts_with("//") => (None, whole),
        None => return None,
    };
    let path = format!("/{}", rest.trim_start_matches('/'));
    Some((token, path.parse().ok()?))
}
