//! One row per method and path: who may call it, how much it may send, what it says, who does it.
//!
//! Everything that must hold for every route (roles, limits, the API's description, the tests that walk over all of them)
//! is read from this one table, so that a route cannot be forgotten anywhere.

use crate::{app::App, problem::Problem};
use axum::{extract::Request, handler::Handler, response::Response};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method};
use schemars::{JsonSchema, Schema, SchemaGenerator};
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

/// Which errors a surface speaks, and whether it may be called without a token on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Native,
    WorkflowGraph,
    Silo,
}

/// How a surface writes what goes wrong before a handler is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A problem document.
    Problem,
    /// `error` and `message`.
    Silo,
}

/// How callers of a surface may say who they are, beside `Authorization: Bearer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// HTTP Basic with the token as password, for clients that can send nothing else. Never asked for.
    pub basic: bool,
    /// `/~TOKEN` before the path, for clients that can send no header at all; and `//` at its start.
    pub in_path: bool,
    /// Callers on this machine need no token. Only together with a namespace.
    pub anonymous: bool,
    /// All of the surface is about this namespace, so whoever has no rights in it has none here. None: each call names one.
    pub namespace: Option<&'static str>,
    /// People's tokens are no tokens where workers call, and workers' none where people do: both are unknown there.
    kinds_apart: bool,
    pub form: Form,
}

impl Rules {
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

impl Surface {
    pub const ALL: [Surface; 3] = [Surface::Native, Surface::WorkflowGraph, Surface::Silo];

    pub fn name(self) -> &'static str {
        match self {
            Surface::Native => "native",
            Surface::WorkflowGraph => "workflow_graph",
            Surface::Silo => "silo",
        }
    }

    pub fn rules(self) -> Rules {
        match self {
            Surface::Native => Rules {
                basic: false,
                in_path: false,
                anonymous: false,
                namespace: None,
                kinds_apart: false,
                form: Form::Problem,
            },
            // Its clients can send nothing but what an address holds: its worker http://worker:TOKEN@host:3000, its
            // TypeScript client http://host:3000/~TOKEN.
            Surface::WorkflowGraph => Rules {
                basic: true,
                in_path: true,
                anonymous: true,
                namespace: Some("wfg"),
                kinds_apart: false,
                form: Form::Problem,
            },
            Surface::Silo => Rules {
                basic: false,
                in_path: false,
                anonymous: false,
                namespace: Some("silo"),
                kinds_apart: true,
                form: Form::Silo,
            },
        }
    }
}

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub content: &'static str,
    pub schema: Option<MakeSchema>,
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
    pub fn of<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a str>, Problem> {
        let text =
            |value: &'a HeaderValue| value.to_str().map_err(|_| Problem::invalid(self.name, "must be printable ASCII"));
        headers.get(self.name).map(text).transpose()
    }
}

/// What the API's description says about a route.
#[derive(Clone, Default)]
pub struct Doc {
    pub summary: &'static str,
    pub query: Option<MakeSchema>,
    pub headers: Vec<Header>,
    pub body: Option<(&'static str, Option<MakeSchema>)>,
    pub replies: Vec<Reply>,
    /// Codes of the problems it answers with, beside those that every route may.
    pub problems: Vec<&'static str>,
}

/// A handler with all that it takes from a request.
pub type Run = Arc<dyn Fn(Request, App) -> BoxFuture<'static, Response> + Send + Sync>;

#[derive(Clone)]
pub struct Route {
    pub surface: Surface,
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub body_max: usize,
    pub doc: Doc,
    pub run: Run,
}

impl Route {
    pub fn new<H, T>(method: Method, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        Self {
            surface: Surface::Native,
            method,
            path,
            access,
            body_max: BODY_MAX,
            doc: Doc::default(),
            run: Arc::new(move |request, app| Box::pin(handler.clone().call(request, app))),
        }
    }

    pub fn get<H: Handler<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::GET, path, access, handler)
    }
    pub fn post<H: Handler<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::POST, path, access, handler)
    }
    pub fn put<H: Handler<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::PUT, path, access, handler)
    }
    pub fn delete<H: Handler<T, App>, T: 'static>(path: &'static str, access: Access, handler: H) -> Self {
        Self::new(Method::DELETE, path, access, handler)
    }

    /// Puts the route on a dialect's surface.
    pub fn on(mut self, surface: Surface) -> Self {
        self.surface = surface;
        self
    }
    pub fn says(mut self, summary: &'static str) -> Self {
        self.doc.summary = summary;
        self
    }
    pub fn query<T: JsonSchema>(mut self) -> Self {
        self.doc.query = Some(|generator| generator.subschema_for::<T>());
        self
    }
    /// Says that the handler reads a header.
    pub fn reads(mut self, header: Header) -> Self {
        self.doc.headers.push(header);
        self
    }
    pub fn takes<T: JsonSchema>(mut self) -> Self {
        self.doc.body = Some(("application/json", Some(|generator| generator.subschema_for::<T>())));
        self
    }
    /// A body that is no JSON.
    pub fn takes_bytes(mut self, content: &'static str) -> Self {
        self.doc.body = Some((content, None));
        self
    }
    pub fn answers<T: JsonSchema>(mut self, status: u16) -> Self {
        let schema: MakeSchema = |generator| generator.subschema_for::<T>();
        self.doc.replies.push(Reply { status, content: "application/json", schema: Some(schema) });
        self
    }
    /// An answer without a JSON body.
    pub fn answers_with(mut self, status: u16, content: &'static str) -> Self {
        self.doc.replies.push(Reply { status, content, schema: None });
        self
    }
    pub fn refuses(mut self, codes: &[&'static str]) -> Self {
        self.doc.problems.extend(codes);
        self
    }
    pub fn body_max(mut self, bytes: usize) -> Self {
        self.body_max = bytes;
        self
    }
}
