//! A limit on everything a caller controls. One value, carried by the engine, so that operators can change it.

use crate::model::time::Millis;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Payload and result, each.
    pub payload_bytes_max: usize,
    /// Opaque dialect data on a job, worker or definition.
    pub extra_bytes_max: usize,
    /// A record's value.
    pub record_bytes_max: usize,
    /// Error and progress texts, each.
    pub message_bytes_max: usize,
    /// Names, keys, tags and facet values, each.
    pub name_bytes_max: usize,
    pub job_tags_max: usize,
    pub worker_tags_max: usize,
    /// Workers registered in one namespace.
    pub workers_max: usize,
    /// Definitions of one namespace, those that were deleted included.
    pub definitions_max: usize,
    /// Schedules of one namespace: each is looked at whenever one of them fires.
    pub schedules_max: usize,
    /// Distinct sets of tags that claimers of one namespace wait with at a time.
    pub offers_max: usize,
    /// Distinct sets of tags of the jobs that wait in one namespace; a large set counts as several.
    pub lanes_max: usize,
    pub facets_max: usize,
    pub parents_max: usize,
    /// Jobs of one run, and commands of one [`crate::commands::all::All`].
    pub nodes_max: usize,
    pub attempts_max: u32,
    /// Jobs outside runs that the end of one job may change in one transaction; the sweep does the rest.
    pub pass_on_max: usize,
    /// Failed jobs of one kind (definition, else tags) let back into the queue, a second; 0 is no limit.
    pub retries_per_second: u32,
    pub claim_max: usize,
    /// Any delay, lease, deadline or threshold.
    pub length_max: Millis,
    /// One append.
    pub log_piece_bytes_max: usize,
    /// All of a job's log. Beyond it the beginning and the newest part are kept; what goes is counted.
    pub log_bytes_max: u64,
    /// Lease length where neither job nor claimer says.
    pub lease_default: Millis,
    /// How long a final job is kept where it does not say itself.
    pub retention: Millis,
    /// How long entries of the audit log are kept.
    pub audit_kept: Millis,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes_max: 1 << 20,
            extra_bytes_max: 64 << 10,
            record_bytes_max: 1 << 20,
            message_bytes_max: 64 << 10,
            name_bytes_max: 256,
            job_tags_max: 64,
            worker_tags_max: 1_024,
            workers_max: 10_000,
            definitions_max: 100_000,
            schedules_max: 1_000,
            offers_max: 10_000,
            lanes_max: 200_000,
            facets_max: 6,
            parents_max: 1_000,
            nodes_max: 20_000,
            attempts_max: 1_000,
            pass_on_max: 64,
            retries_per_second: 100,
            claim_max: 1_000,
            length_max: Millis::from_secs(10 * 365 * 86_400),
            log_piece_bytes_max: 256 << 10,
            log_bytes_max: 16 << 20,
            lease_default: Millis::from_secs(30),
            retention: Millis::from_secs(7 * 86_400),
            audit_kept: Millis::from_secs(365 * 86_400),
        }
    }
}
