//! A file of tests for each file of `src` that has any, in the same place.

mod cost;
mod expr;
mod meter;
mod neops;
mod pattern;
mod retry;
mod template;
mod workflow;
