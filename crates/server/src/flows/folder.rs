//! Workflow files in a folder: each becomes a version of the workflow it names, or is named after.

use super::stored;
use crate::{
    app::App,
    folders::{self, InFile, Loaded},
    problem::Problem,
};
use std::{path::Path, sync::Arc};
use windlass_core::Namespace;
use windlass_plan::{BYTES_MAX, Fault, Workflow, is_native};

/// Loads one file if it is a workflow of ours; None: it is something else. A faulty file leaves the version in force.
pub async fn load_file(app: &App, namespace: &Namespace, file: &Path) -> Option<Result<(String, bool), InFile>> {
    let path = file.to_owned();
    let read = move || {
        let text = match folders::read(&path, BYTES_MAX) {
            Ok(text) if is_native(&text) => text,
            Ok(_) => return None,
            Err(error) => return Some(Err(error.to_string())),
        };
        let made = Workflow::parse(&text);
        Some(Ok((text, made)))
    };
    let in_file = |fault| InFile { file: file.to_owned(), fault };
    let refused = |problem: Problem| in_file(Fault::nowhere(problem.0.to_string()));
    let (text, made) = match app.aside.run(namespace, read).await {
        Ok(None) => return None,
        Ok(Some(Ok(read))) => read,
        Ok(Some(Err(why))) => return Some(Err(in_file(Fault::nowhere(why)))),
        Err(problem) => return Some(Err(refused(problem))),
    };
    let made = match made {
        Ok(made) => made,
        Err(faults) => {
            let text = faults.iter().map(Fault::sentence).collect::<Vec<_>>().join("; ");
            let place = faults.first().map_or((0, 0), |first| (first.line, first.column));
            return Some(Err(in_file(Fault { line: place.0, column: place.1, text, ..Fault::default() })));
        }
    };
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = made.name.as_deref().unwrap_or(stem);
    let by: Arc<str> = "workflows folder".into();
    let put = stored::put(app, namespace, name, (&text, &made), &by).await;
    Some(put.map(|(_, new)| (name.to_owned(), new)).map_err(refused))
}

/// Loads the workflows of ours in a folder of workflows; the others are the dialect's.
pub async fn load(app: &App, namespace: &Namespace, folder: &Path) -> Loaded {
    let mut loaded = Loaded::default();
    for file in folders::list(folder).unwrap_or_default() {
        match load_file(app, namespace, &file).await {
            Some(Ok((name, true))) => loaded.changed.push(name),
            Some(Ok((_, false))) => loaded.unchanged += 1,
            Some(Err(fault)) => loaded.faults.push(fault),
            None => {}
        }
    }
    loaded
}
