//! The file that `export` writes and `import` reads: one JSON document a line.
//!
//! | line | what |
//! |---|---|
//! | `begin` | first: the format's version, and what wrote it |
//! | `record` | workers, runs, definitions, schedules, principals, token hashes, keys, users: everything that is not a job |
//! | `job` | a job with payload, result, past attempts and the jobs that wait for it |
//! | `log` | a piece of the log of the job before |
//! | `event` | an event with its number |
//! | `end` | last: how many there were of each, and the digest of every line between `begin` and itself |
//!
//! The order is the same from every store, so that equal data have equal digests wherever they are kept.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize, de::Error as _};
use std::sync::Arc;
use windlass_core::{
    Attempt, Event, Facet, Job, JobId, JobKey, Lane, LogAppend, LogForm, Namespace, Payload, Record, RecordKey, Spec,
    State, Timestamp, job::Live,
};
use windlass_engine::store::JobBody;

/// Grows when an older program could no longer read the file.
pub const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Begin(Begin),
    Record(RecordLine),
    Job(Box<JobLine>),
    Log(LogLine),
    Event(u64, Event),
    End(End),
}

#[derive(Serialize, Deserialize)]
pub struct Begin {
    pub windlass_export: u32,
    pub program: String,
    pub store: String,
}

/// How much there was, and what it comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub records: u64,
    pub jobs: u64,
    pub logs: u64,
    pub events: u64,
    /// The highest event number given, whether or not that event is still kept.
    pub last_event: u64,
    pub sha256: String,
}

impl End {
    pub fn lines(&self) -> u64 {
        self.records + self.jobs + self.logs + self.events
    }
}

#[derive(Serialize, Deserialize)]
pub struct RecordLine {
    namespace: Namespace,
    kind: Arc<str>,
    key: Arc<str>,
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    facets: Vec<Facet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    /// As text, so that it comes out as it went in.
    value: Arc<str>,
}

#[derive(Serialize, Deserialize)]
pub struct JobLine {
    namespace: Namespace,
    id: JobId,
    state: State,
    priority: i32,
    seq: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    spec: Spec,
    live: Live,
    #[serde(default, skip_serializing_if = "Data::is_empty")]
    payload: Data,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Data>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<Attempt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<JobId>,
}

#[derive(Serialize, Deserialize)]
pub struct LogLine {
    namespace: Namespace,
    job: JobId,
    piece: u64,
    attempt: u32,
    at: Timestamp,
    /// Standard error is 1; left out where it is 0, standard output.
    #[serde(default, skip_serializing_if = "is_zero")]
    stream: i16,
    data: Data,
}

fn is_zero(code: &i16) -> bool {
    *code == 0
}

/// Bytes: as text where they are text, else in base64.
#[derive(Clone, Default)]
pub struct Data(pub Payload);

impl Data {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes { base64: String },
}

impl Serialize for Data {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match std::str::from_utf8(self.0.as_bytes()) {
            Ok(text) => Written::Text(text.into()),
            Err(_) => Written::Bytes { base64: STANDARD.encode(self.0.as_bytes()) },
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Data(match Written::deserialize(deserializer)? {
            Written::Text(text) => Payload::from(&*text),
            Written::Bytes { base64 } => Payload::from(STANDARD.decode(base64).map_err(D::Error::custom)?),
        }))
    }
}

impl From<Record> for RecordLine {
    fn from(record: Record) -> Self {
        let RecordKey { namespace, kind, key } = record.key;
        let Record { version, parent, facets, due, value, .. } = record;
        Self { namespace, kind, key, version, parent, facets, due, value }
    }
}

impl From<RecordLine> for Record {
    fn from(line: RecordLine) -> Self {
        let RecordLine { namespace, kind, key, version, parent, facets, due, value } = line;
        Self {
            key: RecordKey { namespace, kind, key },
            version,
            parent,
            value,
            facets,
            due,
            decoded: Default::default(),
        }
    }
}

impl JobLine {
    pub fn new(job: Job, body: JobBody) -> Self {
        Self {
            namespace: job.key.namespace,
            id: job.key.id,
            state: job.state,
            priority: job.priority,
            seq: job.seq,
            due: job.due,
            spec: Arc::unwrap_or_clone(job.spec),
            live: job.live,
            payload: Data(body.payload),
            result: body.result.map(Data),
            attempts: body.attempts,
            children: body.children,
        }
    }

    /// The lane follows from what the job requires.
    pub fn into_rows(self) -> (Job, JobBody) {
        let lane = Lane::of(&self.namespace, &self.spec.tags);
        let body = JobBody {
            payload: self.payload.0,
            result: self.result.map(|result| result.0),
            attempts: self.attempts,
            children: self.children,
        };
        let job = Job {
            key: JobKey { namespace: self.namespace, id: self.id },
            lane,
            priority: self.priority,
            seq: self.seq,
            state: self.state,
            due: self.due,
            spec: Arc::new(self.spec),
            live: self.live,
        };
        (job, body)
    }
}

impl From<LogAppend> for LogLine {
    fn from(log: LogAppend) -> Self {
        let JobKey { namespace, id } = log.job;
        Self {
            namespace,
            job: id,
            piece: log.piece,
            attempt: log.attempt,
            at: log.at,
            stream: log.form.code(),
            data: Data(log.data),
        }
    }
}

impl From<LogLine> for LogAppend {
    fn from(line: LogLine) -> Self {
        let job = JobKey { namespace: line.namespace, id: line.job };
        let form = LogForm::from_code(line.stream);
        Self { job, piece: line.piece, attempt: line.attempt, at: line.at, form, data: line.data.0 }
    }
}
