//! Rules as stories. One text runs on any store:
//!
//! ```text
//! at 0s    submit j1 attempts=2
//! at 0s    w1 claims ttl=30s            -> j1 as L1
//! at 30s   tick                         -> j1 pending        # expiry counts from its own instant
//! at 31s   w2 claims ttl=30s            -> j1 as L2
//! at 32s   complete L1                  -> refused lease-lost
//! at 33s   complete L2                  -> j1 completed
//! events   j1  submitted claimed requeued claimed completed
//! ```
//!
//! A line without `at` happens at the time of the one before; a line without `->` must not be refused. Lines indented
//! under `together` are one batch, under `all` one all-or-nothing command, under `submit-run` the nodes of a run.
//! `command.rs` lists the verbs, `options.rs` their options, `check.rs` what can be looked at.

mod check;
mod command;
mod line;
mod names;
mod options;
mod stage;
mod told;

use super::{Fresh, TestResult};

macro_rules! scenarios {
    ($($name:literal),+ $(,)?) => {
        /// Every scenario: its name and its text.
        pub const ALL: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".txt")))),+];
    };
}

scenarios![
    "addressing",
    "bad_input",
    "cancel_drain",
    "cancel_pending",
    "cancel_revoke",
    "cancel_run",
    "concurrency_keys",
    "definitions",
    "delays",
    "dependencies_cancel_run",
    "dependencies_in_pieces",
    "dependencies_run_anyway",
    "dependencies_skip",
    "diamond_run",
    "doubt",
    "grace_after_restart",
    "hard_deadline",
    "late_worker",
    "lease_with_worker",
    "links",
    "logs_and_caps",
    "pass_on",
    "pending_deadline",
    "poison",
    "principals",
    "priorities_and_order",
    "records_and_all",
    "release",
    "renewal",
    "replay",
    "request_ids",
    "retention",
    "retry_backoff",
    "retry_new_job",
    "retry_pace",
    "retry_same",
    "run_course",
    "run_with_cycle",
    "schedules",
    "staged_steps",
    "stalls",
    "start_required",
    "tags_and_namespaces",
    "total_deadline",
    "unique_keys",
    "unregister_fail",
    "unregister_offline",
    "unregister_requeue",
    "worker_cascade",
];

/// Plays one text on a fresh store. The error names the file, the line and what differed.
pub async fn play(fresh: impl Into<Fresh>, name: &str, text: &str) -> TestResult<()> {
    stage::play(fresh.into(), text).await.map_err(|why| format!("{name}.txt, {why}"))
}
