//! What the command line asks a server to do, one file a noun.

pub mod about;
pub mod artifacts;
pub mod audit;
pub mod definitions;
pub mod events;
pub mod graph;
pub mod history;
pub mod item;
pub mod jobs;
pub mod logs;
pub mod options;
pub mod outcomes;
pub mod overview;
pub mod principals;
pub mod schedules;
pub mod shell;
pub mod show;
pub mod stats;
pub mod submit;
pub mod tokens;
pub mod wait;
pub mod workers;
pub mod workflow;

pub use crate::context::{Context, Done};
pub use crate::pages::{PAGE, all, some};
