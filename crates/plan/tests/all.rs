//! One program for all tests, outside the crate: as unit tests they would have the crate compiled once more.

#[path = "../../core/tests/seeds/mod.rs"]
mod seeds;
#[path = "../../core/tests/tables/mod.rs"]
#[allow(dead_code, reason = "shared with the tests of the rules")]
mod tables;

mod world;

mod oracle;
mod unit;
