//! The folder of definition files: each becomes a workflow named after its file.

use super::{
    file,
    status::{self, Stored},
};
use crate::{app::App, folders, running::Running};
use std::path::{Path, PathBuf};
use windlass_core::commands::all::All;

/// What became of one file.
#[derive(Debug)]
pub struct Loaded {
    pub path: PathBuf,
    /// The workflow's id, or what is wrong with the file and where. A faulty file leaves the last good version in force.
    pub result: Result<String, String>,
}

/// At the start, if there is a folder.
pub async fn start(app: App, folder: Option<PathBuf>) -> Running {
    if let Some(folder) = folder {
        match load(&app, &folder).await {
            Ok(files) => tracing::info!(files = files.len(), "workflow files were read"),
            Err(error) => tracing::error!(folder = %folder.display(), %error, "the folder of workflows cannot be read"),
        }
    }
    Running::default()
}

/// Reads every `.yml`, `.yaml` and `.json` in the folder, by name. A file that says the same as before changes nothing.
pub async fn load(app: &App, folder: &Path) -> std::io::Result<Vec<Loaded>> {
    let folder = folder.to_owned();
    let paths = app.aside.run(&super::namespace(), move || list(&folder)).await;
    let paths = paths.map_err(|problem| std::io::Error::other(problem.0.to_string()))??;
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let result = load_one(app, &path).await;
        if let Err(fault) = &result {
            tracing::warn!(file = %path.display(), %fault, "a workflow file was left out");
        }
        all.push(Loaded { path, result });
    }
    Ok(all)
}

fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.filter(|path| is_definition(path) && !is_ours(path)).collect();
    paths.sort();
    Ok(paths)
}

fn is_definition(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    ["yml", "yaml", "json"].contains(&ending) && path.is_file()
}

/// The folder may hold workflows of the native kind as well; those are loaded as such.
fn is_ours(path: &Path) -> bool {
    folders::read(path, file::BYTES_MAX).is_ok_and(|text| windlass_plan::is_native(&text))
}

async fn load_one(app: &App, path: &Path) -> Result<String, String> {
    let id = path.file_stem().and_then(|stem| stem.to_str()).ok_or("the file's name is not UTF-8")?.to_owned();
    let path = path.to_owned();
    let read = move || {
        let text = folders::read(&path, file::BYTES_MAX).map_err(|error| error.to_string())?;
        file::parse(&text).map_err(|fault| fault.to_string())
    };
    let made = app.aside.run(&super::namespace(), read).await.map_err(|problem| problem.0.to_string())??;
    let before = status::load(app, &id).await.map_err(|error| error.1)?;
    let same = |before: &Stored| {
        let text = |jobs| serde_json::to_string(jobs).unwrap_or_default();
        before.name == made.name && before.trigger == made.trigger && text(&before.jobs) == text(&made.jobs)
    };
    if before.as_ref().is_some_and(same) {
        return Ok(id);
    }
    let (run, version) = before.map_or((None, 0), |before| (before.run, before.version));
    let stored =
        Stored { id: id.clone(), name: made.name, trigger: made.trigger, run, jobs: made.jobs, version, parts: 0 };
    let commands = stored.put_all().map_err(|error| error.1)?;
    app.engine.run(All { commands }).await.map_err(|error| error.to_string())?;
    Ok(id)
}
