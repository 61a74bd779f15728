//! The service made from the routes: one table says which method of which path leads to which handler.
//!
//! Names in paths are the business of each route alone. In the table they are numbered, so that surfaces whose paths begin alike
//! do not have to call alike what stands in them.

use crate::{
    app::App,
    guard::{self, Guarded},
    metrics::Meter,
    native, origin,
    path::Named,
    prefix,
    problem::{Code, Problem},
    route::{NATIVE, ROOT, Refuse, Route},
    ui,
};
use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, Uri, header, uri::PathAndQuery};
use hyper::body::Body as _;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

/// Answers requests: each route behind its guard, everything else a clear error.
#[derive(Clone)]
pub struct Service(Arc<Table>);

struct Table {
    app: App,
    paths: matchit::Router<Methods>,
    nowhere: Meter,
}

/// What a path answers.
struct Methods {
    rows: Vec<Row>,
    other: OtherMethod,
    /// A name here may be another path in another spelling.
    any_case: bool,
}

struct Row {
    method: Method,
    /// Of the parts that matched, in order.
    names: Arc<[&'static str]>,
    guarded: Guarded,
}

enum Found<'a> {
    Route(&'a Guarded),
    OtherMethod(&'a OtherMethod),
}

/// All that the app serves.
pub fn routes(app: &App) -> Vec<Route> {
    [native::routes(), app.dialects.routes()].concat()
}

/// In whose words it is said that there is nothing at a path.
fn refuse_at(app: &App, path: &str) -> Refuse {
    let below = path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let ours = NATIVE.rules.refuse;
    if below { ours } else { app.dialects.refuse_at(path).unwrap_or(ours) }
}

impl Service {
    /// All that the app serves.
    pub fn new(app: App) -> Self {
        let routes = routes(&app);
        Self::of(app, &routes)
    }

    /// Only these routes. Panics if two of them answer the same call: a test mounts every dialect beside all others.
    pub fn of(app: App, routes: &[Route]) -> Self {
        let mut by_pattern: BTreeMap<String, Vec<&Route>> = BTreeMap::new();
        for route in routes {
            by_pattern.entry(pattern(route.path)).or_default().push(route);
        }
        let mut paths = matchit::Router::new();
        for (pattern, routes) in by_pattern {
            let methods = Methods::new(&app, &routes);
            paths.insert(pattern, methods).unwrap_or_else(|error| panic!("{}: {error}", routes[0].path));
        }
        let nowhere = app.metrics.meter(NATIVE.name, "other", "none");
        Self(Arc::new(Table { app, paths, nowhere }))
    }

    pub async fn answer(&self, mut request: Request) -> Response {
        let table = &*self.0;
        let wants_body = request.method() != Method::HEAD;
        if let Some(way) = ui::way(&request) {
            return guard::outside(&table.app, &table.nowhere, NATIVE.rules.refuse, &request, |_| way);
        }
        let response = match table.find(&mut request).or_else(|| table.respelled(&mut request)) {
            Some(Found::Route(guarded)) => guarded.answer(request).await,
            Some(Found::OtherMethod(other)) => other.answer(&table.app, &request),
            None => match table.without_slash(&request) {
                Some(path) => table.show_way(&request, &path),
                None => table.nowhere(&request),
            },
        };
        if wants_body { response } else { head(response) }
    }
}

impl Table {
    /// The names in the path go with the request.
    fn find(&self, request: &mut Request) -> Option<Found<'_>> {
        let mut found = self.paths.at(request.uri().path()).ok()?;
        if found.value.any_case {
            drop(found);
            self.respell(request);
            found = self.paths.at(request.uri().path()).ok()?;
        }
        let Some(row) = found.value.row(request.method()) else {
            return Some(Found::OtherMethod(&found.value.other));
        };
        if !row.names.is_empty() {
            let named = Named::new(row.names.clone(), found.params.iter().map(|(_, part)| part));
            request.extensions_mut().insert(named);
        }
        Some(Found::Route(&row.guarded))
    }

    /// Looked for only where nothing else fits, so that everybody else pays nothing for it.
    fn respelled(&self, request: &mut Request) -> Option<Found<'_>> {
        let taken = prefix::take(request) || self.respell(request);
        if taken { self.find(request) } else { None }
    }

