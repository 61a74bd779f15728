//! One program for all tests: linking many takes longer than running them. Outside the crate, which would be
//! compiled once more for its unit tests.

mod support;

mod commands;
mod examples;
mod folders;
mod outages;
mod promises;
mod unit;
mod workflow_graph;
