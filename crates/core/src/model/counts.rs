//! How many jobs are in each state: of a namespace, and of each definition in it; and how many bytes a namespace keeps. Stores keep
//! these numbers with every change, because counting what grows would cost more with every job.
//!
//! Bytes are counted to see who fills a disk, not to the last one: a job counts with what it brought and with a fixed part for its
//! row, an event and an attempt with theirs; the log of a job that is at work is counted when it has grown by [`LOG_STEP`].

use crate::model::{
    change::{Decision, JobChange, RecordChange},
    event::{Event, What},
    job::{Attempt, Job, JobBytes, Spec, State},
    name::Namespace,
    record::Record,
};
use std::collections::BTreeMap;

/// A job's row with its index entries.
const JOB: u64 = 1_024;
const ATTEMPT: u64 = 256;
const EVENT: usize = 128;
/// Records that are written all the time, such as workers, change their size by a few bytes; that is not counted.
const RECORD_STEP: u64 = 256;
pub const LOG_STEP: u64 = 64 << 10;

/// What there are numbers of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    Jobs(State),
    /// Of jobs and records.
    Bytes,
    /// Of events: kept apart, since stores remove events by themselves.
    EventBytes,
}

impl Counted {
    /// What stores keep beside the number.
    pub fn code(self) -> i16 {
        match self {
            Counted::Jobs(state) => state.code(),
            Counted::Bytes => 100,
            Counted::EventBytes => 101,
        }
    }

    pub fn from_code(code: i16) -> Option<Self> {
        match code {
            100 => Some(Counted::Bytes),
            101 => Some(Counted::EventBytes),
            _ => State::from_code(code).map(Counted::Jobs),
        }
    }
}

/// Jobs by state, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    jobs: [i64; State::ALL.len()],
    bytes: i64,
    event_bytes: i64,
}

impl StateCounts {
    /// By counting; jobs alone.
    pub fn of_all<'a>(jobs: impl Iterator<Item = &'a Job>) -> Self {
        let mut counts = Self::default();
        jobs.for_each(|job| counts.add(Counted::Jobs(job.state), 1));
        counts
    }

    /// Never less than none, whatever a damaged store says.
    pub fn of(&self, state: State) -> u64 {
        u64::try_from(self.jobs[state as usize]).unwrap_or(0)
    }

    /// The numbers of jobs alone.
    pub fn without_bytes(self) -> Self {
        Self { bytes: 0, event_bytes: 0, ..self }
    }

    /// All that is kept: payloads, results, logs, records and events.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes + self.event_bytes).unwrap_or(0)
    }

    /// As it is kept, for those who add to it.
    pub fn get(&self, counted: Counted) -> i64 {
        match counted {
            Counted::Jobs(state) => self.jobs[state as usize],
            Counted::Bytes => self.bytes,
            Counted::EventBytes => self.event_bytes,
        }
    }

    pub fn add(&mut self, counted: Counted, by: i64) {
        match counted {
            Counted::Jobs(state) => self.jobs[state as usize] += by,
            Counted::Bytes => self.bytes += by,
            Counted::EventBytes => self.event_bytes += by,
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn each(&self) -> impl Iterator<Item = (Counted, i64)> {
        let all = State::ALL.into_iter().map(Counted::Jobs).chain([Counted::Bytes, Counted::EventBytes]);
        all.map(|counted| (counted, self.get(counted))).filter(|(_, count)| *count != 0)
    }
}

/// Whose jobs are counted: those of a definition, or (no name) all of the namespace. A definition always has a name.
pub fn definition_of(job: &Job) -> &str {
    job.spec.definition.as_ref().map_or("", |definition| &definition.name)
}

/// By how much a number changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountChange<'a> {
    pub namespace: &'a Namespace,
    /// Empty: all jobs of the namespace, with or without a definition.
    pub definition: &'a str,
    pub counted: Counted,
    pub by: i64,
}

type Sums<'a> = BTreeMap<(&'a Namespace, &'a str), StateCounts>;

