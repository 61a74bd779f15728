//! Runs commands: queue, batch, load, decide, write, commit, wake. The only way to change a job.
//!
//! ```text
//! callers ──commands──▶ batcher ──▶ Store::run(batch): one transaction
//!    ◀──replies after commit── │
//!                              └─▶ after the commit: new work to waiting claimers; after the sync: promises, events to the feed
//! ```
//! [`Engine`] is what everything above talks to; [`store::Store`] is all it knows of what lies below.
#![forbid(unsafe_code)]

mod after;
mod alarm;
pub mod aside;
mod batcher;
pub mod bulk;
mod bulletin;
mod claims;
pub mod clock;
mod crowd;
mod delivery;
mod engine;
mod error;
mod feed;
mod gather;
mod grace;
mod heavy;
pub mod history;
pub mod ids;
mod intake;
mod joining;
mod lines;
pub mod memory;
mod notices;
mod pieces;
mod queue;
mod quota;
pub mod records;
mod request;
mod reserve;
mod ring;
mod settings;
mod sharing;
mod stalls;
mod start;
pub mod store;
mod sweeper;
mod syncer;
pub mod tally;
#[cfg(feature = "testing")]
pub mod testing;
mod waiters;

pub use after::Counts;
pub use bulk::Bulk;
pub use engine::Engine;
pub use error::Error;
pub use feed::{FeedItem, Subscription};
pub use settings::{Quotas, Settings};
pub use store::{Store, StoreError};
pub use waiters::Waiter;
