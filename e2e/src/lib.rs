//! Starts the real programs and looks at them from outside, as a user would.
#![forbid(unsafe_code)]

mod cable;
pub mod crowd;
mod graph;
mod history;
mod joblib;
mod neops;
pub mod pace;
mod plain;
mod program;
mod small_disk;

pub use cable::Cable;
pub use graph::{GraphCalls, GraphWorker, job};
pub use history::{History, events_so_far, submit_until};
pub use joblib::{JoblibUser, JoblibWorker};
pub use neops::{BLOCKS as NEOPS_BLOCKS, NeopsWorker, NeopsWorld, neops_client};
pub use plain::Plain;
pub use program::{ADMIN, Server, Worker, knob, program};
pub use small_disk::SmallDisk;

/// For clients that use pydantic, which otherwise looks through all that is installed for plugins when it is imported.
const NO_PLUGINS: [(&str, &str); 1] = [("PYDANTIC_DISABLE_PLUGINS", "__all__")];
