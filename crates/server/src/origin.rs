//! What browsers tell about where a request comes from, and what they are told in return.
//!
//! A page of another site must not be able to use a server that only its visitor's browser can reach: its `Origin` gives it
//! away, and a name that was pointed at this machine behind the browser's back gives itself away as an unknown `Host`.

use crate::{
    host::{host_of, is_loopback, name_of},
    peer::Peer,
    problem::{Code, Problem, Result},
};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use std::net::IpAddr;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, last-event-id, prefer, traceparent, tracestate, x-request-hash, x-request-id",
);
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("location, preference-applied, retry-after, x-request-id");

pub fn check_host(hosts: &[String], request: &Request) -> Result<()> {
    // A proxy in front may have gone by the one, and this server would go by the other.
    if request.headers().get_all(header::HOST).iter().nth(1).is_some() {
        return Err(Problem::new(Code::BadRequest, "the request has more than one Host header").at("Host"));
    }
    let Some(host) = host_of(request) else {
        // Before HTTP/1.1 there was none, and no browser is that old.
        return match request.version() < Version::HTTP_11 {
            true => Ok(()),
            false => Err(Problem::new(Code::BadRequest, "the request has no Host header").at("Host")),
        };
    };
    let name = name_of(host);
    let listed = || hosts.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(name));
    if is_loopback(name) || is_own(name, request) || listed() {
        return Ok(());
    }
    let why =
        format!("this server does not go by the name {name:?}; list it under `hosts` (WINDLASS_HOSTS) if it should");
    Err(Problem::new(Code::WrongHost, why).at("Host"))
}

/// The address the client connected to is a name of ours.
fn is_own(name: &str, request: &Request) -> bool {
    let Some(peer) = request.extensions().get::<Peer>() else { return false };
    name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == peer.local.ip().to_canonical())
}

/// For calls that change something.
pub fn check_origin(origins: &[String], request: &Request) -> Result<()> {
    let headers = request.headers();
    if let Some(origin) = headers.get(header::ORIGIN) {
        if is_same(origin, request) || is_listed(origins, origin) {
            return Ok(());
        }
        let why =
            "a page of another site may not call this; list its origin under `origins` (WINDLASS_ORIGINS) if it should";
        return Err(Problem::new(Code::ForeignOrigin, why).at("Origin"));
    }
    match headers.get(SEC_FETCH_SITE) {
        Some(site) if site == "cross-site" => {
            Err(Problem::new(Code::ForeignOrigin, "the browser says that another site sent this").at("Sec-Fetch-Site"))
        }
        _ => Ok(()),
    }
}

/// Schemes are not compared: a proxy may have taken the TLS off.
fn is_same(origin: &HeaderValue, request: &Request) -> bool {
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    authority.is_some_and(|authority| host_of(request).is_some_and(|host| host.eq_ignore_ascii_case(authority)))
}

fn is_listed(origins: &[String], origin: &HeaderValue) -> bool {
    origins.iter().any(|listed| listed.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
}

/// Lets pages of listed origins read the answer.
pub fn share(origins: &[String], origin: &HeaderValue, headers: &mut HeaderMap) {
    if origins.is_empty() {
        return;
    }
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if is_listed(origins, origin) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }
}

/// A browser's question before the real request. `allow` is what the path has.
pub fn preflight(origins: &[String], allow: &HeaderValue, request: &Request) -> Response {
    let asked = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    match request.headers().get(header::ORIGIN) {
        Some(origin) if asked && is_listed(origins, origin) => {
            let headers = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, allow.clone()),
                (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
                (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
            ];
            (StatusCode::NO_CONTENT, headers).into_response()
        }
        Some(_) if asked => {
            let why = "pages of this origin may not call; list it under `origins` (WINDLASS_ORIGINS) if they should";
            Problem::new(Code::ForeignOrigin, why).at("Origin").into_response()
        }
        _ => (StatusCode::NO_CONTENT, [(header::ALLOW, allow.clone())]).into_response(),
    }
}

/// What a browser must not do with an answer. Pages that need more say so themselves.
pub fn harden(headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let is_json = headers.get(header::CONTENT_TYPE).is_none_or(|content| content.as_bytes().ends_with(b"json"));
    if !is_json {
        headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
        let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
        headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(nothing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn check_host(request: &Request) -> Result<()> {
        super::check_host(&["windlass.example".into()], request)
    }

    fn check_origin(request: &Request) -> Result<()> {
        super::check_origin(&["https://app.example".into()], request)
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        let peer =
            Peer { address: "10.0.0.2:999".parse().unwrap(), local: "10.0.0.1:3000".parse().unwrap(), tls: false };
        let request = http::Request::builder().uri("/api/v1/jobs").extension(peer);
        headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .body(Body::empty())
            .unwrap()
    }

    #[test]
    fn only_names_of_ours_are_answered_to() {
        for host in [
            "localhost:3000",
            "LOCALHOST",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]:3000",
            "10.0.0.1:3000",
            "windlass.example",
            "Windlass.Example:443",
            "a.localhost:3000",
        ] {
            assert!(check_host(&request(&[("host", host)])).is_ok(), "{host}");
        }
        for host in ["evil.example", "10.0.0.9:3000", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::2]"] {
            let problem = check_host(&request(&[("host", host)])).unwrap_err();
            assert_eq!(problem.0.status, 421, "{host}");
        }
        assert_eq!(check_host(&request(&[])).unwrap_err().0.status, 400);
        assert!(super::check_host(&["*".into()], &request(&[("host", "evil.example")])).is_ok());
    }

    #[test]
    fn pages_of_other_sites_change_nothing() {
        let host = ("host", "localhost:3000");
        for fine in [
            vec![host],
            vec![host, ("origin", "http://localhost:3000")],
            vec![host, ("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
            vec![host, ("sec-fetch-site", "same-origin")],
        ] {
            assert!(check_origin(&request(&fine)).is_ok(), "{fine:?}");
        }
        for foreign in [
            vec![host, ("origin", "http://localhost:4000")],
            vec![host, ("origin", "null")],
            vec![host, ("origin", "https://app.example.evil")],
            vec![host, ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(check_origin(&request(&foreign)).unwrap_err().0.code(), "foreign-origin", "{foreign:?}");
        }
    }
}
