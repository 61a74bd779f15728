//! What a server does by itself beside answering: fires calendar schedules, decides steps of runs, keeps
//! folders of definitions loaded, and removes artifacts whose jobs are gone and tokens whose makers have ended. The engine's own sweep is not among it.

use crate::{
    app::App,
    artifacts, content, definitions, flows,
    folders::{self, Loaded, Watch},
    history,
    product::files,
    running::Running,
    scheduler, void_tokens,
};
use std::{path::Path, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use windlass_core::Namespace;

/// What it takes to stop, at most.
const ENDS: Duration = Duration::from_secs(5);
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);

pub struct Duties {
    planner: JoinHandle<()>,
    history: JoinHandle<()>,
    _running: Running,
}

impl Duties {
    /// After the server was told to stop: until nothing is in the middle of something that it would have to take back.
    pub async fn finish(mut self) {
        if timeout(ENDS, &mut self.planner).await.is_err() {
            tracing::warn!("a run is still being planned; it is planned again at the next start");
        }
        if timeout(ENDS, &mut self.history).await.is_err() {
            tracing::warn!("figures of the last minute are lost");
        }
    }
}

impl Drop for Duties {
    fn drop(&mut self) {
        self.planner.abort();
        self.history.abort();
    }
}

/// Loads the definitions, then goes on in the background. A folder that cannot be watched is loaded this once.
pub async fn start(app: &App, folder: Option<&Path>, workflows: Option<&Path>) -> Duties {
    let mut running = app.dialects.start(app).await;
    if let Some(workflows) = workflows {
        tell(&flows::folder::load(app, &Namespace::default(), workflows).await);
        running.watch(watch_workflows(app, workflows));
    }
    if let Some(folder) = folder {
        tell(&definitions::load(app, &Namespace::default(), folder).await);
        running.watch(definitions::watch(app.clone(), Namespace::default(), folder.to_owned(), tell));
    }
    running.tasks.extend([tokio::spawn(scheduler::run(app.clone())), tokio::spawn(sweep(app.clone()))]);
    running.tasks.push(tokio::spawn(void_tokens::run(app.clone())));
    let history = tokio::spawn(history::run(app.clone()));
    Duties { planner: tokio::spawn(flows::planner::run(app.clone())), history, _running: running }
}

fn watch_workflows(app: &App, folder: &Path) -> notify::Result<Watch> {
    let (app, at) = (app.clone(), folder.to_owned());
    let load = move || {
        let (app, folder) = (app.clone(), at.clone());
        async move { flows::folder::load(&app, &Namespace::default(), &folder).await }
    };
    folders::on_change(folder, load, tell)
}

fn tell(loaded: &Loaded) {
    for name in &loaded.changed {
        tracing::info!(name, "a definition has a new version");
    }
    for fault in &loaded.faults {
        tracing::error!("{fault}; the last valid version stays in effect");
    }
}

async fn sweep(app: App) {
    if app.options.artifacts.is_none() {
        return;
    }
    loop {
        match content::sweep_halves(&app).await {
            0 => {}
            gone => tracing::info!(gone, "what was left of interrupted uploads is gone"),
        }
        sleep(SWEEP_EVERY).await;
        if let Err(problem) = files::sweep(&app).await {
            tracing::warn!(problem = %problem.0, "files of removed items could not be swept");
        }
        match artifacts::sweep(&app).await {
            Ok(0) => {}
            Ok(gone) => tracing::info!(gone, "removed the artifacts of deleted jobs"),
            Err(problem) => tracing::warn!(problem = %problem.0, "artifacts could not be swept"),
        }
    }
}
