//! What a server does by itself for this dialect: loads the definitions, fires schedules, releases locks nobody keeps.

use super::{Silo, definitions::folder, schedule, sessions};
use crate::{folders::notice, running::Running};
use std::sync::Arc;
use tokio::time::sleep;

/// Loads the definitions, then goes on in the background.
pub async fn start(app: Silo) -> Running {
    let settings = &app.own.settings;
    let folder = settings.directory.clone();
    if folder.is_dir() {
        load(&app).await;
    } else if settings.directory_is_set {
        tracing::warn!(folder = %folder.display(), "there is no folder of Silo definitions; none are in force from it");
    }
    let mut running = Running::default();
    if settings.watch && folder.is_dir() {
        let app = app.clone();
        let watch = notice(&folder, move || {
            let app = app.clone();
            async move { load(&app).await }
        });
        match watch {
            Ok(watch) => running.watches.push(watch),
            Err(error) => tracing::warn!(%error, "the folder of Silo definitions is not watched"),
        }
    }
    running.tasks.extend([tokio::spawn(schedule::run(app.clone())), tokio::spawn(sweep(app))]);
    running
}

async fn load(app: &Silo) {
    let by: Arc<str> = "silo definitions folder".into();
    match folder::load(app, &by).await {
        Ok(report) => {
            for fault in &report.errors {
                let (file, line, column) = (&fault.file, fault.line, fault.column);
                tracing::error!("{file}:{line}:{column}: {}; what it said last stays in force", fault.message);
            }
            tracing::info!(
                in_force = report.in_force.len(),
                errors = report.errors.len(),
                "Silo definitions were read"
            );
        }
        Err(error) => tracing::error!("{}", error.message),
    }
}

async fn sweep(app: Silo) {
    loop {
        sleep(app.own.settings.timeout_check).await;
        if let Err(error) = sessions::sweep(&app).await {
            tracing::warn!(why = error.message, "edit locks could not be swept");
        }
    }
}
