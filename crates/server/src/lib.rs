//! Windlass over HTTP: the native API and, beside it, every dialect at its original paths, on one engine.
//!
//! [`app::App`] is what handlers share, [`route::Route`] is one row of the one table that says for every method and path who
//! may call it, how large its body may be, what it answers and which handler does it; [`Service`] turns the table into
//! a service; [`dialect::Dialect`] is what a dialect has to say for itself. The store is chosen outside: nothing in here knows which one it is.
#![forbid(unsafe_code)]

pub mod admins;
pub mod app;
pub mod artifact_place;
pub mod artifacts;
pub mod aside;
pub mod ask;
pub mod auth;
pub mod behind;
pub mod bootstrap;
pub mod calendar;
pub mod config;
pub mod content;
pub mod convert;
pub mod definition;
mod definition_faults;
pub mod definitions;
mod derived;
pub mod described;
pub mod dialect;
pub mod dialects;
pub mod duties;
pub mod flows;
pub mod folders;
pub mod guard;
mod health;
pub mod history;
mod host;
pub mod last_token;
pub mod listener;
mod log_view;
pub mod logs;
pub mod metrics;
pub mod native;
mod once;
pub mod origin;
pub mod owners;
pub mod path;
pub mod peer;
pub mod planned;
pub mod prefix;
pub mod problem;
pub mod product;
pub mod quota;
pub mod read_permits;
pub mod records;
pub mod request_id;
pub mod room;
pub mod route;
pub mod running;
pub mod scheduler;
pub mod schema;
pub mod secret;
pub mod service;
pub mod session;
pub mod spoken;
pub mod sse;
pub mod streams;
pub mod trace;
mod trace_export;
pub mod ui;
pub mod upload;
mod versions;
pub mod void_tokens;
pub mod websocket;
mod wire_state;
pub mod wire_time;
pub mod without_token;

pub use app::{App, Options};
pub use service::Service;

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            proxies: Vec::new(),
            store: "embedded",
            artifacts: None,
            artifact_bytes_max: content::BYTES_MAX,
            files: Default::default(),
            without_token: Default::default(),
            body_max: route::BODY_MAX,
            bodies: Default::default(),
            traces: Default::default(),
            dialects: dialects::ALL.to_vec(),
            with_files: dialects::namespaces(),
            values: Default::default(),
        }
    }
}

/// Every route of every surface, as defaults have it.
pub fn routes() -> Vec<route::Route> {
    let dialects = dialect::Dialects::new(dialects::ALL, &Default::default());
    [native::routes(), dialects.routes()].concat()
}
