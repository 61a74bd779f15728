//! Workflows.
#![forbid(unsafe_code)]