    fn respell(&self, request: &mut Request) -> bool {
        let Some(path) = self.app.dialects.respell(request.uri().path()) else { return false };
        let whole = request.uri().query().map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = PathAndQuery::try_from(whole).ok();
        let Ok(uri) = Uri::from_parts(parts) else { return false };
        *request.uri_mut() = uri;
        true
    }

    /// The path that was meant, on surfaces that show the way to it.
    fn without_slash(&self, request: &Request) -> Option<String> {
        let path = request.uri().path().strip_suffix('/')?;
        let found = self.paths.at(path).ok()?.value;
        let shows = found.rows.iter().any(|row| row.guarded.rules().shows_way);
        let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
        // Two slashes at the start would name a host.
        (shows && !path.starts_with("//")).then(|| format!("{path}{query}"))
    }

    fn show_way(&self, request: &Request, path: &str) -> Response {
        let refuse = refuse_at(&self.app, request.uri().path());
        guard::outside(&self.app, &self.nowhere, refuse, request, |_| {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, path)]).into_response()
        })
    }

    fn nowhere(&self, request: &Request) -> Response {
        let refuse = refuse_at(&self.app, request.uri().path());
        guard::outside(&self.app, &self.nowhere, refuse, request, |request| {
            let why = format!("there is nothing at {}; /docs lists what there is", request.uri().path());
            Problem::new(Code::NotFound, why).into_response()
        })
    }
}

impl Methods {
    fn new(app: &App, routes: &[&Route]) -> Self {
        let mut rows: Vec<Row> = Vec::with_capacity(routes.len());
        for route in routes {
            let twice = rows.iter().any(|row| row.method == route.method);
            assert!(!twice, "{} {} is there twice; {} is one of them", route.method, route.path, route.surface.name);
            let names = names(route.path).into();
            rows.push(Row { method: route.method.clone(), names, guarded: Guarded::new(app, route) });
        }
        let methods: Vec<Method> = rows.iter().map(|row| row.method.clone()).collect();
        let any_case = routes.iter().any(|route| route.surface.rules.any_case && !names(route.path).is_empty());
        Self { rows, other: OtherMethod::new(app, routes[0].path, &methods), any_case }
    }

    /// Whoever wants a head gets that of the whole answer.
    fn row(&self, method: &Method) -> Option<&Row> {
        let row = |wanted: &Method| self.rows.iter().find(|row| row.method == *wanted);
        row(method).or_else(|| if method == Method::HEAD { row(&Method::GET) } else { None })
    }
}

fn is_name(part: &str) -> bool {
    part.starts_with('{')
}

pub fn names(path: &'static str) -> Vec<&'static str> {
    path.split('/').filter(|part| is_name(part)).map(|part| part.trim_matches(['{', '*', '}'])).collect()
}

/// The path with numbers for its names.
pub fn pattern(path: &str) -> String {
    let mut at = 0;
    let part = |part: &str| {
        if !is_name(part) {
            return part.to_owned();
        }
        at += 1;
        if part.starts_with("{*") { format!("{{*p{at}}}") } else { format!("{{p{at}}}") }
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The answer without its body, and with its length.
fn head(mut response: Response) -> Response {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
    response
}

impl tower::Service<Request> for Service {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

/// What a path says to methods it does not have: which ones it has; and to browsers, whether a page may use them.
struct OtherMethod {
    path: &'static str,
    allow: HeaderValue,
    meter: Meter,
}

impl OtherMethod {
    fn new(app: &App, path: &'static str, methods: &[Method]) -> Self {
        Self { path, allow: allow(methods), meter: app.metrics.meter(NATIVE.name, "other", path) }
    }

    fn answer(&self, app: &App, request: &Request) -> Response {
        let mut response =
            guard::outside(app, &self.meter, refuse_at(app, self.path), request, |request| match *request.method() {
                Method::OPTIONS => origin::preflight(&app.options.origins, &self.allow, request),
                ref other => {
                    let why = format!("{} has no {other}", self.path);
                    let mut response = Problem::new(Code::MethodNotAllowed, why).into_response();
                    response.headers_mut().insert(header::ALLOW, self.allow.clone());
                    response
                }
            });
        response.headers_mut().entry(header::ALLOW).or_insert_with(|| self.allow.clone());
        response
    }
}

fn allow(methods: &[Method]) -> HeaderValue {
    let mut names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    names.sort_unstable();
    names.join(", ").parse().expect("method names are legal in a header")
}
