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

fn split(uri: &Uri) -> Option<(Option<Arc<str>>, PathAndQuery)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_doubled_slashes_leave_the_path() {
        type Expected = Option<(Option<&'static str>, &'static str)>;
        let table: [(&str, Expected); 9] = [
            ("/api/workflows", None),
            ("/~wl_a/api/workflows?limit=1", Some((Some("wl_a"), "/api/workflows?limit=1"))),
            ("/~wl_a//api/jobs/claim", Some((Some("wl_a"), "/api/jobs/claim"))),
            ("//api/jobs/claim", Some((None, "/api/jobs/claim"))),
            ("/~wl_a", Some((Some("wl_a"), "/"))),
            ("/~wl_a?x=/api", Some((Some("wl_a"), "/?x=/api"))),
            ("/~/api", Some((Some(""), "/api"))),
            ("/a/~wl_a/api", None),
            ("http://h:1/~wl_a/api", Some((Some("wl_a"), "/api"))),
        ];
        for (uri, expected) in table {
            let found = split(&uri.parse().unwrap());
            let found = found.as_ref().map(|(token, path)| (token.as_deref(), path.as_str()));
            assert_eq!(found, expected, "{uri}");
        }
    }
}
