//! One program for all tests: linking many takes longer than running them.

mod support;

mod client;
mod examples;
mod items;
mod late_writes;
mod serve;
mod shown;
mod told;
mod top;
mod transfer;
mod up;
mod words;