/// What a batch changes, by namespace, definition and what is counted; what comes to nothing is left out.
pub fn changes(decision: &Decision) -> Vec<CountChange<'_>> {
    let mut sums = Sums::new();
    decision.jobs.iter().for_each(|change| add_job(&mut sums, change));
    decision.records.iter().for_each(|change| add_record(&mut sums, change));
    for event in &decision.events {
        sums.entry((&event.namespace, "")).or_default().add(Counted::EventBytes, event_bytes(event));
    }
    let each = |((namespace, definition), sum): ((_, _), StateCounts)| {
        let changes: Vec<_> =
            sum.each().map(|(counted, by)| CountChange { namespace, definition, counted, by }).collect();
        changes
    };
    sums.into_iter().flat_map(each).collect()
}

fn add_job<'a>(sums: &mut Sums<'a>, change: &'a JobChange) {
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    let Some(either) = new.or(old) else { return };
    let (namespace, definition) = (&either.key.namespace, definition_of(either));
    let by = new.map_or(0, job_bytes) - old.map_or(0, job_bytes);
    if by != 0 {
        sums.entry((namespace, "")).or_default().add(Counted::Bytes, by);
    }
    if old.map(|job| job.state) == new.map(|job| job.state) {
        return;
    }
    for whose in [Some(""), Some(definition).filter(|name| !name.is_empty())].into_iter().flatten() {
        let sum = sums.entry((namespace, whose)).or_default();
        old.into_iter().for_each(|job| sum.add(Counted::Jobs(job.state), -1));
        new.into_iter().for_each(|job| sum.add(Counted::Jobs(job.state), 1));
    }
}

fn add_record<'a>(sums: &mut Sums<'a>, change: &'a RecordChange) {
    let by = change.new.as_ref().map_or(0, record_bytes) - change.old_bytes;
    if by != 0 {
        sums.entry((&change.key.namespace, "")).or_default().add(Counted::Bytes, by);
    }
}

/// All that belongs to a job, as its row says.
pub fn job_bytes(job: &Job) -> i64 {
    (job.live.bytes.body + job.live.bytes.log) as i64
}

pub fn record_bytes(record: &Record) -> i64 {
    let bytes = (record.key.key.len() + record.value.len()) as u64;
    bytes.next_multiple_of(RECORD_STEP) as i64
}

/// What a new job counts with, before anything that belongs to it.
pub(crate) fn new_job_bytes(spec: &Spec) -> u64 {
    let facets: usize = spec.facets.iter().map(|facet| facet.name.len() + facet.value.len()).sum();
    let extra = spec.extra.as_ref().map_or(0, |extra| extra.len());
    JOB + (facets + extra + spec.tags.bytes() + spec.parents.len() * 40) as u64
}

/// What a job is charged with that was stored before there were numbers of bytes. `parts`: its payload, result and attempts.
pub fn older_job_bytes(job: &Job, parts: u64) -> JobBytes {
    JobBytes { body: new_job_bytes(&job.spec) + parts, log: job.live.log.stored() }
}

pub(crate) fn attempt_bytes(attempt: &Attempt) -> u64 {
    ATTEMPT + attempt.outcome.message.len() as u64
}

fn event_bytes(event: &Event) -> i64 {
    let text = match &event.what {
        What::Progress { message, .. } | What::Failed { message, .. } | What::Cancelled { message, .. } => {
            message.len()
        }
        What::Told { topic, data } => topic.len() + data.len(),
        What::Audit { on, .. } => on.len(),
        What::RecordPut { key, .. } | What::RecordDeleted { key, .. } => key.len(),
        What::Submitted { .. }
        | What::Ready { .. }
        | What::Claimed { .. }
        | What::Started { .. }
        | What::Completed { .. }
        | What::Requeued { .. }
        | What::Released { .. }
        | What::CancelRequested { .. }
        | What::Skipped { .. }
        | What::WorkerRegistered { .. }
        | What::WorkerOnline { .. }
        | What::WorkerUnreachable { .. }
        | What::WorkerOffline { .. }
        | What::WorkerDraining { .. }
        | What::WorkerUndrained { .. }
        | What::WorkerDeleted { .. }
        | What::RunStarted { .. }
        | What::RunGrew { .. }
        | What::RunFinished { .. }
        | What::DefinitionPut { .. }
        | What::DefinitionDeleted { .. }
        | What::Linked { .. }
        | What::Unlinked { .. } => 0,
    };
    (EVENT + text) as i64
}
