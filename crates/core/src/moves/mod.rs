//! Moves that several commands share: of jobs, runs, steps and workers, and of the keys and places they hold.

pub mod concurrency;
pub mod dependents;
pub mod life;
pub mod links;
pub mod liveness;
pub mod pace;
pub mod parents;
pub mod runs;
pub mod steps;
pub mod unique;
