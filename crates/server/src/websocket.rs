//! From a request to a WebSocket: the handshake (RFC 6455, section 4.2). What is spoken on the stream is its user's business.
//!
//! The stream keeps the connection's place and limits, see [`crate::listener`]. Whoever takes it ends it, with a close frame, when
//! [`crate::app::Inner::drain`] is cancelled.

use crate::problem::{Code, Problem, Result};
use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use tungstenite::handshake::derive_accept_key;

const VERSION: &str = "13";

/// Whether a request asks for a WebSocket, rightly or not.
pub fn is_asked_for(headers: &HeaderMap) -> bool {
    says(headers, header::UPGRADE, "websocket")
}

/// The answer that agrees to a WebSocket, and the stream to come once that answer is sent.
pub fn accept(request: &mut Request) -> Result<(Response, OnUpgrade)> {
    let key = key(request.headers())?;
    let no_stream = || refused("this connection cannot be upgraded");
    let stream = request.extensions_mut().remove::<OnUpgrade>().ok_or_else(no_stream)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
    Ok((response, stream))
}

/// What the client's key is answered with.
pub fn key(headers: &HeaderMap) -> Result<HeaderValue> {
    if !is_asked_for(headers) || !says(headers, header::CONNECTION, "upgrade") {
        return Err(refused("a WebSocket is asked for with `Connection: upgrade` and `Upgrade: websocket`"));
    }
    if !says(headers, header::SEC_WEBSOCKET_VERSION, VERSION) {
        return Err(refused("send `Sec-WebSocket-Version: 13`; no other version is spoken here"));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or_else(|| refused("send a `Sec-WebSocket-Key`"))?;
    let accept = derive_accept_key(key.as_bytes());
    HeaderValue::try_from(accept).map_err(|_| refused("the `Sec-WebSocket-Key` cannot be used"))
}

/// Whether a list of words has this one.
fn says(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let lists = headers.get_all(name);
    lists
        .iter()
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .any(|said| said.trim().eq_ignore_ascii_case(word))
}

fn refused(why: &str) -> Problem {
    Problem::new(Code::BadRequest, why)
}
