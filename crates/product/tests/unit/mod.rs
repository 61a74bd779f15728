//! A file of tests for each file of `src` that has any, in the same place.

mod bom;
mod retry_lines;
mod rules;
