//! What a server does by itself beside answering: fires calendar schedules, keeps a folder of definitions loaded, and
//! removes artifacts whose jobs are gone. The engine's own sweep is not among it.

use crate::{
    app::App,
    definitions::{self, Report, Watch},
    dialects::{silo, workflow_graph},
    native::artifacts,
    scheduler,
};
use std::{path::Path, time::Duration};
use tokio::{task::JoinHandle, time::sleep};
use windlass_core::Namespace;

const SWEEP_EVERY: Duration = Duration::from_secs(3_600);

/// Ends them when it goes.
pub struct Duties {
    tasks: Vec<JoinHandle<()>>,
    _watches: Vec<Watch>,
}

impl Drop for Duties {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Loads the definitions, then goes on in the background. A folder that cannot be watched is loaded this once.
pub async fn start(app: &App, folder: Option<&Path>, workflows: Option<&Path>) -> Duties {
    if let Some(workflows) = workflows {
        match workflow_graph::folder::load(app, workflows).await {
            Ok(files) => tracing::info!(files = files.len(), "workflow files were read"),
            Err(error) => {
                tracing::error!(folder = %workflows.display(), %error, "the folder of workflows cannot be read")
            }
        }
    }
    let watch = match folder {
        Some(folder) => {
            let namespace = Namespace::default();
            tell(&definitions::load(app, &namespace, folder).await);
            let watch = definitions::watch(app.clone(), namespace, folder.to_owned(), tell);
            watch.map_err(|error| tracing::warn!(%error, "the folder of definitions is not watched")).ok()
        }
        None => None,
    };
    let (mut tasks, silo) = silo::duties::start(app).await;
    tasks.extend([tokio::spawn(scheduler::run(app.clone())), tokio::spawn(sweep(app.clone()))]);
    Duties { tasks, _watches: watch.into_iter().chain(silo).collect() }
}

fn tell(report: &Report) {
    for name in &report.changed {
        tracing::info!(name, "a definition has a new version");
    }
    for fault in &report.faults {
        tracing::error!("{fault}; the version in force stays");
    }
}

async fn sweep(app: App) {
    if app.options.artifacts.is_none() {
        return;
    }
    loop {
        sleep(SWEEP_EVERY).await;
        match artifacts::sweep(&app).await {
            Ok(0) => {}
            Ok(gone) => tracing::info!(gone, "artifacts of removed jobs are gone"),
            Err(problem) => tracing::warn!(problem = %problem.0, "artifacts could not be swept"),
        }
    }
}
