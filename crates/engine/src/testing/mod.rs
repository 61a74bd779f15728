//! One suite for every store: whatever keeps the rows, the same texts, the same walks and the same questions must come
//! to the same answers. A store is done when this passes.
//!
//! Everything in here works on the [`Store`](crate::Store) trait alone and on a clock the test moves, so that a failure
//! repeats exactly and a day of heartbeats takes a millisecond.

pub mod bench;
pub mod conformance;
mod eventually;
pub mod faults;
pub mod scenario;
pub mod snapshot;
pub mod standing;
pub mod walk;

pub use bench::{Bench, Fresh, START};
pub use eventually::{eventually, eventually_blocking};

/// A failure in words; tests print it whole.
pub type TestResult<T> = Result<T, String>;
