//! Waiting claims that take new jobs without a look: by what is known of their workers, and as if nothing else waited.
//!
//! A claim waits because there was nothing for it, so there seldom is when a job comes. The database makes sure of that before
//! it writes the job, as one that is held already. Where something waits after all, nothing is written, and the batch is looked
//! at first: what stands in front is claimed first.

use super::{Inner, claim_at_once::versions};
use uuid::Uuid;
use windlass_core::{Access, Decider, Decision, Keys, Namespace, RecordKey, Reply, Rows, Step};

/// Claims of more lanes look first.
const LANES_MAX: usize = 64;

/// What waiting claims were decided by.
pub struct Joined {
    /// Where they look for work.
    pub namespaces: Vec<Namespace>,
    /// Nothing waits in them.
    pub lanes: Vec<(Namespace, Uuid)>,
    /// All lanes that were added by transactions before this one are known.
    pub horizon: i64,
    /// Looked at, and to be as they were.
    pub records: Vec<(RecordKey, u64)>,
}

impl Inner {
    /// Goes on with a batch whose commands are decided. None: those that joined it have to look first.
    pub fn foresee_joined(&self, decider: &mut Decider<'_>, keys: &Keys) -> Option<(Decision, Joined)> {
        let horizon = self.lanes.horizon();
        let waits_only = !keys.heads.is_empty() && keys.heads.keys().all(|query| keys.glances.contains(query));
        let looks_only = keys.records.values().all(|access| *access == Access::Look);
        let (heads, glances, records) = (keys.heads.clone(), keys.glances.clone(), keys.records.clone());
        let nothing_else = Keys { heads, glances, records, ..Keys::default() } == *keys;
        if horizon == 0 || !waits_only || !looks_only || !nothing_else {
            return None;
        }
        let mut lanes = Vec::new();
        for query in keys.heads.keys() {
            lanes.extend(self.lanes.serving(query).iter().map(|lane| (query.namespace.clone(), *lane)));
        }
        let records = self.known.records(keys.records.keys()).filter(|_| lanes.len() <= LANES_MAX)?;
        let namespaces = keys.heads.keys().map(|query| query.namespace.clone()).collect();
        let joined = Joined { namespaces, lanes, horizon, records: versions(&records) };
        let mut rows = Rows { records, ..Rows::default() };
        rows.heads = keys.heads.keys().map(|query| (query.clone(), Vec::new())).collect();
        let Step::Done(decision) = decider.step(rows) else { return None };
        // Only with new jobs does the database check what they were decided by.
        decision.jobs.iter().any(|change| change.old.is_none()).then_some((decision, joined))
    }
}

/// New jobs are decided on with places counted from zero; this is where the database says they begin. Nothing else is handed out.
pub fn place(decision: &mut Decision, first: i64) {
    let new = decision.jobs.iter_mut().filter(|change| change.old.is_none());
    new.filter_map(|change| change.new.as_mut()).for_each(|job| job.seq += first);
    for reply in &mut decision.replies {
        if let Ok(Reply::Leases(leases)) = reply {
            leases.iter_mut().for_each(|leased| leased.job.seq += first);
        }
    }
}
