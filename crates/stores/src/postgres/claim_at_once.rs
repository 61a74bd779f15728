//! Claims that need no look: they are decided by jobs that were read ahead and by what is known of the workers.
//!
//! The statement that writes them selects the front of the lanes like any claim, stepping over what others have locked, and
//! writes only if the front is what was decided on. So the order is the one of a claim that looks first.

use super::{
    Inner,
    ahead::COUNT_MAX,
    at_once::{Foreseen, Kind},
};
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::{Access, Command, Decision, Head, HeadQuery, Keys, Record, RecordKey, Rows, State, Step, select};
use windlass_engine::store::Batch;

/// What claims were decided by.
pub struct Claimed {
    pub query: HeadQuery,
    pub lanes: Arc<[Uuid]>,
    /// Looked at, and to be as they were.
    pub records: Vec<(RecordKey, u64)>,
}

impl Inner {
    /// None: they have to look first.
    pub fn foresee_claims(&self, batch: &Batch) -> Option<Foreseen> {
        let claims_only = batch.items.iter().all(|item| matches!(item.command, Command::Claim(_)));
        let (now, database) = self.now_unasked().filter(|_| claims_only)?;
        let mut decider = batch.decider(now, 0);
        let keys = decider.first_keys();
        let (query, count) = only_query(&keys)?;
        let records = self.known.records(keys.records.keys())?;
        let lanes = self.lanes.serving(query);
        let heads = self.ahead.take(query, count, &self.known)?;
        let claimed = Claimed { query: query.clone(), lanes, records: versions(&records) };
        let mut rows = Rows { records, ..Rows::default() };
        rows.heads.insert(query.clone(), heads.clone());
        let Step::Done(decision) = decider.step(rows) else {
            // A worker's row has to be written first. The jobs are as good as before.
            self.ahead.put_back(query, heads);
            return None;
        };
        let taken = front_taken(&decision, &heads)?;
        self.ahead.put_back(query, heads.into_iter().skip(taken).collect());
        Some(Foreseen { decision, now, database, kind: Kind::Claims(claimed) })
    }
}

/// The only offer of the batch and how many jobs it wants, if that and workers to look at is all it needs.
fn only_query(keys: &Keys) -> Option<(&HeadQuery, usize)> {
    let mut heads = keys.heads.iter();
    let (Some((query, &count)), None) = (heads.next(), heads.next()) else { return None };
    let looks = keys.records.values().all(|access| *access == Access::Look);
    let nothing_else = Keys { heads: keys.heads.clone(), records: keys.records.clone(), ..Keys::default() } == *keys;
    (looks && nothing_else && count <= COUNT_MAX).then_some((query, count))
}

pub fn versions(records: &[Record]) -> Vec<(RecordKey, u64)> {
    records.iter().map(|record| (record.key.clone(), record.version)).collect()
}

/// How many jobs it claims, if it claims the first of these and does nothing else.
fn front_taken(decision: &Decision, heads: &[Head]) -> Option<usize> {
    let Decision { payloads, results, attempts, edges, records, logs, log_drops, wakes, .. } = decision;
    let parts = payloads.is_empty() && results.is_empty() && attempts.is_empty() && edges.is_empty();
    let plain = parts && records.is_empty() && logs.is_empty() && log_drops.is_empty() && wakes.is_empty();
    let mut taken = Vec::with_capacity(decision.jobs.len());
    for change in &decision.jobs {
        let (Some(old), Some(new)) = (&change.old, &change.new) else { return None };
        let claims = old.state == State::Pending && new.state.is_held() && select::order(old) == select::order(new);
        if !claims {
            return None;
        }
        taken.push((select::order(old), &old.key));
    }
    taken.sort();
    let first = heads.iter().map(|head| (select::order(&head.job), &head.job.key));
    let is_front = taken.len() <= heads.len() && first.zip(&taken).all(|(head, taken)| head == *taken);
    (plain && is_front && !taken.is_empty()).then_some(taken.len())
}
