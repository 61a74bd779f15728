//! Workflow files in a folder: each becomes a version of the workflow it names, or is named after.

use super::stored;
use crate::{
    app::App,
    definitions::{Fault, Report},
};
use std::{path::Path, sync::Arc};
use windlass_core::Namespace;
use windlass_plan::{Workflow, is_native};

/// Loads one file if it is a workflow of ours; None: it is something else. A faulty file leaves the version in force.
pub async fn load_file(app: &App, namespace: &Namespace, file: &Path) -> Option<Result<(String, bool), Fault>> {
    let path = file.to_owned();
    let read = move || {
        let text = std::fs::read_to_string(&path).ok().filter(|text| is_native(text))?;
        let made = Workflow::parse(&text);
        Some((text, made))
    };
    let fault = |at, why: String| Fault { file: file.to_owned(), at, why };
    let (text, made) = match app.aside.run(namespace, read).await {
        Ok(read) => read?,
        Err(problem) => return Some(Err(fault(None, problem.0.to_string()))),
    };
    let made = match made {
        Ok(made) => made,
        Err(faults) => {
            let first = faults.first();
            let at = first.filter(|first| first.line > 0).map(|first| (first.line, first.column));
            let told = faults.iter().map(|fault| match fault.field.as_str() {
                "" => fault.text.clone(),
                field => format!("{field}: {}", fault.text),
            });
            return Some(Err(fault(at, told.collect::<Vec<_>>().join("; "))));
        }
    };
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = made.name.as_deref().unwrap_or(stem);
    let by: Arc<str> = "workflows folder".into();
    let put = stored::put(app, namespace, name, (&text, &made), &by).await;
    Some(put.map(|(_, new)| (name.to_owned(), new)).map_err(|problem| fault(None, problem.0.to_string())))
}

/// Loads the workflows of ours in a folder of workflows; the others are the dialect's.
pub async fn load(app: &App, namespace: &Namespace, folder: &Path) -> Report {
    let mut report = Report::default();
    for file in crate::definitions::list(folder).unwrap_or_default() {
        match load_file(app, namespace, &file).await {
            Some(Ok((name, true))) => report.changed.push(name),
            Some(Ok((_, false))) => report.unchanged += 1,
            Some(Err(fault)) => report.faults.push(fault),
            None => {}
        }
    }
    report
}
