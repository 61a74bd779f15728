//! One row per method and path: who may call it, how much it may send, what it says, who does it.
//!
//! Everything that must hold for every route (roles, limits, the API's description, the tests that walk over all of them)
//! is read from this one table, so that a route cannot be forgotten anywhere.

use crate::{
    app::App,
    auth::Caller,
    described::{Described, Schema},
    problem::{Code, Problem, Result},
};
use axum::{extract::Request, handler::Handler, response::Response};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method};
use std::sync::Arc;
use windlass_core::principal::Role;

/// A body larger than this needs a row that says so.
pub const BODY_MAX: usize = 2 << 20;

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody: health checks and the like, which tell nothing.
    Open,
    Viewer,
    Editor,
    Admin,
    /// Workers only: nobody else's token passes for a worker's, not even an admin's.
    Worker,
    /// Workers, viewers and up: reads that a worker needs for its work.
    Any,
    /// Workers, editors and up: what both people and workers write.
    EditorOrWorker,
}

/// An API that is served: our own or a dialect's.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// One word, as metrics have it.
    pub name: &'static str,
    pub rules: Rules,
}

/// Where the native API lies, but for the pages that describe it.
pub const ROOT: &str = "/api/v1";

pub static NATIVE: Surface = Surface { name: "native", rules: Rules::OURS };

impl Surface {
    pub fn is_native(&self) -> bool {
        self.name == NATIVE.name
    }
}

/// Writes a problem that was met outside a handler the way a surface does: the body, and whatever else of the answer differs.
pub type Refuse = fn(&Problem, &mut Response);

/// Finds out who calls, for surfaces with a way of their own to say it. None: the caller did not say.
pub type Identify = Arc<dyn Fn(&App, &Request) -> BoxFuture<'static, Result<Option<Caller>>> + Send + Sync>;

/// What callers may do who do not say who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nameless {
    Nothing,
    /// What a viewer may.
    Reads,
    /// What an editor and a worker may.
    Works,
}

/// How callers of a surface may say who they are, beside `Authorization: Bearer`, and how it says no.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// HTTP Basic with the token as password, for clients that can send nothing else. Never asked for.
    pub basic: bool,
    /// `/~TOKEN` before the path, for clients that can send no header at all; and `//` at its start.
    pub in_path: bool,
    /// What those whom the setting `without_token` admits may do without a token. Only together with a namespace.
    pub nameless: Nameless,
    /// All of the surface is about this namespace, so whoever has no rights in it has none here. None: each call names one.
    pub namespace: Option<&'static str>,
    /// People's tokens are no tokens where workers call, and workers' none where people do: both are unknown there.
    pub kinds_apart: bool,
    /// Whoever adds a slash to one of its paths is shown the way to the path without it.
    pub shows_way: bool,
    /// Its paths match in any case, also where a name could stand ([`crate::dialect::Dialect::respell`]).
    pub any_case: bool,
    pub refuse: Refuse,
}

impl Rules {
    /// Those of the native API.
    pub const OURS: Rules = Rules {
        basic: false,
        in_path: false,
        nameless: Nameless::Nothing,
        namespace: None,
        kinds_apart: false,
        shows_way: false,
        any_case: false,
        refuse: problem_document,
    };

    /// Whether a caller of this role has no business on a route at all, as opposed to too few rights.
    pub fn is_unknown(&self, role: Role, access: Access) -> bool {
        let fits = match access {
            Access::Worker => role == Role::Worker,
            Access::Viewer | Access::Editor | Access::Admin => role != Role::Worker,
            Access::Open | Access::Any | Access::EditorOrWorker => true,
        };
        self.kinds_apart && !fits
    }
}

fn problem_document(problem: &Problem, response: &mut Response) {
    *response.body_mut() = problem.body();
}

pub fn changes_state(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub content: &'static str,
    pub schema: Option<Schema>,
}

/// A header that a handler reads. Read by the same value that describes it, so that none is read in secret.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub name: &'static str,
    pub says: &'static str,
    /// `string` or `integer`.
    pub kind: &'static str,
}

impl Header {
    pub const fn text(name: &'static str, says: &'static str) -> Self {
        Self { name, says, kind: "string" }
    }
    pub const fn number(name: &'static str, says: &'static str) -> Self {
        Self { name, says, kind: "integer" }
    }

