//! Definition files of workflow-graph, which have `jobs` where ours have `steps`.

use super::Part;
use serde_json::{Map, Value, json};
use windlass_server::dialects::workflow_graph::file;

pub const PART: &Part = &Part { workflow: Some(convert), ..Part::NOTHING };

pub fn convert(text: &str) -> Option<anyhow::Result<Value>> {
    let is_json = text.trim_start().starts_with('{');
    let has = |key: &str| match is_json {
        true => serde_json::from_str::<Map<String, Value>>(text).is_ok_and(|members| members.contains_key(key)),
        false => text.lines().any(|line| line.starts_with(&format!("{key}:"))),
    };
    if has("steps") || !has("jobs") {
        return None;
    }
    let made = match file::parse(text) {
        Ok(made) => made,
        Err(fault) => return Some(Err(anyhow::anyhow!("{fault}"))),
    };
    let mut steps = Map::new();
    for job in made.jobs {
        let mut step = json!({"run": job.command});
        if !job.depends_on.is_empty() {
            step["needs"] = json!(job.depends_on);
        }
        if !job.required_labels.is_empty() {
            step["tags"] = json!(job.required_labels);
        }
        if job.max_retries > 0 {
            step["retry"] = json!({"attempts": job.max_retries.saturating_add(1)});
        }
        steps.insert(job.id, step);
    }
    let name: String =
        made.name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    Some(Ok(json!({"name": name, "steps": steps})))
}
