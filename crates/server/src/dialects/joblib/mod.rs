//! The zndraw-joblib protocol: extensions that Python processes serve, tasks in rooms, providers, users with tokens of their own,
//! over REST and Socket.IO.
//!
//! Served so that its unmodified `JobManager` needs nothing but the address and a token.

pub mod body;
pub mod error;
pub mod fault;
pub mod fields;
mod jobs;
mod listing;
mod local;
pub mod names;
pub mod prefer;
pub mod providers;
mod registration;
pub mod schema;
pub mod settings;
pub mod show;
pub mod sockets;
pub mod tasks;
pub mod users;
pub mod who;
mod workers;

use crate::{
    config::values::Values,
    derived,
    dialect::{self, Dialect, Mount, Served, With},
    route::{Nameless, Route, Rules, Surface},
};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::Namespace;

pub use settings::Settings;
pub use sockets::Sockets;
pub use users::Users;

const NAMESPACE: &str = "joblib";

/// All of this dialect's jobs, workers and records live here.
pub fn namespace() -> Namespace {
    Namespace::new(NAMESPACE).expect("a legal name")
}

/// An id that follows from a name.
fn derived(kind: &str, name: &str) -> Uuid {
    derived::id(&format!("windlass joblib {kind}\n{name}"))
}

pub const DIALECT: &Dialect = &Dialect {
    surface: Surface {
        name: "joblib",
        rules: Rules {
            nameless: Nameless::Reads,
            namespace: Some(NAMESPACE),
            shows_way: true,
            refuse: error::refuse,
            ..Rules::OURS
        },
    },
    prefixes: &["/v1/", "/auth/", "/users/", "/admin/", "/socket.io"],
    respell: dialect::one_spelling,
    settings: settings::TABLE,
    foreign: settings::foreign,
    adjusted: settings::adjusted,
    start_worker: None,
    serve,
};

fn serve(read: &Values) -> Served {
    let own =
        Arc::new(Own { settings: Settings::read(read), users: Users::default(), sockets: Arc::new(Sockets::new()) });
    Served::new(routes(&Mount(own.clone()))).identifies(users::token::identify(&own)).starts(move |app| {
        own.sockets.run_here();
        users::start::run(With::new(app, own.clone()))
    })
}

/// What its handlers get.
pub type Joblib = With<Own>;

/// What an operator chose, and what handlers share.
pub struct Own {
    pub settings: Settings,
    pub users: Users,
    pub sockets: Arc<Sockets>,
}

fn routes(on: &Mount<Own>) -> Vec<Route> {
    let people = [users::routes(on), providers::routes(on), sockets::routes(on)].concat();
    [people, jobs::routes(on), tasks::routes(on), workers::routes(on)].concat()
}
