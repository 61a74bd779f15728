//! What every request passes before its handler: under which name it came, from which page, who calls, whether they may,
//! how much they send; and what every answer gets on its way out.

use crate::{
    app::App,
    auth::{Caller, REMEMBERED, not_valid},
    content,
    last_token::{self, LastToken, TokenHash},
    metrics::Meter,
    origin,
    prefix::Prefixed,
    problem::{Code, Problem, Result},
    read_permits::ReadPermit,
    request_id::RequestId,
    room::{self, Growing, Room},
    route::{Access, BODY_MAX, Identify, Nameless, Refuse, Route, Rules, Run, changes_state},
    session,
    spoken::Voice,
};
use axum::{
    body::Body,
    extract::{FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use hyper::body::Body as _;
use std::{borrow::Cow, pin::pin, sync::Arc, time::Instant};
use tokio::time::timeout;
use windlass_core::Namespace;

/// What the guard of one route knows about it.
struct RouteFacts {
    app: App,
    access: Access,
    rules: Rules,
    identify: Option<Identify>,
    /// Callers may come with the cookie of a page.
    cookie: bool,
    /// The one the whole surface is about.
    namespace: Option<Namespace>,
    body_max: usize,
    changes: bool,
    asks_origin: bool,
    meter: Meter,
    voice: Arc<Voice>,
}

/// A route behind its guard.
pub struct Guarded {
    facts: RouteFacts,
    run: Run,
    behind: bool,
}

impl Guarded {
    pub fn rules(&self) -> &Rules {
        &self.facts.rules
    }

    pub fn new(app: &App, route: &Route) -> Self {
        let rules = route.surface.rules;
        let facts = RouteFacts {
            app: app.clone(),
            access: route.access,
            rules,
            identify: route.identify.clone(),
            cookie: route.surface.is_native(),
            namespace: rules.namespace.map(|name| Namespace::new(name).expect("the table has legal names")),
            body_max: body_max(app, route),
            changes: changes_state(&route.method),
            asks_origin: route.asks_origin,
            voice: app.voices.of(route.surface.name, rules.namespace),
            meter: app.metrics.meter(route.surface.name, method_name(&route.method), route.path),
        };
        Self { facts, run: route.run.clone(), behind: route.behind }
    }

    pub async fn answer(&self, mut request: Request) -> Response {
        let (facts, began) = (&self.facts, Instant::now());
        let id = RequestId::of(request.headers());
        let origin = request.headers().get(header::ORIGIN).cloned();
        let response = match admit(facts, &mut request).await {
            // What the body takes in memory is free when the answer is made.
            Ok(_held) => {
                let caller = request.extensions().get::<Caller>().cloned();
                let work = (self.run)(request, facts.app.acting_for(caller.as_ref()));
                let work = async { if self.behind { facts.app.behind.run(work).await } else { work.await } };
                match caller.filter(|_| !facts.changes) {
                    Some(caller) => {
                        let response = while_allowed(&facts.app, &caller, work).await;
                        let held = response.and_then(|response| hold(facts, &caller.root, response));
                        held.unwrap_or_else(Problem::into_response)
                    }
                    None => work.await,
                }
            }
            Err(problem) => problem.into_response(),
        };
        finish(&facts.app, &facts.meter, facts.rules.refuse, began, id, origin.as_ref(), response)
    }
}

/// An answer to a question that took a while: a job that ended, a line that came. A caller whose access has ended meanwhile is not told.
async fn while_allowed(app: &App, caller: &Caller, work: impl Future<Output = Response>) -> Result<Response> {
    if caller.credential.is_none() {
        return Ok(work.await);
    }
    let (changes, mut work) = (app.auth.changes(), pin!(work));
    if let Ok(response) = timeout(REMEMBERED, &mut work).await {
        return if app.auth.changes() == changes { Ok(response) } else { still(app, caller).await.map(|()| response) };
    }
    let permit = app.streams.watch(app, caller);
    still(app, caller).await?;
    tokio::select! {
        response = work => Ok(response),
        () = permit.ended.cancelled() => Err(not_any_more()),
    }
}

async fn still(app: &App, caller: &Caller) -> Result<()> {
    if app.auth.still_holds(caller).await? { Ok(()) } else { Err(not_any_more()) }
}

fn not_any_more() -> Problem {
    let why = "this access was ended or changed while the request waited; send it again, or sign in again";
    Problem::new(Code::Unauthorized, why)
}

/// A route that asks for no room of its own has the ordinary one; none has less than that if it asks for more.
fn body_max(app: &App, route: &Route) -> usize {
    let ordinary = app.options.body_max;
    if route.body_max == BODY_MAX { ordinary } else { route.body_max.max(ordinary) }
}

/// For what no route answers. Nobody has to say who they are to hear that there is nothing.
pub fn outside(
    app: &App,
    meter: &Meter,
    refuse: Refuse,
    request: &Request,
    answer: impl FnOnce(&Request) -> Response,
) -> Response {
    let began = Instant::now();
    let id = RequestId::of(request.headers());
    let origin = request.headers().get(header::ORIGIN).cloned();
    let response = match origin::check_host(&app.options.hosts, request) {
        Ok(()) => answer(request),
        Err(problem) => problem.into_response(),
    };
    finish(app, meter, refuse, began, id, origin.as_ref(), response)
}

/// One of a few words, whatever a caller sends.
pub fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}

/// What a request holds until it is answered.
type Held = (Option<Room>, Option<ReadPermit>);

async fn admit(facts: &RouteFacts, request: &mut Request) -> Result<Held> {
    origin::check_host(&facts.app.options.hosts, request)?;
    if facts.asks_origin {
        origin::check_origin(&facts.app.options.origins, request)?;
    }
    let caller = match (who(facts, request).await?, facts.access) {
        (caller, Access::Open) => caller,
        (Some(caller), access) => {
            if facts.rules.is_unknown(caller.role, access) {
                return Err(not_valid());
            }
            if !caller.may(access) {
                let why = format!("the role {:?} may not do this", caller.role).to_lowercase();
                return Err(Problem::new(Code::Forbidden, why));
            }
            facts.namespace.as_ref().map_or(Ok(()), |namespace| caller.check_namespace(namespace))?;
            Some(caller)
        }
        (None, access) => Some(anonymous(facts, access, request)?),
    };
    facts.voice.heard(caller.as_ref().map(|caller| &caller.name));
    let room = limit(facts, caller.as_ref(), request)?;
    let Some(caller) = caller else { return Ok((room, None)) };
    let permit = if facts.changes { None } else { Some(facts.app.read_permits.enter(&caller.root).await) };
    permit.clone().map(|permit| request.extensions_mut().insert(permit));
    request.extensions_mut().insert::<Caller>(caller);
    Ok((room, permit))
}

/// Whom the request says it comes from, if it does. Where anybody may call, nobody is turned away for a token that has run out.
async fn who(facts: &RouteFacts, request: &mut Request) -> Result<Option<Caller>> {
    let in_path = path_token(facts, request)?;
    if facts.access == Access::Open {
        return Ok(None);
    }
    if let Some(identify) = &facts.identify {
        return identify(&facts.app, request).await;
    }
    let sent = token(request.headers(), facts.rules.basic).or(in_path.as_deref().map(Cow::Borrowed));
    let sent = match sent {
        None if facts.cookie => session::token(request, facts.changes)?.map(Cow::Borrowed),
        sent => sent,
    };
    match sent {
        Some(token) => facts.app.auth.caller_by(hash(request, &token)).await.map(Some),
        None => Ok(None),
    }
}

/// What a token is looked up by.
fn hash(request: &Request, token: &str) -> TokenHash {
    request.extensions().get::<LastToken>().map_or_else(|| last_token::hash(token), |last| last.hash(token))
}

/// Where a surface's clients know no tokens, those whom the setting admits may do without, within the surface's namespace and
/// as far as its rules say.
fn anonymous(facts: &RouteFacts, access: Access, request: &Request) -> Result<Caller> {
    let needed = || Problem::new(Code::Unauthorized, "send a token");
    let nameless = facts.rules.nameless;
    let namespace = facts.namespace.as_ref().filter(|_| nameless != Nameless::Nothing).ok_or_else(needed)?;
    let caller = Caller::nameless(namespace, nameless);
    let admitted = caller.may(access)
        && !(facts.changes && nameless == Nameless::Reads)
        && facts.app.options.without_token.admits(request);
    admitted.then_some(caller).ok_or_else(needed)
}

/// Where a surface's clients can send no header at all. Elsewhere such a path leads nowhere.
fn path_token(facts: &RouteFacts, request: &Request) -> Result<Option<Arc<str>>> {
    match request.extensions().get::<Prefixed>() {
        Some(_) if !facts.rules.in_path => Err(Problem::new(Code::NotFound, "there is nothing at this path")),
        prefixed => Ok(prefixed.and_then(|prefixed| prefixed.0.clone())),
    }
}

/// `Authorization: Bearer TOKEN`; Basic with the token as password only where a surface's clients can do nothing else.
pub fn token(headers: &HeaderMap, basic: bool) -> Option<Cow<'_, str>> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().into());
    }
    if basic && scheme.eq_ignore_ascii_case("basic") {
        let plain = String::from_utf8(BASE64_STANDARD.decode(rest.trim()).ok()?).ok()?;
        return plain.split_once(':').map(|(_, password)| password.to_owned().into());
    }
    None
}

