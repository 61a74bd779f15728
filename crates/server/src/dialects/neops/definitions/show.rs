//! Versions of workflows and what changed between them, as clients see them.

use super::{super::body::time, rows::Row};
use serde_json::{Value, json};
use windlass_core::Timestamp;
use windlass_plan::neops::compare::{Finding, Level, Target};

/// Everything but the document.
pub fn head(row: &Row) -> Value {
    let entry = &row.entry;
    json!({
        "id": row.id, "package": row.package(), "name": row.own_name(),
        "majorVersion": entry.version.major, "minorVersion": entry.version.minor, "patchVersion": entry.version.patch,
        "createdAt": time(entry.created_at), "updatedAt": time(entry.updated_at), "deletedAt": maybe(entry.deleted_at),
        "createdBy": entry.by, "createdByUsername": entry.by,
    })
}

pub fn definition(row: &Row, document: Value) -> Value {
    let mut shown = head(row);
    shown["workflowDefinition"] = document;
    shown
}

pub fn maybe(at: Option<Timestamp>) -> Option<String> {
    at.map(time)
}

pub fn findings(findings: &[Finding]) -> Vec<Value> {
    findings.iter().map(finding).collect()
}

fn finding(finding: &Finding) -> Value {
    let Finding { code, path, message, level, target } = finding;
    let mut shown = json!({"code": code, "path": path, "message": message, "level": level.as_str()});
    if let Some(target) = target {
        shown["target"] = match target {
            Target::Step(label) => json!({"kind": "step", "label": label}),
            Target::Property(name) => json!({"kind": "schemaProperty", "property": name}),
        };
    }
    shown
}

pub fn level(level: Option<Level>) -> Option<&'static str> {
    level.map(Level::as_str)
}
