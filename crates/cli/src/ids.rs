//! Ids of jobs and runs as people type them: whole, abbreviated, or `last`.

use crate::profile::{folder, write_private};
use anyhow::{anyhow, bail, ensure};
use std::{collections::BTreeMap, path::PathBuf};
use windlass_api::{
    Uuid,
    job::{Job, ListJobs},
    workflow::ListRuns,
};
use windlass_sdk::Client;

const CANDIDATES: u32 = 10;
const PREFIX_MIN: usize = 4;
/// Runs that an abbreviation is looked for among, the newest first.
const RUNS_SEEN: u32 = 1_000;
/// Servers and namespaces whose last job is remembered.
const REMEMBERED_MAX: usize = 100;

/// The job that is meant.
pub async fn job(client: &Client, text: &str) -> anyhow::Result<Uuid> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    if text == "last" {
        return last(client).await;
    }
    let prefix = match prefix(text, "job") {
        Ok(prefix) => prefix,
        Err(error) => return Err(named(client, text).await.unwrap_or(error)),
    };
    let query = ListJobs { id: Some(prefix.clone()), limit: Some(CANDIDATES), ..ListJobs::default() };
    let mut found = client.jobs(&query).await?.items;
    found.retain(|job| job.id.to_string().starts_with(&prefix));
    match &found[..] {
        [job] => Ok(job.id),
        [] => {
            let none = anyhow!("no job in the namespace {} has an id that begins with {text}", client.namespace());
            Err(named(client, text).await.unwrap_or(none))
        }
        several => bail!("{text} could be any of these; type more of it:{}", list(several)),
    }
}

fn list(jobs: &[Job]) -> String {
    jobs.iter().map(|job| format!("\n  {}  {}", job.id, job.state.name())).collect()
}

/// Says that a name was given in place of an id: `cafe` may be either. None: no job is called so.
async fn named(client: &Client, text: &str) -> Option<anyhow::Error> {
    let query = ListJobs { name: Some(text.to_owned()), limit: Some(CANDIDATES), ..ListJobs::default() };
    let found = client.jobs(&query).await.ok()?.items;
    let list = (!found.is_empty()).then(|| list(&found))?;
    Some(anyhow!("no job id begins with {text}, but the names of these jobs do; give the id of one:{list}"))
}

fn prefix(text: &str, what: &str) -> anyhow::Result<String> {
    let looks_right = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    ensure!(looks_right, "{text:?} is no {what} id; it looks like 0190c0de-…, may be abbreviated, or is `last`");
    ensure!(text.len() >= PREFIX_MIN, "{text:?} is too short; type at least {PREFIX_MIN} characters of the id");
    Ok(text.to_ascii_lowercase())
}

/// The run that is meant.
pub async fn run(client: &Client, text: &str) -> anyhow::Result<Uuid> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let last = text == "last";
    if last && let Some(id) = remembered().get(&run_place(client)) {
        // It may be gone by now, or the server may be another one at the same address.
        match client.run(*id).await {
            Ok(run) => return Ok(run.id),
            Err(error) if error.status() == Some(404) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let prefix = if last { String::new() } else { prefix(text, "run")? };
    let limit = Some(if last { 1 } else { RUNS_SEEN });
    let mut found = client.runs(&ListRuns { limit, ..ListRuns::default() }).await?.items;
    found.retain(|run| run.id.to_string().starts_with(&prefix));
    match &found[..] {
        [run] => Ok(run.id),
        [] if last => {
            bail!("there is no run in the namespace {} yet; start one: windlass workflow run FILE", client.namespace())
        }
        [] => bail!("no run in the namespace {} begins with {text}", client.namespace()),
        several => {
            let some = several.iter().take(CANDIDATES as usize);
            let list: String = some.map(|run| format!("\n  {}  {}", run.id, run.state.name())).collect();
            bail!("{text} could be any of these; type more of it:{list}")
        }
    }
}

pub async fn jobs(client: &Client, texts: &[String]) -> anyhow::Result<Vec<Uuid>> {
    let mut found = Vec::with_capacity(texts.len());
    for text in texts {
        found.push(job(client, text).await?);
    }
    Ok(found)
}

/// What was submitted last from here, else the newest job there is.
async fn last(client: &Client) -> anyhow::Result<Uuid> {
    if let Some(id) = remembered().get(&place(client)) {
        // It may be gone by now, or the server may be another one at the same address.
        match client.job(*id).await {
            Ok(job) => return Ok(job.id),
            Err(error) if error.status() == Some(404) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let newest = client.jobs(&ListJobs { limit: Some(1), ..ListJobs::default() }).await?;
    match newest.items.first() {
        Some(job) => Ok(job.id),
        None => bail!(
            "there is no job in the namespace {} yet; submit one: windlass submit --shell 'echo hello'",
            client.namespace()
        ),
    }
}

fn place(client: &Client) -> String {
    format!("{} {}", client.base(), client.namespace())
}

fn run_place(client: &Client) -> String {
    format!("{} run", place(client))
}

fn file() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("last.json"))
}

fn remembered() -> BTreeMap<String, Uuid> {
    let text = file().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

pub fn remember(client: &Client, id: Uuid) {
    keep(place(client), id);
}

pub fn remember_run(client: &Client, id: Uuid) {
    keep(run_place(client), id);
}

/// Only a convenience, so nothing is said where it cannot be kept.
fn keep(place: String, id: Uuid) {
    let Some(file) = file() else { return };
    let mut all = remembered();
    if all.len() >= REMEMBERED_MAX {
        all.clear();
    }
    all.insert(place, id);
    if let Ok(text) = serde_json::to_vec(&all) {
        drop(write_private(&file, &text));
    }
}
