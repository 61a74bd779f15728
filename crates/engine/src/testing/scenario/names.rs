//! What a scenario calls things, and what they are.

use super::super::{START, TestResult};
use std::collections::HashMap;
use uuid::Uuid;
use windlass_core::{JobId, LeaseId, RunId, Timestamp};

#[derive(Default)]
pub(super) struct Names {
    jobs: HashMap<String, JobId>,
    job_names: HashMap<JobId, String>,
    runs: HashMap<String, RunId>,
    run_names: HashMap<RunId, String>,
    leases: HashMap<String, LeaseId>,
    drawn: u128,
}

impl Names {
    /// A number never drawn before, in the shape of a time-ordered id.
    fn draw(&mut self) -> u128 {
        self.drawn += 1;
        ((START.0 as u128) << 80) | (0x7 << 76) | (0b10 << 62) | self.drawn
    }

    pub fn secret(&mut self) -> Uuid {
        Uuid::from_u128(self.draw())
    }

    /// The job of this name. A name nobody used before gets an id nobody knows.
    pub fn job(&mut self, name: &str) -> JobId {
        if let Some(&id) = self.jobs.get(name) {
            return id;
        }
        let id = JobId::from_u128(self.draw());
        self.bind_job(name, id);
        id
    }

    pub fn bind_job(&mut self, name: &str, id: JobId) {
        self.jobs.insert(name.into(), id);
        self.job_names.insert(id, name.into());
    }

    pub fn job_name(&self, id: JobId) -> String {
        self.job_names.get(&id).cloned().unwrap_or_else(|| format!("(unnamed {id})"))
    }

    pub fn knows(&self, id: JobId) -> bool {
        self.job_names.contains_key(&id)
    }

    pub fn is_job(&self, name: &str) -> bool {
        self.jobs.contains_key(name)
    }

    pub fn run(&mut self, name: &str) -> RunId {
        if let Some(&id) = self.runs.get(name) {
            return id;
        }
        let id = RunId::from_u128(self.draw());
        self.runs.insert(name.into(), id);
        self.run_names.insert(id, name.into());
        id
    }

    pub fn is_run(&self, name: &str) -> bool {
        self.runs.contains_key(name)
    }

    pub fn run_name(&self, id: RunId) -> String {
        self.run_names.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    pub fn lease(&self, name: &str) -> Option<LeaseId> {
        self.leases.get(name).copied()
    }

    /// Gives the lease this name; if it has it already, it must be the same lease.
    pub fn bind_lease(&mut self, name: &str, lease: LeaseId) -> TestResult<()> {
        match self.leases.insert(name.into(), lease) {
            Some(before) if before != lease => Err(format!("{name} is another lease than before")),
            _ => Ok(()),
        }
    }
}

/// A time as the scenario counts it.
pub(super) fn shown(at: Timestamp) -> String {
    let since = (at - START).0;
    if since % 1_000 == 0 { format!("{}s", since / 1_000) } else { format!("{since}ms") }
}

/// Any text as the hash of a token: 64 hexadecimal digits.
pub(super) fn token_hash(name: &str) -> String {
    let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex:0>64}").chars().take(64).collect()
}
