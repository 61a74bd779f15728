//! One program for all tests, outside the crate: linking many takes longer than running them, and as unit tests they would have the crate
//! compiled once more.

#[path = "../../core/tests/seeds/mod.rs"]
mod seeds;
mod support;

mod changes;
mod features;
mod stored;
mod unit;
