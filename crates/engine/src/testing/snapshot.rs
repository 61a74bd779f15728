//! All that a store holds, through its reads alone, in a form that two stores can be compared in.

use super::{TestResult, bench};
use crate::store::{JobBody, JobQuery, RecordQuery, Store, StoreError};
use std::{collections::BTreeSet, fmt::Debug, sync::Arc};
use windlass_core::{
    Event, Job, JobKey, LogAppend, Namespace, Record, StateCounts,
    commands::records::KINDS,
    counts::{self, Counted},
    link::TIED,
    stage::OF_RUN,
};

/// Small, so that a snapshot also tests paging.
const PAGE: usize = 64;
const LOG_PAGE_BYTES: usize = 4 << 10;

/// Where to look. Records are found by namespace and kind, so both have to be known.
#[derive(Clone, Debug)]
pub struct Scope {
    pub namespaces: Vec<Namespace>,
    pub kinds: Vec<Arc<str>>,
    /// How many events must have been numbered.
    pub told: u64,
}

impl Scope {
    pub fn new(namespaces: &[Namespace], more_kinds: &[&str]) -> Self {
        let mut kinds: Vec<Arc<str>> =
            KINDS.iter().chain(&[TIED, OF_RUN]).chain(more_kinds).map(|&kind| kind.into()).collect();
        kinds.sort();
        Self { namespaces: namespaces.to_vec(), kinds, told: 0 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Newest first. `seq` is the job's rank among all jobs, since stores draw it differently.
    pub jobs: Vec<FullJob>,
    pub records: Vec<Record>,
    pub events: Vec<(u64, Event)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FullJob {
    pub job: Job,
    pub body: JobBody,
    pub log: Vec<LogAppend>,
}

/// What stores say they hold is what they do hold: of every namespace, and of every definition that has or may have had jobs.
async fn check_counts(store: &dyn Store, scope: &Scope, jobs: &[Job], records: &[Record]) -> TestResult<()> {
    let mut whose: BTreeSet<(&Namespace, Option<&str>)> = scope.namespaces.iter().map(|name| (name, None)).collect();
    for job in jobs {
        whose.insert((&job.key.namespace, None));
        whose.insert((&job.key.namespace, Some(counts::definition_of(job)).filter(|name| !name.is_empty())));
    }
    for (namespace, definition) in whose {
        let of = |job: &&Job| {
            job.key.namespace == *namespace && definition.is_none_or(|name| counts::definition_of(job) == name)
        };
        let mut there = StateCounts::of_all(jobs.iter().filter(of));
        if definition.is_none() {
            let records = records.iter().filter(|record| record.key.namespace == *namespace).map(counts::record_bytes);
            there.add(Counted::Bytes, jobs.iter().filter(of).map(counts::job_bytes).chain(records).sum());
        }
        let mut told =
            store.job_counts(namespace, definition).await.map_err(|error| format!("reading counts: {error}"))?;
        // Not every store keeps events with their bytes: those that were moved have none.
        told.add(Counted::EventBytes, -told.get(Counted::EventBytes));
        if told != there {
            return Err(format!("of {namespace}/{definition:?} there are {there:?}, but {told:?} are told"));
        }
    }
    Ok(())
}

pub async fn snapshot(store: &dyn Store, scope: &Scope) -> TestResult<Snapshot> {
    let read = |error: StoreError| format!("reading back: {error}");
    let mut jobs = all_jobs(store, PAGE).await.map_err(read)?;
    let records = all_records(store, scope).await.map_err(read)?;
    check_counts(store, scope, &jobs, &records).await?;
    rank(&mut jobs);
    let mut full = Vec::with_capacity(jobs.len());
    for job in jobs {
        let body = store.body(&job.key).await.map_err(read)?;
        let body = body.ok_or_else(|| format!("{:?} is listed but has no body", job.key))?;
        let log = whole_log(store, &job.key).await.map_err(read)?;
        full.push(FullJob { job, body, log });
    }
    let events = bench::events(store, scope.told).await?;
    Ok(Snapshot { jobs: full, records, events })
}

/// Every job of every namespace, newest first, so many at a time.
pub async fn all_jobs(store: &dyn Store, page: usize) -> Result<Vec<Job>, StoreError> {
    let mut query = JobQuery { limit: page, ..JobQuery::default() };
    let mut found: Vec<Job> = Vec::new();
    loop {
        let part = store.jobs(&query).await?;
        let full = part.len() == page;
        found.extend(part);
        match found.last() {
            Some(last) if full => query.before = Some((last.key.namespace.clone(), last.key.id)),
            _ => return Ok(found),
        }
    }
}

fn rank(jobs: &mut [Job]) {
    let mut places: Vec<i64> = jobs.iter().map(|job| job.seq).collect();
    places.sort_unstable();
    for job in jobs {
        job.seq = places.partition_point(|&place| place < job.seq) as i64;
    }
}

pub async fn whole_log(store: &dyn Store, key: &JobKey) -> Result<Vec<LogAppend>, StoreError> {
    let mut found: Vec<LogAppend> = Vec::new();
    loop {
        let after = found.last().map_or(0, |last| last.piece);
        let page = store.read_log(key, after, LOG_PAGE_BYTES).await?;
        if page.is_empty() {
            return Ok(found);
        }
        found.extend(page);
    }
}

pub async fn all_records(store: &dyn Store, scope: &Scope) -> Result<Vec<Record>, StoreError> {
    let mut found = Vec::new();
    for namespace in &scope.namespaces {
        for kind in &scope.kinds {
            found.extend(records_of(store, namespace, kind).await?);
        }
    }
    Ok(found)
}

pub async fn records_of(store: &dyn Store, namespace: &Namespace, kind: &str) -> Result<Vec<Record>, StoreError> {
    let mut query = RecordQuery {
        namespace: namespace.clone(),
        kind: kind.into(),
        parent: None,
        facet: None,
        after: None,
        limit: PAGE,
    };
    let mut found: Vec<Record> = Vec::new();
    loop {
        let page = store.records(&query).await?;
        let full = page.len() == PAGE;
        found.extend(page);
        match found.last() {
            Some(last) if full => query.after = Some(last.key.key.clone()),
            _ => return Ok(found),
        }
    }
}

impl Snapshot {
    /// What differs first, in words. None: nothing does.
    pub fn first_difference(&self, other: &Snapshot) -> Option<String> {
        let jobs = || first_of("job", &self.jobs, &other.jobs);
        let records = || first_of("record", &self.records, &other.records);
        let events = || first_of("event", &self.events, &other.events);
        jobs().or_else(records).or_else(events)
    }
}

fn first_of<T: Debug + PartialEq>(what: &str, left: &[T], right: &[T]) -> Option<String> {
    if left == right {
        return None;
    }
    let at = left.iter().zip(right).position(|(left, right)| left != right).unwrap_or(left.len().min(right.len()));
    let show = |side: Option<&T>| side.map_or_else(|| "(none)".to_string(), |value| format!("{value:#?}"));
    let (left_text, right_text) = (show(left.get(at)), show(right.get(at)));
    let hint =
        if left_text == right_text { "\nThey differ in a part that is never printed (lease, payload)." } else { "" };
    Some(format!(
        "{what} number {at} of {} and {} differs:\n{}{hint}",
        left.len(),
        right.len(),
        lines_that_differ(&left_text, &right_text)
    ))
}

/// The lines of both texts, those that are the same on both sides once.
fn lines_that_differ(left: &str, right: &str) -> String {
    let (left, right): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    if left.len() != right.len() {
        return format!("--- left\n{}\n--- right\n{}", left.join("\n"), right.join("\n"));
    }
    let side_by_side = |(left, right): (&&str, &&str)| {
        if left == right { format!("  {left}") } else { format!("- {left}\n+ {right}") }
    };
    left.iter().zip(&right).map(side_by_side).collect::<Vec<_>>().join("\n")
}
