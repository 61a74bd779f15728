//! What handlers take in: who asks, in which namespace, and the JSON they sent.

use crate::{
    app::App,
    auth::Caller,
    guard, path,
    peer::BodyTimeout,
    problem::{Code, Problem, Result},
    read_permits::ReadPermit,
    room::Refused,
    trace::{self, TraceParent},
    wire_time,
};
use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::{Serialize, de::DeserializeOwned};
use std::{borrow::Cow, convert::Infallible};
use windlass_api::object::Object;
use windlass_core::{Namespace, Timestamp};

/// JSON nested deeper than this is refused before it is parsed.
pub const DEPTH_MAX: usize = 64;

/// A larger body is read aside.
pub const LARGE: usize = 32 << 10;

/// Who asks, and where. The namespace is the query's `namespace`, `default` where there is none.
#[derive(Clone)]
pub struct Ask {
    pub caller: Caller,
    pub namespace: Namespace,
    /// The trace this call belongs to, if the caller has one.
    pub trace: Option<TraceParent>,
    permit: Option<ReadPermit>,
}

impl Ask {
    /// From here on this request waits for something to happen.
    pub fn waits(&self) {
        self.permit.iter().for_each(ReadPermit::leave);
    }
}

impl<S: Sync> FromRequestParts<S> for Ask {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let caller = guard::caller(parts)?;
        let namespace = namespace(parts.uri.query().unwrap_or_default())?;
        caller.check_namespace(&namespace)?;
        let permit = parts.extensions.get::<ReadPermit>().cloned();
        Ok(Self { caller, namespace, trace: trace::parent(&parts.headers), permit })
    }
}

/// The only parameter that every call knows. Nearly always it is sent as plainly as it can be, and need not be decoded.
pub fn namespace(query: &str) -> Result<Namespace> {
    let mut named = query.split('&').filter_map(|pair| match pair.split_once('=') {
        Some(("namespace", plain)) if !plain.contains(['%', '+']) => Some(Cow::Borrowed(plain)),
        _ => form_urlencoded::parse(pair.as_bytes()).find(|(name, _)| name == "namespace").map(|(_, value)| value),
    });
    match (named.next(), named.next()) {
        (None, _) => Ok(Namespace::default()),
        (Some(name), None) => Ok(Namespace::new(&name)?),
        (Some(_), Some(_)) => Err(Problem::new(Code::BadRequest, "the namespace is given twice").at("query")),
    }
}

/// The request's JSON body.
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Sent<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let namespace = || namespace(parts.uri.query().unwrap_or_default()).unwrap_or_default();
        parse(app, namespace, read(body).await?).await.map(Sent)
    }
}

/// The whole body, within the limit its route has. Most come in one piece, which is then not copied.
pub async fn read(mut body: Body) -> Result<Bytes> {
    let first = match body.frame().await.transpose().map_err(unread)? {
        Some(frame) => frame.into_data().unwrap_or_default(),
        None => return Ok(Bytes::new()),
    };
    if body.is_end_stream() {
        return Ok(first);
    }
    // Into one buffer, of the right size where that is known: collecting pieces and putting them together would take twice
    // the memory.
    let left = body.size_hint().exact().map_or(0, |left| usize::try_from(left).unwrap_or(0));
    let mut whole = BytesMut::with_capacity(first.len() + left);
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(frame) = body.frame().await.transpose().map_err(unread)? {
        whole.extend_from_slice(&frame.into_data().unwrap_or_default());
        // Copying what comes as fast as it is read would keep this thread for the whole body.
        tokio::task::yield_now().await;
    }
    Ok(whole.freeze())
}

pub fn unread(error: axum::Error) -> Problem {
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        if let Some(Refused(problem)) = error.downcast_ref() {
            return problem.clone();
        }
        if error.is::<BodyTimeout>() {
            return Problem::new(Code::Timeout, "the body stopped arriving, or came too slowly").at("body");
        }
        cause = error.source();
    }
    Problem::new(Code::BadRequest, "the body ended early or could not be read").at("body")
}

/// An empty body counts as `{}`. A large one is read aside, in its namespace's turn; only then is the namespace asked for.
pub async fn parse<T: DeserializeOwned + Send + 'static>(
    app: &App,
    namespace: impl FnOnce() -> Namespace,
    bytes: Bytes,
) -> Result<T> {
    if bytes.len() <= LARGE {
        return parse_here(&bytes);
    }
    app.aside.run(&namespace(), move || parse_here(&bytes)).await?
}

fn parse_here<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    check_depth(bytes)?;
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes).map(|Object(body)| body).map_err(|error| {
        let problem = Problem::new(Code::BadRequest, format!("the body is not what this call takes: {error}"));
        problem.at(format!("body, line {} column {}", error.line(), error.column()))
    })
}

/// Whether a content type says that it is JSON.
pub fn is_json(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or("").split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Counts brackets outside strings: payloads are kept as text, so nothing else would look how deep they go.
pub fn check_depth(bytes: &[u8]) -> Result<()> {
    // Most bodies have not even so many brackets.
    if bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= DEPTH_MAX {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    let why = format!("JSON may be nested {DEPTH_MAX} levels deep, not deeper");
                    return Err(Problem::new(Code::BadRequest, why).at("body"));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// The query string, with a clear error for names it does not know.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        let query = query.map_err(|error| Problem::new(Code::BadRequest, error.body_text()).at("query"))?;
        Ok(Self(query.0))
    }
}

/// The query for surfaces that read it name by name. Names may repeat.
pub struct Params(pub Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(parts.uri.query().unwrap_or_default()))
    }
}

impl Params {
    pub fn read(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The last of several of a name counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All of a name, in their order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// False if absent.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::new(Code::BadRequest, format!("{name} must be true or false, not {other:?}"))),
        }
    }

    pub fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>> {
        self.get(name).map(|text| number(name, text, least, most)).transpose()
    }

    pub fn time(&self, name: &'static str) -> Result<Option<Timestamp>> {
        self.get(name).map(|text| wire_time::parse(name, text)).transpose()
    }
}

/// A number of a query, within its bounds.
pub fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    let why = || format!("{name} must be a number from {least} to {most}, not {text:?}");
    number.ok_or_else(|| Problem::new(Code::BadRequest, why()))
}

path::extractor!(Problem, |why, _| Problem::new(Code::BadRequest, why).at("path"));

/// A JSON answer with its status.
pub struct Answer<T>(pub StatusCode, pub T);

/// Most answers: 200 and JSON.
pub fn ok<T>(body: T) -> Answer<T> {
    Answer(StatusCode::OK, body)
}

pub fn created<T>(body: T) -> Answer<T> {
    Answer(StatusCode::CREATED, body)
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.1) {
            Ok(body) => {
                let mut response = Response::new(Body::from(body));
                *response.status_mut() = self.0;
                // Room for what every answer gets on its way out.
                response.headers_mut().reserve(6);
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            Err(error) => {
                Problem::new(Code::Internal, format!("the answer cannot be written: {error}")).into_response()
            }
        }
    }
}
