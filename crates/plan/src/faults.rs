//! Everything that is wrong with a definition that cannot be read, at once. What cannot be read is told and left out; the rest is
//! checked as ever. Only for files that have a mistake in their form.

use crate::{
    format::{BYTES_MAX, Fault, File, FileStep, InStep},
    workflow::{FAULTS_MAX, Workflow},
};
use serde::de::DeserializeOwned;
use windlass_api::fields::With;
use windlass_yaml::{Booleans, Entry, Node, Tree, parts};

/// `first` is what the reader stopped at.
pub(crate) fn all(text: &str, first: Fault) -> Vec<Fault> {
    let Ok(mut tree) = windlass_yaml::read::<Tree>(text, BYTES_MAX, Booleans::Strict) else { return vec![first] };
    let Node::Map(settings) = &mut tree.node else { return vec![first] };
    let mut faults = Vec::new();
    settings.retain_mut(|setting| readable(setting, &mut faults));
    let (rest, places) = parts::relined(&tree);
    if let Err(more) = Workflow::check(&rest) {
        faults.extend(more.into_iter().map(|fault| moved(fault, &places)));
    }
    faults.sort_by_key(|fault| (fault.line, fault.column));
    faults.truncate(FAULTS_MAX);
    if faults.is_empty() { vec![first] } else { faults }
}

/// Leaves out what cannot be read; false: all of it.
fn readable(setting: &mut Entry, faults: &mut Vec<Fault>) -> bool {
    if let ("steps", Node::Map(steps)) = (setting.key.as_str(), &mut setting.value.node) {
        for entry in steps {
            step(entry, faults);
            if faults.len() >= FAULTS_MAX {
                break;
            }
        }
        return true;
    }
    let found = parts::faults(setting, &setting.key, &|text| {
        let alone = read::<File>(text);
        // The rest of the file is elsewhere.
        alone.or_else(|fault| if fault.text.starts_with("missing field") { Ok(()) } else { Err(fault) })
    });
    let fits = found.is_empty();
    faults.extend(found);
    fits
}

/// A step that cannot be read stays as one without settings, so that others may name it.
fn step(entry: &mut Entry, faults: &mut Vec<Fault>) {
    let id = format!("steps.{}", entry.key);
    let Node::Map(settings) = &mut entry.value.node else {
        if let Err(fault) = read::<FileStepWith>(&parts::relined(&entry.value).0) {
            faults.push(entry.fault(&id, fault.text));
            entry.value.node = Node::Map(Vec::new());
        }
        return;
    };
    let mut unknown_needs = false;
    settings.retain(|setting| {
        let found = parts::faults(setting, &format!("{id}.{}", setting.key), &read::<FileStepWith>);
        let fits = found.is_empty();
        unknown_needs |= !fits && setting.key == "needs";
        faults.extend(found);
        fits
    });
    if unknown_needs {
        // Its expressions cannot be checked.
        settings.clear();
    }
}

type FileStepWith = With<FileStep, InStep>;

/// Reads what was made of a file.
pub(crate) fn relined<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    windlass_yaml::read(text, parts::BYTES * BYTES_MAX, Booleans::Strict)
}

fn read<T: DeserializeOwned>(text: &str) -> Result<(), Fault> {
    relined(text).map(|_: T| ())
}

fn moved(fault: Fault, places: &[(u64, u64)]) -> Fault {
    let at = usize::try_from(fault.line).ok().and_then(|line| places.get(line.checked_sub(1)?));
    let (line, column) = at.copied().unwrap_or_default();
    Fault { line, column, ..fault }
}
