//! What jobs of workflow-graph have beyond ours: a name within a workflow, what the jobs before them handed on, and what they
//! hand on themselves.

use crate::{folder::Folder, output::Output};
use serde::Deserialize;
use std::{collections::BTreeMap, ffi::OsString, fs, io};
use windlass_sdk::{
    api::{Json, RawValue},
    worker::Failure,
};

pub type Outputs = BTreeMap<String, String>;

/// A job as its server describes it.
#[derive(Debug, Deserialize)]
pub struct Job {
    pub job_id: String,
    pub workflow_id: String,
    pub command: String,
    /// By the name of the job that handed it on.
    #[serde(default)]
    pub upstream_outputs: BTreeMap<String, Outputs>,
}

impl Job {
    pub fn parse(payload: &str) -> Result<Self, Failure> {
        let job: Job = serde_json::from_str(payload)
            .map_err(|error| Failure::permanent(format!("the server's description of the job is none: {error}")))?;
        if job.command.contains('\0') {
            return Err(Failure::permanent("the command cannot be run: a zero byte is not possible"));
        }
        Ok(job)
    }
}

/// What a command is told: which job it is, and in a file and in variables what was handed on to it.
pub fn about(payload: Option<&Json>, folder: &Folder) -> io::Result<Vec<(OsString, OsString)>> {
    let job =
        Job::parse(payload.map_or("null", |json| json.get())).map_err(|failure| io::Error::other(failure.message))?;
    fs::write(folder.upstream(), serde_json::to_vec(&job.upstream_outputs)?)?;
    let mut about: Vec<(OsString, OsString)> = vec![
        ("WINDLASS_JOB_ID".into(), job.job_id.into()),
        ("WINDLASS_WORKFLOW_ID".into(), job.workflow_id.into()),
        ("WINDLASS_UPSTREAM".into(), folder.upstream().into()),
        ("WINDLASS_OUTPUTS".into(), folder.outputs().into()),
    ];
    about.extend(variables(&job.upstream_outputs).into_iter().map(|(name, value)| (name.into(), value.into())));
    Ok(about)
}

/// `WINDLASS_UPSTREAM_BUILD_ARTIFACT_URL` for `artifact_url` of `build`. Where two names become one the first in order of the
/// alphabet has it; the file has them all. What cannot be in an environment is only in the file.
pub fn variables(upstream: &BTreeMap<String, Outputs>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for (job, outputs) in upstream {
        for (name, value) in outputs.iter().filter(|(_, value)| !value.contains('\0')) {
            let name = format!("WINDLASS_UPSTREAM_{}_{}", shout(job), shout(name));
            variables.entry(name).or_insert_with(|| value.clone());
        }
    }
    variables
}

fn shout(name: &str) -> String {
    name.chars().map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_uppercase() } else { '_' }).collect()
}

/// What the command hands on: `::set-output` lines, then `name=value` lines of its outputs file, then the members of its
/// result file; the later say wins.
pub fn outputs(output: &Output, folder: &Folder) -> Result<Box<RawValue>, Failure> {
    let unread = |what: &str, error: io::Error| Failure::permanent(format!("the {what} file cannot be read: {error}"));
    let mut all: serde_json::Map<String, serde_json::Value> =
        output.outputs().into_iter().map(|(name, value)| (name, value.into())).collect();
    let lines = folder.read_outputs().map_err(|error| unread("outputs", error))?.unwrap_or_default();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
            return Err(Failure::permanent(format!("the outputs file has a line that is not name=value: {line:?}")));
        };
        all.insert(name.trim().to_owned(), value.into());
    }
    if let Some(text) = folder.read_result().map_err(|error| unread("result", error))? {
        match serde_json::from_str(&text) {
            Ok(serde_json::Value::Object(members)) => all.extend(members),
            Ok(_) => return Err(Failure::permanent("the result file must hold a JSON object of outputs")),
            Err(error) => return Err(Failure::permanent(format!("the result file is not valid JSON: {error}"))),
        }
    }
    serde_json::value::to_raw_value(&all).map_err(|error| Failure::permanent(error.to_string()))
}
