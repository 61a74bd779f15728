//! Definition files: `name`, `on`, `env`, `jobs`; YAML, or JSON, which is read by the same parser so that both have lines.

use super::{translate, wire};
use serde::Deserialize;
use std::collections::HashSet;
use windlass_yaml::{Booleans, Fault, Ordered, Spanned};

/// Larger files are no workflows.
pub const BYTES_MAX: usize = 4 << 20;

#[derive(Deserialize)]
struct File {
    name: String,
    on: Spanned<On>,
    #[serde(default)]
    env: Ordered<String, String>,
    jobs: Ordered<String, Spanned<FileJob>>,
}

/// For display only.
#[derive(Deserialize)]
#[serde(untagged)]
enum On {
    One(String),
    Several(Vec<String>),
    Map(Ordered<String, serde::de::IgnoredAny>),
}

#[derive(Deserialize)]
struct FileJob {
    name: Option<String>,
    #[serde(default)]
    needs: Option<Spanned<Needs>>,
    run: Option<String>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    env: Ordered<String, String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    retries: u32,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Needs {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
struct Step {
    id: Option<String>,
    name: Option<String>,
    run: Option<String>,
    #[serde(default)]
    env: Ordered<String, String>,
}

/// A workflow from a file's text.
pub fn parse(text: &str) -> Result<wire::Create, Fault> {
    let file: File = windlass_yaml::read(text, BYTES_MAX, Booleans::Loose)?;
    check_needs(&file)?;
    let jobs = file.jobs.0.iter().map(|(id, job)| job_of(id, job, &file.env)).collect::<Result<Vec<_>, _>>()?;
    translate::check(&jobs).map_err(Fault::nowhere)?;
    Ok(wire::Create { name: file.name, trigger: trigger(&file.on.value), jobs })
}

fn trigger(on: &On) -> String {
    let list = |names: Vec<&str>| format!("on: [{}]", names.join(", "));
    match on {
        On::One(name) => format!("on: {name}"),
        On::Several(names) => list(names.iter().map(String::as_str).collect()),
        On::Map(map) => list(map.0.iter().map(|(name, _)| name.as_str()).collect()),
    }
}

fn needs(job: &FileJob) -> &[String] {
    match job.needs.as_ref().map(|needs| &needs.value) {
        None => &[],
        Some(Needs::One(one)) => std::slice::from_ref(one),
        Some(Needs::Several(several)) => several,
    }
}

fn check_needs(file: &File) -> Result<(), Fault> {
    let known: HashSet<&String> = file.jobs.0.iter().map(|(id, _)| id).collect();
    for (id, job) in &file.jobs.0 {
        let unknown = |need: &&String| !known.contains(need);
        if let (Some(need), Some(place)) = (needs(&job.value).iter().find(unknown), &job.value.needs) {
            return Err(Fault::at(place.referenced, format!("Job '{id}' depends on '{need}', which doesn't exist")));
        }
    }
    Ok(())
}

fn job_of(id: &str, job: &Spanned<FileJob>, env: &Ordered<String, String>) -> Result<wire::Job, Fault> {
    let body = &job.value;
    if body.run.is_none() && body.steps.is_empty() {
        return Err(Fault::at(job.referenced, format!("Job '{id}' must have either 'run' or 'steps'")));
    }
    let value = serde_json::json!({
        "id": id,
        "name": body.name.as_deref().unwrap_or(id),
        "status": "queued",
        "command": command(body, env),
        "depends_on": needs(body),
        "required_labels": body.labels,
        "max_retries": body.retries,
    });
    serde_json::from_value(value).map_err(|error| Fault::at(job.referenced, error.to_string()))
}

/// The shell text: variables first, then what is to be run, each part only if the one before succeeded.
fn command(job: &FileJob, env: &Ordered<String, String>) -> String {
    let mut parts: Vec<String> = exports(env).chain(exports(&job.env)).collect();
    if job.steps.is_empty() {
        parts.extend(job.run.as_ref().map(|run| run.trim().to_owned()));
        return parts.join(" && ");
    }
    for (at, step) in job.steps.iter().enumerate() {
        let Some(run) = &step.run else { continue };
        let label = step.name.clone().or_else(|| step.id.clone()).unwrap_or_else(|| format!("step {}", at + 1));
        parts.extend(exports(&step.env));
        parts.push(format!("echo {}", quoted(&format!("=== {label} ==="))));
        parts.push(run.trim().to_owned());
    }
    parts.join(" && ")
}

fn exports(env: &Ordered<String, String>) -> impl Iterator<Item = String> {
    env.0.iter().map(|(name, value)| format!("export {}={}", name_of(name), quoted(value)))
}

/// What is no name of a variable would be more shell text; such characters become underscores.
fn name_of(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
