//! The folder of definition files: what is in it becomes what is in force.
//!
//! Each file stands alone. One that cannot be used leaves what it said last in force; one that is gone takes its definition
//! with it, but not the jobs, which carry all they need.

use super::{
    Definition, InForce,
    file::{self, Fault},
};
use crate::{
    dialects::silo::{
        Silo,
        error::{HttpError, Result},
        namespace, schedule,
    },
    folders,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use windlass_core::{
    Command,
    commands::{
        all::All,
        audited::Audited,
        definitions::{DeleteDefinition, PutDefinition},
    },
};

const FILES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Loaded {
    pub in_force: Vec<String>,
    pub added: Vec<String>,
    pub updated: Vec<String>,
    pub unchanged: Vec<String>,
    pub removed: Vec<String>,
    pub errors: Vec<Fault>,
}

impl Loaded {
    pub fn show(&self) -> Value {
        json!({
            "loaded": self.in_force.len(),
            "definitions": self.in_force,
            "added": self.added,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "removed": self.removed,
            "errors": self.errors,
        })
    }
}

/// Files as they are now, and what is wrong with some of them.
#[derive(Default)]
struct Found {
    good: BTreeMap<String, Definition>,
    /// Base names of files that cannot be used.
    bad: Vec<String>,
    errors: Vec<Fault>,
}

fn list(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        let wanted = !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"));
        if wanted && path.is_file() && files.len() < FILES_MAX {
            files.push((name, path));
        }
    }
    files.sort();
    Ok(files)
}

fn look(folder: &Path, priority: i32) -> std::io::Result<Found> {
    let mut found = Found::default();
    for (name, path) in list(folder)? {
        let fault = |at: file::Spot, field: Option<&str>, message: String| {
            vec![Fault { file: name.clone(), line: at.0, column: at.1, field: field.map(str::to_owned), message }]
        };
        let text = folders::read(&path, file::BYTES_MAX).map_err(|error| error.to_string());
        let parsed = match &text {
            Ok(text) => file::parse(&name, text, priority),
            Err(why) => Err(fault((1, 1), None, why.clone())),
        };
        let parsed = parsed.and_then(|made| match found.good.get(&made.name) {
            Some(first) => {
                let why = format!("the name {} is taken by {}", made.name, first.source_file);
                Err(fault(file::name_place(text.as_deref().unwrap_or("")), Some("name"), why))
            }
            None => Ok(made),
        });
        match parsed {
            Ok(made) => drop(found.good.insert(made.name.clone(), made)),
            Err(mut errors) => {
                found.bad.push(name);
                found.errors.append(&mut errors);
            }
        }
    }
    Ok(found)
}

/// Reads the folder and puts it into force. What cannot be read at all changes nothing.
pub async fn load(app: &Silo, by: &Arc<str>) -> Result<Loaded> {
    // One at a time, so that each tells what it did itself.
    let _one = app.own.reload.lock().await;
    let settings = &app.own.settings;
    let (folder, priority) = (settings.directory.clone(), settings.default_priority);
    let found = app.aside.run(&super::namespace(), move || look(&folder, priority)).await?.map_err(|error| {
        HttpError::internal(format!("the folder {} cannot be read: {error}", settings.directory.display()))
    })?;
    let stored = super::all(app).await?;
    let (mut loaded, mut commands) = (Loaded::default(), Vec::new());
    for (name, made) in &found.good {
        let before = stored.iter().find(|stored| stored.definition.name == *name);
        match before {
            Some(before) if *before.definition == *made => loaded.unchanged.push(name.clone()),
            _ => {
                let list = if before.is_some() { &mut loaded.updated } else { &mut loaded.added };
                list.push(name.clone());
                commands.push(put(made)?);
            }
        }
        loaded.in_force.push(name.clone());
    }
    for InForce { definition, .. } in stored.iter().filter(|stored| !found.good.contains_key(&stored.definition.name)) {
        if found.bad.contains(&definition.source_file) {
            loaded.in_force.push(definition.name.clone());
        } else {
            loaded.removed.push(definition.name.clone());
            let name = definition.name.as_str().into();
            commands.push(DeleteDefinition { namespace: namespace(), name }.into());
        }
    }
    if !commands.is_empty() {
        app.engine.run(Audited::new(by, All { commands })).await?;
    }
    loaded.in_force.sort();
    loaded.errors = found.errors;
    *app.own.faults.lock() = loaded.errors.len();
    schedule::follow(app).await?;
    Ok(loaded)
}

fn put(definition: &Definition) -> Result<Command> {
    let body = serde_json::to_string(definition).map_err(|error| HttpError::internal(error.to_string()))?;
    Ok(PutDefinition { namespace: namespace(), name: definition.name.as_str().into(), body: body.into() }.into())
}