/// A body that says it is too large is refused before it is read; one that does not say is cut off. Either has to find room
/// in memory unless it is small. A file that is uploaded passes through, and needs only what it passes through.
fn limit(facts: &RouteFacts, caller: Option<&Caller>, request: &mut Request) -> Result<Option<Room>> {
    let body_max = facts.body_max;
    let told = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|told| told > body_max as u64) {
        return Err(too_large(body_max));
    }
    let passes = body_max >= content::ROUTE_MAX;
    let held = match told {
        told if passes => told.unwrap_or(u64::MAX).min(content::upload_buffers(&facts.app)),
        told => told.unwrap_or(0),
    };
    if held <= room::FREE && told.is_some() || request.body().is_end_stream() {
        return Ok(None);
    }
    let room = facts.app.rooms.take(&share(caller), held)?;
    // What told its length is held to it by the connection.
    if told.is_none() && !passes {
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(Growing::new(body, room.clone(), body_max, too_large));
    }
    Ok(Some(room))
}

/// To whose share of the memory something counts.
fn share(caller: Option<&Caller>) -> Arc<str> {
    caller.map_or_else(|| Arc::from("callers without a token"), |caller| caller.root.clone())
}

/// An answer that is large takes room until its reader has it. Only answers to questions: what was done is told in any case.
fn hold(facts: &RouteFacts, share: &Arc<str>, response: Response) -> Result<Response> {
    match response.body().size_hint().exact() {
        Some(bytes) if bytes > room::ANSWER_FREE => {
            let room = facts.app.rooms.take(share, bytes)?;
            Ok(response.map(|body| Body::new(room::Held::new(body, room))))
        }
        _ => Ok(response),
    }
}