    /// Its value, where it was sent. Something that is no text is refused, not overlooked.
    pub fn of<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a str>> {
        let text =
            |value: &'a HeaderValue| value.to_str().map_err(|_| Problem::invalid(self.name, "must be printable ASCII"));
        headers.get(self.name).map(text).transpose()
    }
}

/// What the API's description says about a route.
#[derive(Clone, Default)]
pub struct Doc {
    pub summary: &'static str,
    pub query: Option<Schema>,
    pub headers: Vec<Header>,
    pub body: Option<(&'static str, Option<Schema>)>,
    pub replies: Vec<Reply>,
    /// Codes of the problems it answers with, beside those that every route may.
    pub problems: Vec<Code>,
}

/// A handler with all that it takes from a request.
pub type Run = Arc<dyn Fn(Request, App) -> BoxFuture<'static, Response> + Send + Sync>;

/// A handler whose future is boxed already, as that of every function is: to box it again would be a second type for each.
pub trait Handle<T, S>: Handler<T, S, Future = BoxFuture<'static, Response>> {}

impl<T, S, H: Handler<T, S, Future = BoxFuture<'static, Response>>> Handle<T, S> for H {}

#[derive(Clone)]
pub struct Route {
    pub surface: &'static Surface,
    /// None: by token. A row's own goes before that of its surface.
    pub identify: Option<Identify>,
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub body_max: usize,
    /// Whether it is worked on by threads of its own, see [`crate::behind`].
    pub behind: bool,
    /// Whether a page of another site is turned away. Calls that change something always ask.
    pub asks_origin: bool,
    pub doc: Doc,
    pub run: Run,
}

impl Route {
    pub fn new<H, T>(method: Method, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handle<T, App>,
        T: 'static,
    {
        Self::of(method, path, access, Arc::new(move |request, app| handler.clone().call(request, app)))
    }

    /// With a handler whose state was given to it already.
    pub fn of(method: Method, path: &'static str, access: Access, run: Run) -> Self {
        let (surface, identify) = (&NATIVE, None);
        let behind = method == Method::GET && access != Access::Open;
        let (asks_origin, doc) = (changes_state(&method), Doc::default());
        Self { surface, identify, method, path, access, body_max: BODY_MAX, behind, asks_origin, doc, run }
    }

    pub fn get<H: Handle<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::GET, path, access, handler)
    }
    pub fn post<H: Handle<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::POST, path, access, handler)
    }
    pub fn put<H: Handle<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::PUT, path, access, handler)
    }
    pub fn delete<H: Handle<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::DELETE, path, access, handler)
    }

    /// Puts the route on a dialect's surface.
    pub fn on(mut self, surface: &'static Surface, identify: Option<&Identify>) -> Self {
        self.surface = surface;
        self.identify = self.identify.or_else(|| identify.cloned());
        self
    }
    /// Callers of this row say who they are in a way of its own.
    pub fn identified(mut self, identify: Identify) -> Self {
        self.identify = Some(identify);
        self
    }
    /// For a GET that opens more than an answer: browsers let any page make one.
    pub fn asks_origin(mut self) -> Self {
        self.asks_origin = true;
        self
    }
    pub fn says(mut self, summary: &'static str) -> Self {
        self.doc.summary = summary;
        self
    }
    pub fn query<T: Described>(mut self) -> Self {
        self.doc.query = Some(Schema::of::<T>());
        self
    }
    /// Says that the handler reads a header.
    pub fn reads(mut self, header: Header) -> Self {
        self.doc.headers.push(header);
        self
    }
    pub fn takes<T: Described>(mut self) -> Self {
        self.doc.body = Some(("application/json", Some(Schema::of::<T>())));
        self
    }
    /// A body that is no JSON.
    pub fn takes_bytes(mut self, content: &'static str) -> Self {
        self.doc.body = Some((content, None));
        self
    }
    pub fn answers<T: Described>(mut self, status: u16) -> Self {
        self.doc.replies.push(Reply { status, content: "application/json", schema: Some(Schema::of::<T>()) });
        self
    }
    /// An answer without a JSON body.
    pub fn answers_with(mut self, status: u16, content: &'static str) -> Self {
        self.doc.replies.push(Reply { status, content, schema: None });
        self
    }
    pub fn refuses(mut self, codes: &[Code]) -> Self {
        self.doc.problems.extend(codes);
        self
    }
    /// For a call that is no mere read and may take as much work as one.
    pub fn behind(mut self) -> Self {
        self.behind = true;
        self
    }
    pub fn body_max(mut self, bytes: usize) -> Self {
        self.body_max = bytes;
        self
    }
}
