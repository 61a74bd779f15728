//! Which entities a run is about: clauses of the document, and clauses that acquire jobs answer.

use super::{
    read::{Fault, Fields, Reader},
    reference::{EntityType, is_label},
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Clauses of one step, or of one answer.
pub const CLAUSES_MAX: usize = 100;
/// Filters of all steps together, those that they share by reference counted for each.
const FILTERS_MAX: usize = 10_000;
/// Bytes of a query or a filter.
const TEXT_BYTES_MAX: usize = 4_096;

#[derive(Clone, Debug, PartialEq)]
pub struct Acquire {
    pub entity: EntityType,
    /// Finding nothing is a failure.
    pub not_empty: bool,
    pub by: By,
}

#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// A search. There is none here, so it finds nothing.
    Elastic { query: String, limit: Option<Value> },
    /// What belongs to the entities that the run started with, such as the interfaces of a device.
    Expansion { from_seed: bool },
    /// Those in the context that the expression is true for.
    Context { filter: Option<String> },
    /// What the step with this label acquired.
    Reference { label: String },
}

impl Acquire {
    /// One clause; faults are told with this place.
    pub fn read(value: &Value, place: &str) -> Result<Self, Vec<Fault>> {
        let mut reader = Reader::default();
        let made = read(&mut reader, value, place.to_owned());
        reader.done(made)
    }
}

/// Which entities steps are for: types, and expressions that must hold of them.
pub type Filters = Vec<Vec<(EntityType, String)>>;

/// By step. A step that refers to another is for those that the other one is for. Otherwise what is wrong.
pub fn filters(clauses: &[Vec<Acquire>], labels: &[&str]) -> Result<Filters, String> {
    let (mut all, mut count) = (Vec::new(), 0);
    for at in 0..clauses.len() {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        follow(clauses, labels, (at, None), &mut seen, &mut found)?;
        count += found.len();
        if count > FILTERS_MAX {
            return Err(format!("the steps have more than {FILTERS_MAX} filters, those they refer to included"));
        }
        all.push(found);
    }
    Ok(all)
}

fn follow(
    clauses: &[Vec<Acquire>],
    labels: &[&str],
    (at, only): (usize, Option<EntityType>),
    seen: &mut BTreeSet<(usize, Option<EntityType>)>,
    found: &mut Vec<(EntityType, String)>,
) -> Result<(), String> {
    if !seen.insert((at, only)) {
        return Ok(());
    }
    for clause in clauses[at].iter().filter(|clause| only.is_none_or(|only| clause.entity == only)) {
        match &clause.by {
            By::Context { filter: Some(filter) } => {
                let one = (clause.entity, filter.clone());
                // Steps that refer to each other share theirs.
                if !found.contains(&one) {
                    found.push(one);
                }
            }
            By::Reference { label } => {
                let other = place(labels, label)?;
                follow(clauses, labels, (other, Some(clause.entity)), seen, found)?;
            }
            By::Context { filter: None } | By::Elastic { .. } | By::Expansion { .. } => {}
        }
    }
    Ok(())
}

/// The step with this label.
pub fn place(labels: &[&str], label: &str) -> Result<usize, String> {
    let found = labels.iter().position(|known| *known == label);
    found.ok_or_else(|| format!("an acquire clause refers to step {label}, and there is none"))
}

pub(super) fn read(reader: &mut Reader, value: &Value, place: String) -> Option<Acquire> {
    let at = reader.object(value, place)?;
    let entity = reader.must_entity(&at, "entity");
    let not_empty = reader.flag(&at, "assertNotEmpty").unwrap_or_default();
    reader.text(&at, "description");
    Some(Acquire { entity, not_empty, by: by(reader, &at)? })
}

fn by(reader: &mut Reader, at: &Fields<'_>) -> Option<By> {
    Some(match reader.must_text(at, "type") {
        "elastic" => {
            let query = {
                reader.must(at, "query");
                bounded(reader, at, "query").unwrap_or_default()
            };
            By::Elastic { query, limit: limit(reader, at) }
        }
        "expansion" => By::Expansion { from_seed: reader.must_flag(at, "expandFromSeedEntity") },
        "context" => By::Context { filter: bounded(reader, at, "filter") },
        "reference" => {
            let label = reader.must_text(at, "label");
            if !is_label(label) {
                reader.fault(at.place("label"), format!("is not a label: {label:?}"));
            }
            By::Reference { label: label.to_owned() }
        }
        other => {
            let text = format!("must be elastic, expansion, context or reference; it is {other:?}");
            reader.fault(at.place("type"), text);
            return None;
        }
    })
}

fn bounded(reader: &mut Reader, at: &Fields<'_>, field: &str) -> Option<String> {
    let text = reader.text(at, field)?;
    if text.len() > TEXT_BYTES_MAX {
        reader.fault(at.place(field), format!("must have at most {TEXT_BYTES_MAX} bytes; it has {}", text.len()));
    }
    Some(text.to_owned())
}

/// A number, or a template that becomes one.
fn limit(reader: &mut Reader, at: &Fields<'_>) -> Option<Value> {
    if !reader.has(at, "limit") {
        return None;
    }
    let found = reader.must(at, "limit")?;
    if !found.is_number() && !found.is_string() {
        reader.fault(at.place("limit"), "must be a number or a template");
    }
    Some(found.clone())
}
