//! A file of tests for each file of `src` that has any, in the same place.

mod bench;
mod cli;
mod commands;
mod dialects;
mod output;
mod remote;
mod store;
mod table;
mod times;
mod top;
