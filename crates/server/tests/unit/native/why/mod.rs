mod explain;
mod pending;

use std::sync::Arc;
use windlass_core::{
    Job, JobId, JobKey, Lane, Namespace, Spec, State as JobState, Tags, Timestamp,
    job::{ConcurrencyKey, Live},
};
use windlass_server::native::why::{Facts, Seen, explain::explain};

pub const NOW: Timestamp = Timestamp(1_763_208_000_000);

pub fn job(state: JobState, tags: &[&str], live: Live) -> Job {
    let (namespace, tags) = (Namespace::default(), tags.iter().copied().collect::<Tags>());
    let concurrency = Some(ConcurrencyKey { key: "k".into(), limit: 2 });
    Job {
        lane: Lane::of(&namespace, &tags),
        key: JobKey::new(&namespace, JobId::from_u128(1)),
        priority: 0,
        seq: 0,
        state,
        due: None,
        spec: Arc::new(Spec { tags, concurrency, ..Spec::default() }),
        live,
    }
}

pub fn facts(job: Job, workers: Vec<Seen>, ahead: usize) -> Facts {
    let (parents, rivals, strangers) = (Vec::new(), Vec::new(), Vec::new());
    Facts { job, now: NOW, parents, rivals, last: None, workers, strangers, waiting: 0, start: None, ahead }
}

/// Codes, the summary, and what helps against the first cause.
pub fn told(facts: &Facts) -> (Vec<String>, String, String) {
    let why = explain(facts);
    let help = why.reasons.first().and_then(|cause| cause.help.clone()).unwrap_or_default();
    (why.reasons.iter().map(|cause| cause.code.clone()).collect(), why.summary, help)
}
