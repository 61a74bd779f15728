//! Records of items and what hangs on them: read, list, and write several at once under the versions they were read at.
//!
//! Every change is worked out on what was read and then written all or nothing, with the versions it was worked out on. Where
//! somebody else was faster, it is worked out again; so rules that span several records hold under races without a lock.

use super::namespace;
use crate::{app::App, problem::Problem};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::sync::Arc;
use windlass_core::{
    Command, Facet, Record, RecordKey, Refusal, Reply,
    commands::{
        all::All,
        records::{DeleteRecord, Expect, PutRecord},
        tell::Tell,
    },
};
use windlass_engine::{Error, store::RecordQuery};

pub const ITEM: &str = "silo_item";
/// Items by age, newest first: lists are read along it.
pub const ITEM_AGE: &str = "silo_item_age";
pub const REVISION: &str = "silo_revision";
pub const PROJECT: &str = "silo_project";
/// Which items a project has: listed under its code.
pub const MEMBER: &str = "silo_member";
pub const COUNTER: &str = "silo_counter";
pub const BOM: &str = "silo_bom";
/// One record that every change of the BOM writes: rows are checked against all the others.
pub const BOM_EPOCH: &str = "silo_bom_epoch";
pub const RUNNER: &str = "silo_runner";
pub const TOKEN: &str = "silo_token";
pub const SCHEDULE: &str = "silo_schedule";
pub const SESSION: &str = "silo_session";
/// An item's live graph: which revision, and which items depend on it. Written by whoever changes either.
pub const LIVE: &str = "silo_live";
/// Files of revisions: listed under the revision.
pub const FILE: &str = "silo_file";
pub const GRAPH: &str = "silo_graph";
pub const GRAPH_PART: &str = "silo_graph_part";

const PAGE: usize = 1_000;

/// A value and the version it was read at.
#[derive(Clone, Debug)]
pub struct Kept<T> {
    pub key: Arc<str>,
    pub value: T,
    pub version: u64,
}

impl<T> Kept<T> {
    pub fn unchanged(&self) -> Expect {
        Expect::Version(self.version)
    }
}

/// What to expect of something that was looked for.
pub fn as_found<T>(found: Option<&Kept<T>>) -> Expect {
    found.map_or(Expect::Nothing, Kept::unchanged)
}

fn key(kind: &str, key: &str) -> RecordKey {
    RecordKey { namespace: namespace(), kind: kind.into(), key: key.into() }
}

fn decode<T: DeserializeOwned>(record: Record) -> Result<Kept<T>, Problem> {
    let value = serde_json::from_str(&record.value).map_err(|error| {
        Problem::new("damaged", format!("the stored {} {} cannot be read: {error}", record.key.kind, record.key.key))
    })?;
    Ok(Kept { key: record.key.key, value, version: record.version })
}

pub async fn get<T: DeserializeOwned>(app: &App, kind: &str, name: &str) -> Result<Option<Kept<T>>, Problem> {
    // No name is longer than this; asking for it would be refused in other words.
    if name.len() > 256 {
        return Ok(None);
    }
    app.engine.store().record(&key(kind, name)).await?.map(decode).transpose()
}

/// Which of a kind.
#[derive(Clone, Default)]
pub enum Of<'a> {
    #[default]
    All,
    Under(&'a str),
    With(&'static str, &'a str),
}

/// All of them, by key.
pub async fn list<T: DeserializeOwned>(app: &App, kind: &str, of: Of<'_>) -> Result<Vec<Kept<T>>, Problem> {
    let mut query = query(kind, of, PAGE);
    let mut all = Vec::new();
    loop {
        let found = app.engine.store().records(&query).await?;
        let (more, last) = (found.len() == PAGE, found.last().map(|record| record.key.key.clone()));
        for record in found {
            all.push(decode(record)?);
        }
        if !more {
            return Ok(all);
        }
        query.after = last;
    }
}

/// A page of them, by key, after a key.
pub async fn page<T: DeserializeOwned>(
    app: &App,
    kind: &str,
    of: Of<'_>,
    after: Option<Arc<str>>,
    limit: usize,
) -> Result<Vec<Kept<T>>, Problem> {
    let query = RecordQuery { after, ..query(kind, of, limit) };
    app.engine.store().records(&query).await?.into_iter().map(decode).collect()
}

/// How many there are.
pub async fn count(app: &App, kind: &str, of: Of<'_>) -> Result<usize, Problem> {
    Ok(app.engine.store().count_records(&query(kind, of, PAGE)).await?)
}

fn query(kind: &str, of: Of<'_>, limit: usize) -> RecordQuery {
    let (parent, facet) = match of {
        Of::All => (None, None),
        Of::Under(parent) => (Some(parent.into()), None),
        Of::With(name, value) => (None, Some(Facet::new(name, value))),
    };
    RecordQuery { namespace: namespace(), kind: kind.into(), parent, facet, after: None, limit }
}

