//! Workflows as they are kept: a head that names the version in force, and versions that never change.
//!
//! A definition may be larger than a record, so its text lies in pieces beside its version.

use crate::{
    app::App,
    aside::Large,
    problem::{Code, Problem, Result},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_core::{
    Command, Namespace, RecordKey, Refusal, Timestamp,
    commands::{
        all::All,
        audited::Audited,
        records::{DeleteRecord, Expect, PutRecord},
    },
    payload,
};
use windlass_engine::{Error, store::RecordQuery};
use windlass_plan::{Fault, Workflow};

/// Also the name of operators' acts on it.
pub const HEAD: &str = "workflow";
pub const VERSION: &str = "workflow_version";
const PART: &str = "workflow_source";
const PART_BYTES: usize = 256 << 10;
const PAGE: usize = 1_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkflowHead {
    pub latest: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    pub name: String,
    pub version: u32,
    pub created_at: Timestamp,
    #[serde(default)]
    pub description: String,
    pub steps: u32,
    #[serde(default)]
    pub staged: bool,
    parts: usize,
}

fn key(namespace: &Namespace, kind: &str, key: &str) -> RecordKey {
    RecordKey { namespace: namespace.clone(), kind: kind.into(), key: key.into() }
}

/// Sorts by name, then by version.
fn version_key(name: &str, version: u32) -> String {
    format!("{name}@{version:010}")
}

fn part_key(name: &str, version: u32, part: usize) -> String {
    format!("{name}@{version:010}/{part:06}")
}

fn damaged(what: &str, error: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Damaged, format!("the workflow {what} cannot be read: {error}"))
}

/// What is wrong with a definition, as an answer: the first fault's field, and all of them with their places.
pub fn problem(faults: &[Fault]) -> Problem {
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let field = faults.first().map(|fault| fault.field.clone()).filter(|field| !field.is_empty());
    Problem::invalid(field.unwrap_or_else(|| "definition".into()), told.join("\n"))
}

/// Read and checked aside: a large definition takes seconds.
pub async fn parse(app: &App, namespace: &Namespace, source: String) -> Result<Large<Workflow>> {
    let read = move || {
        let made = Workflow::parse(&source).map_err(|faults| problem(&faults))?;
        if let Some(schema) = &made.input_schema {
            crate::schema::check_value("input_schema", schema, None)?;
        }
        Ok(made)
    };
    app.aside.run_large(namespace, read).await
}

async fn head(app: &App, namespace: &Namespace, name: &str) -> Result<Option<(WorkflowHead, u64)>> {
    let Some(record) = app.engine.store().record(&key(namespace, HEAD, name)).await? else { return Ok(None) };
    let head = serde_json::from_str(&record.value).map_err(|error| damaged(name, error))?;
    Ok(Some((head, record.version)))
}

/// The version asked for; the one in force where none is. A deleted workflow's versions stay readable by their numbers.
pub async fn load(app: &App, namespace: &Namespace, name: &str, version: Option<u32>) -> Result<Option<Version>> {
    let version = match version {
        Some(version) => version,
        None => match head(app, namespace, name).await? {
            Some((head, _)) => head.latest,
            None => return Ok(None),
        },
    };
    let found = app.engine.store().record(&key(namespace, VERSION, &version_key(name, version))).await?;
    found.map(|record| read(&record.value)).transpose()
}

pub fn read(value: &str) -> Result<Version> {
    serde_json::from_str(value).map_err(|error| damaged("version", error))
}

pub async fn source(app: &App, namespace: &Namespace, version: &Version) -> Result<String> {
    let mut text = String::new();
    for part in 0..version.parts {
        let at = part_key(&version.name, version.version, part);
        let found = app.engine.store().record(&key(namespace, PART, &at)).await?;
        let record = found.ok_or_else(|| damaged(&version.name, "a piece of its text is missing"))?;
        text += &serde_json::from_str::<String>(&record.value).map_err(|error| damaged(&version.name, error))?;
    }
    Ok(text)
}

pub async fn versions(
    app: &App,
    namespace: &Namespace,
    name: &str,
    after: Option<Arc<str>>,
    limit: usize,
) -> Result<Vec<Version>> {
    let query = RecordQuery { parent: Some(name.into()), after, limit, ..RecordQuery::all(namespace.clone(), VERSION) };
    let found = app.engine.store().records(&query).await?;
    found.iter().map(|record| read(&record.value)).collect()
}

