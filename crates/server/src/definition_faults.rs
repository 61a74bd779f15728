//! Everything that is wrong with a definition file, at once: whoever writes one should not have to run a check for each mistake.
//!
//! Only read when the file cannot be used. Its settings are then tried one by one, each with the place it stands at.

use crate::{definition, problem::Problem};
use serde::de::DeserializeOwned;
use serde_json::json;
use windlass_api::definition::DefinitionBody;
use windlass_core::Limits;
use windlass_yaml::{Booleans, Entry, Fault, Node, Tree, parts};

/// Nobody reads more of them at a time.
pub const FAULTS_MAX: usize = 20;

/// What is wrong with the settings of a file. Empty where each of them alone would do.
pub fn of_settings(settings: &Settings, limits: &Limits) -> Vec<Fault> {
    let mut faults = Vec::new();
    for entry in settings.0.iter().filter(|entry| entry.key != "name") {
        setting(entry, limits, &mut faults);
    }
    faults.truncate(FAULTS_MAX);
    faults
}

fn setting(entry: &Entry, limits: &Limits, faults: &mut Vec<Fault>) {
    let body = serde_json::from_value::<DefinitionBody>(json!({ &entry.key: entry.value.node.json() }));
    match body {
        Ok(body) => {
            faults.extend(definition::check("x", &body, limits).err().map(|problem| at(entry, problem.0.to_string())))
        }
        Err(_) => {
            faults.extend(parts::faults(entry, &entry.key, &|text| {
                let alone =
                    windlass_yaml::read::<DefinitionBody>(text, parts::BYTES * definition::BYTES_MAX, Booleans::Loose);
                alone.map(drop)
            }));
        }
    }
}

fn at(entry: &Entry, text: String) -> Fault {
    Fault { line: entry.line, column: entry.column, text, ..Fault::default() }
}

/// A problem where the setting stands that it names.
pub fn placed(settings: &Settings, problem: &Problem) -> Fault {
    let (field, text) = (problem.0.field.as_deref().unwrap_or_default(), problem.0.to_string());
    let first = field.split(['.', '[', '/']).next();
    match settings.0.iter().find(|entry| first == Some(&entry.key)) {
        Some(entry) => at(entry, text),
        None => Fault::nowhere(text),
    }
}

/// What a file says, with the places it says it at.
#[derive(Default)]
pub struct Settings(Vec<Entry>);

impl Settings {
    /// None where the file cannot be read at all.
    pub fn read(text: &str) -> Self {
        match read(text) {
            Ok(Tree { node: Node::Map(entries), .. }) => Self(entries),
            _ => Self::default(),
        }
    }
}

pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    windlass_yaml::read(text, definition::BYTES_MAX, Booleans::Loose)
}
