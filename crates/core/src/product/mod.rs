//! What is made: items with their revisions, the projects they belong to, and what contains what.
//!
//! Values and pure rules over them. They are kept as records; whoever writes them says which versions it looked at, so that
//! a rule that held when it was checked still holds when it is written.

pub mod bom;
pub mod item;
pub mod trigger;