pub fn too_large(body_max: usize) -> Problem {
    Problem::new(Code::TooLarge, format!("the body may have at most {body_max} bytes")).at("body")
}

/// Whoever calls, in whatever namespace. Nobody may have to say who they are where a route is open.
impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        caller(parts)
    }
}

pub fn caller(request: &Parts) -> Result<Caller> {
    request.extensions.get::<Caller>().cloned().ok_or_else(not_valid)
}

/// Every answer: its id, what browsers must not do with it, and a line in the log.
fn finish(
    app: &App,
    meter: &Meter,
    refuse: Refuse,
    began: Instant,
    id: RequestId,
    origin: Option<&HeaderValue>,
    mut response: Response,
) -> Response {
    if let Some(mut problem) = response.extensions_mut().remove::<Problem>() {
        problem.0.request_id = Some(id.text().to_owned());
        if problem.0.status >= 500 {
            tracing::warn!(
                request_id = id.text(),
                route = meter.route,
                status = problem.0.status,
                "{}",
                problem.0.detail
            );
        }
        response.headers_mut().remove(header::CONTENT_LENGTH);
        refuse(&problem, &mut response);
    }
    let (status, took) = (response.status().as_u16(), began.elapsed());
    meter.count(status, took);
    tracing::debug!(
        target: "windlass_server::access",
        method = meter.method,
        route = meter.route,
        status,
        micros = took.as_micros() as u64,
        request_id = id.text(),
        "answered"
    );
    let headers = response.headers_mut();
    headers.insert(RequestId::HEADER, id.into_value());
    origin::harden(headers);
    if let Some(origin) = origin {
        origin::share(&app.options.origins, origin, headers);
    }
    response
}
