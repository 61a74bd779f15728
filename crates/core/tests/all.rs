//! One program for all tests, outside the crate: as unit tests they would have the rules, which are optimised, compiled once more.

mod seeds;
mod tables;

mod rules;
mod tidy;
mod walk;
