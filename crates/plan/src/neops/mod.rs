//! Workflows of neops: the document, and all that follows from it without a store, a clock or a network.

pub mod acquire;
pub mod compare;
mod compare_schema;
pub mod course;
pub mod document;
pub mod entity;
mod evaluate;
pub mod expression;
mod functions;
pub mod lanes;
pub mod publish;
pub mod read;
pub mod reference;
pub mod schedule;
pub mod scope;
pub mod secrets;
pub mod step;
pub mod template;
pub mod undo;
pub mod updates;