pub async fn has(app: &App, kind: &str, of: Of<'_>) -> Result<bool, Problem> {
    Ok(!app.engine.store().records(&query(kind, of, 1)).await?.is_empty())
}

/// A record to be written.
pub struct Put<'a> {
    pub kind: &'static str,
    pub name: &'a str,
    pub parent: Option<&'a str>,
    pub facets: Vec<Facet>,
    pub expect: Expect,
}

impl<'a> Put<'a> {
    pub fn new(kind: &'static str, name: &'a str, expect: Expect) -> Self {
        Self { kind, name, parent: None, facets: Vec::new(), expect }
    }
    pub fn under(mut self, parent: &'a str) -> Self {
        self.parent = Some(parent);
        self
    }
    pub fn facet(mut self, name: &str, value: &str) -> Self {
        self.facets.push(Facet::new(name, value));
        self
    }
    pub fn value<T: Serialize>(self, value: &T) -> Result<Command, Problem> {
        let text = serde_json::to_string(value).map_err(|error| Problem::new("internal", error.to_string()))?;
        Ok(self.text(text.into()))
    }
    pub fn text(self, value: Arc<str>) -> Command {
        PutRecord {
            key: key(self.kind, self.name),
            expect: self.expect,
            parent: self.parent.map(Arc::from),
            value,
            facets: self.facets,
            expires_at: None,
        }
        .into()
    }
}

pub fn delete(kind: &str, name: &str, expect: Expect) -> Command {
    DeleteRecord { key: key(kind, name), expect }.into()
}

/// An event in Silo's words, told if the rest is done.
pub fn tell(topic: &str, data: &Value) -> Command {
    Tell { namespace: namespace(), topic: topic.into(), data: data.to_string().into() }.into()
}

/// What a change wants written, and what is answered once it is.
pub struct Change<T> {
    pub commands: Vec<Command>,
    pub answer: T,
}

/// How often a change is worked out again. Each time, somebody else's got through.
pub const TRIES: usize = 100;

/// Works a change out and writes it, again and again while others are faster. A macro, because a closure that borrows what
/// its caller has cannot be shown to be `Send` by today's compiler.
macro_rules! settle {
    ($app:expr, $error:ty, $work_out:block) => {{
        let (mut tries, mut turn) = (0, None);
        loop {
            let worked_out: Result<$crate::product::store::Change<_>, $error> = async { $work_out }.await;
            let $crate::product::store::Change { commands, answer } = worked_out?;
            if commands.is_empty() {
                break Ok::<_, $error>(answer);
            }
            let Err(contended) = $crate::product::store::try_commit($app, commands).await? else {
                break Ok::<_, $error>(answer);
            };
            if turn.is_none() {
                turn = Some($app.product.turns.wait(&contended).await);
            }
            tries += 1;
            if tries == $crate::product::store::TRIES {
                break Err(<$error>::from($crate::product::store::outrun()));
            }
        }
    }};
}
pub(crate) use settle;

pub fn outrun() -> Problem {
    Problem::new("version-mismatch", "others kept changing the same things; try again")
}

/// All or nothing. None: what it was worked out on has changed.
pub async fn commit(app: &App, commands: Vec<Command>) -> Result<Option<Reply>, Problem> {
    Ok(try_commit(app, commands).await?.ok())
}

/// The same, and names the record that had changed.
pub async fn try_commit(app: &App, commands: Vec<Command>) -> Result<Result<Reply, String>, Problem> {
    match app.engine.run(All { commands }).await {
        Ok(reply) => Ok(Ok(reply)),
        Err(Error::Refused(
            Refusal::VersionMismatch { what: "record", name, .. } | Refusal::Exists { what: "record", name },
        )) => Ok(Err(name)),
        Err(error) => Err(error.into()),
    }
}

/// A record's text and version, unread.
pub async fn raw(app: &App, kind: &str, name: &str) -> Result<Option<(Arc<str>, u64)>, Problem> {
    let found = app.engine.store().record(&key(kind, name)).await?;
    Ok(found.map(|record| (record.value, record.version)))
}

/// Keys and texts of all records under a parent.
pub async fn raw_under(app: &App, kind: &str, parent: &str) -> Result<Vec<(Arc<str>, Arc<str>)>, Problem> {
    let mut query = query(kind, Of::Under(parent), PAGE);
    let mut all = Vec::new();
    loop {
        let found = app.engine.store().records(&query).await?;
        let more = found.len() == PAGE;
        query.after = found.last().map(|record| record.key.key.clone());
        all.extend(found.into_iter().map(|record| (record.key.key, record.value)));
        if !more {
            return Ok(all);
        }
    }
}
