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
