//! What a server does by itself for this dialect: loads the definitions, fires schedules, releases locks nobody keeps.

use super::{definitions::folder, schedule, sessions};
use crate::{app::App, definitions::notice};
use std::sync::Arc;
use tokio::{task::JoinHandle, time::sleep};

/// Loads the definitions, then goes on in the background.
pub async fn start(app: &App) -> (Vec<JoinHandle<()>>, Option<crate::definitions::Watch>) {
    let folder = app.options.silo.directory.clone();
    if folder.is_dir() {
        load(app).await;
    } else if app.options.silo.directory_is_set {
        tracing::warn!(folder = %folder.display(), "there is no folder of Silo definitions; none are in force from it");
    }
    let watch = match app.options.silo.watch && folder.is_dir() {
        true => {
            let app = app.clone();
            let watch = notice(&folder, move || {
                let app = app.clone();
                async move { load(&app).await }
            });
            watch.map_err(|error| tracing::warn!(%error, "the folder of Silo definitions is not watched")).ok()
        }
        false => None,
    };
    let tasks = vec![tokio::spawn(schedule::run(app.clone())), tokio::spawn(sweep(app.clone()))];
    (tasks, watch)
}

async fn load(app: &App) {
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
        Err(no) => tracing::error!("{}", no.message),
    }
}

async fn sweep(app: App) {
    loop {
        sleep(app.options.silo.timeout_check).await;
        if let Err(no) = sessions::sweep(&app).await {
            tracing::warn!(why = no.message, "edit locks could not be swept");
        }
    }
}
