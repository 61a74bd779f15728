//! What a job takes in memory, about.

use windlass_core::{Job, JobId};

const BASE: usize = 1_024;

pub fn of_job(job: &Job) -> usize {
    let spec = &job.spec;
    let tags: usize = spec.tags.iter().map(|tag| tag.len() + 32).sum();
    let facets: usize = spec.facets.iter().map(|facet| facet.name.len() + facet.value.len() + 64).sum();
    let progress = job.live.progress.as_ref().map(|progress| &progress.message);
    let texts = [spec.extra.as_ref(), progress].into_iter().flatten().map(|text| text.len()).sum::<usize>();
    BASE + tags + facets + texts + spec.parents.len() * size_of::<JobId>()
}
