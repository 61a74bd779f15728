//! One program for all tests: linking many takes longer than running them. Outside the crate, which would be
//! compiled once more for its unit tests.

mod support;

mod aborts;
mod client;
mod connection;
mod examples;
mod items;
mod late_writes;
mod serve;
mod shown;
mod told;
mod top;
mod transfer;
mod unit;
mod up;
mod words;
