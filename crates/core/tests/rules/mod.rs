//! A file of tests for each file of `src` that has any, in the same place: the rules command by command, and what they share.

mod cache;
mod commands;
mod desk;
mod model;
mod moves;

mod story;
