//! A file of tests for each file of `src` that has any, in the same place.

mod args;
mod graph;
mod guard;
mod output;
mod place;
mod plan;
mod silo;
mod terminal;
mod work;
