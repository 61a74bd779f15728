//! One program for all tests: linking many takes longer than running them.

mod support;

mod commands;
mod examples;
mod folders;
mod promises;
mod workflow_graph;
