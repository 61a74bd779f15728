//! Job ids as people type them: whole, abbreviated, or `last`.

use crate::profile::{folder, write_private};
use anyhow::{bail, ensure};
use std::{collections::BTreeMap, path::PathBuf};
use windlass_api::{Uuid, job::ListJobs};
use windlass_sdk::Client;

const CANDIDATES: u32 = 10;
const PREFIX_MIN: usize = 4;
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
    let looks_right = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    ensure!(looks_right, "{text:?} is no job id; it looks like 0190c0de-…, may be abbreviated, or is `last`");
    ensure!(text.len() >= PREFIX_MIN, "{text:?} is too short; type at least {PREFIX_MIN} characters of the id");
    let prefix = text.to_ascii_lowercase();
    let query = ListJobs { id: Some(prefix.clone()), limit: Some(CANDIDATES), ..ListJobs::default() };
    let mut found = client.jobs(&query).await?.items;
    found.retain(|job| job.id.to_string().starts_with(&prefix));
    match &found[..] {
        [job] => Ok(job.id),
        [] => bail!("no job in the namespace {} begins with {text}", client.namespace()),
        several => {
            let list: String = several.iter().map(|job| format!("\n  {}  {}", job.id, job.state.name())).collect();
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
        None => bail!("there is no job in the namespace {} yet; submit one: windlass submit", client.namespace()),
    }
}

fn place(client: &Client) -> String {
    format!("{} {}", client.base(), client.namespace())
}

fn file() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("last.json"))
}

fn remembered() -> BTreeMap<String, Uuid> {
    let text = file().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Only a convenience, so nothing is said where it cannot be kept.
pub fn remember(client: &Client, id: Uuid) {
    let Some(file) = file() else { return };
    let mut all = remembered();
    if all.len() >= REMEMBERED_MAX {
        all.clear();
    }
    all.insert(place(client), id);
    if let Ok(text) = serde_json::to_vec(&all) {
        drop(write_private(&file, &text));
    }
}