/// What a write came to, and whether it changed anything. The text comes with what it was read as.
pub async fn put(
    app: &App,
    namespace: &Namespace,
    name: &str,
    (source_text, made): (&str, &Workflow),
    by: &Arc<str>,
) -> Result<(Version, bool)> {
    check_name(name, made)?;
    let before = head(app, namespace, name).await?;
    if let Some(version) = load(app, namespace, name, None).await?
        && source(app, namespace, &version).await? == source_text
    {
        return Ok((version, false));
    }
    let latest = match &before {
        Some((head, _)) => head.latest,
        None => last_version(app, namespace, name).await?,
    };
    let version = Version {
        name: name.to_owned(),
        version: latest + 1,
        created_at: app.engine.now().await?,
        description: made.description.clone(),
        steps: made.steps.len() as u32,
        staged: made.is_staged(),
        parts: pieces(source_text).len(),
    };
    let (home, own, text) = (namespace.clone(), version.clone(), source_text.to_owned());
    let work = move || writes(&home, &own, &pieces(&text), before.map(|(_, version)| version));
    let commands = app.aside.run(namespace, work).await??;
    match app.engine.run(Audited::told(by, "workflow_put", name, All { commands })).await {
        Ok(_) => Ok((version, true)),
        Err(Error::Refused(Refusal::Exists { .. } | Refusal::VersionMismatch { .. })) => Err(Problem::new(
            Code::VersionMismatch,
            format!("the workflow {name} was written by somebody else just now"),
        )),
        Err(error) => Err(error.into()),
    }
}

pub fn check_name(name: &str, made: &Workflow) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || name.len() > windlass_plan::workflow::NAME_MAX || !name.bytes().all(fits) {
        return Err(Problem::invalid("name", format!("{name:?} is not a name: use letters, digits, '_', '-', '.'")));
    }
    match made.name.as_deref() {
        Some(own) if own != name => {
            Err(Problem::invalid("name", format!("the definition calls itself {own:?}, not {name:?}")))
        }
        _ => Ok(()),
    }
}

/// Of a workflow that was deleted: its numbers go on.
async fn last_version(app: &App, namespace: &Namespace, name: &str) -> Result<u32> {
    let (mut last, mut after) = (0, None);
    loop {
        let page = versions(app, namespace, name, after, PAGE).await?;
        let Some(end) = page.last() else { return Ok(last) };
        last = end.version;
        after = Some(version_key(name, last).into());
    }
}

fn pieces(text: &str) -> Vec<&str> {
    payload::pieces(text, PART_BYTES).collect()
}

fn writes(namespace: &Namespace, version: &Version, parts: &[&str], head: Option<u64>) -> Result<Vec<Command>> {
    let text = |value: &dyn erased::Json| value.text().map_err(|error| Problem::new(Code::Internal, error.to_string()));
    let put = |kind: &str, at: &str, parent: Option<&str>, value: String, expect| -> Command {
        let parent = parent.map(Into::into);
        let key = key(namespace, kind, at);
        PutRecord { key, expect, parent, value: value.into(), facets: Vec::new(), expires_at: None }.into()
    };
    let name = &version.name;
    let expect = head.map_or(Expect::Nothing, Expect::Version);
    let mut commands = vec![put(HEAD, name, None, text(&WorkflowHead { latest: version.version })?, expect)];
    commands.push(put(VERSION, &version_key(name, version.version), Some(name), text(version)?, Expect::Nothing));
    for (at, part) in parts.iter().enumerate() {
        commands.push(put(PART, &part_key(name, version.version, at), Some(name), text(part)?, Expect::Nothing));
    }
    Ok(commands)
}

/// Anything that becomes JSON text.
mod erased {
    pub trait Json {
        fn text(&self) -> serde_json::Result<String>;
    }
    impl<T: serde::Serialize> Json for T {
        fn text(&self) -> serde_json::Result<String> {
            serde_json::to_string(self)
        }
    }
}

/// Its versions stay, for the runs made from them.
pub async fn delete(app: &App, namespace: &Namespace, name: &str, by: &Arc<str>) -> Result<()> {
    let found = head(app, namespace, name).await?.ok_or_else(|| Problem::not_found("workflow", name))?;
    let delete = DeleteRecord { key: key(namespace, HEAD, name), expect: Expect::Version(found.1) };
    app.engine.run(Audited::told(by, "workflow_deleted", name, delete)).await?;
    Ok(())
}
