//! `windlass workers`.

use super::{Context, Done};
use crate::{
    fail::code,
    output::{Colour, Facts, Rows, cell},
    times,
};
use clap::Subcommand;
use windlass_api::{
    overview::WorkerFigures,
    worker::{Liveness, Worker},
};
use windlass_sdk::Client;

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass workers                  list workers
  windlass workers drain render-3   let it finish its jobs and give it no new ones
  windlass workers delete render-3  delete it; jobs it holds return to the queue")]
pub enum WorkersCommand {
    /// List workers by name. This is the default.
    List,
    /// Show a worker.
    Show { name: String },
    /// How a worker's attempts ended in the last day, beside those of all workers.
    Figures { name: String },
    /// Drain a worker: it finishes its jobs and gets no new ones.
    Drain { name: String },
    /// End the drain: the worker gets jobs again.
    Undrain { name: String },
    /// Delete a worker. Jobs it holds return to the queue.
    Delete { name: String },
}

impl WorkersCommand {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        match self {
            WorkersCommand::List => {
                let workers = all(&client).await?;
                context.format.many(&workers, || table(&workers))?;
            }
            WorkersCommand::Show { name } => {
                let worker = client.worker(&name).await?;
                context.format.one(&worker, || text(&worker))?;
            }
            WorkersCommand::Figures { name } => {
                let figures = client.worker_figures(&name).await?;
                context.format.one(&figures, || figures_text(&name, &figures))?;
            }
            WorkersCommand::Drain { name } => {
                let worker = client.drain(&name, true).await?;
                context
                    .format
                    .one(&worker, || format!("{name} is draining: it finishes its jobs and gets no new ones"))?;
            }
            WorkersCommand::Undrain { name } => {
                let worker = client.drain(&name, false).await?;
                context.format.one(&worker, || format!("{name} gets jobs again"))?;
            }
            WorkersCommand::Delete { name } => {
                client.delete_worker(&name).await?;
                context.format.done("deleted", || format!("{name} deleted"))?;
            }
        }
        Ok(code::OK)
    }
}

pub async fn all(client: &Client) -> anyhow::Result<Vec<Worker>> {
    Ok(super::all(async |paging| client.workers(&paging).await).await?)
}

pub fn liveness(worker: &Worker) -> (&'static str, Colour) {
    match worker.state {
        Liveness::Online if worker.draining => ("draining", Colour::Yellow),
        Liveness::Online => ("online", Colour::Green),
        Liveness::Unreachable => ("unreachable", Colour::Yellow),
        Liveness::Offline => ("offline", Colour::Grey),
    }
}

fn table(workers: &[Worker]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&["NAME", "STATE", "SEEN", "SLOTS", "TAGS…"], "No workers. Start one: windlass worker");
    for worker in workers {
        let (state, colour) = liveness(worker);
        rows.add(vec![
            cell(&worker.worker),
            cell(state).colour(colour),
            cell(times::relative(&worker.last_seen, now)),
            cell(worker.slots.to_string()),
            cell(worker.tags.join(", ")),
        ]);
    }
    rows
}

fn figures_text(name: &str, figures: &WorkerFigures) -> String {
    let told = |completed: u64, failed: u64| match completed + failed {
        0 => "no attempt in the last day".to_owned(),
        all => {
            format!("{failed} of {all} attempts failed in the last day ({:.1} %)", failed as f64 * 100.0 / all as f64)
        }
    };
    let mut facts = Facts::default();
    facts.add("Worker", name).add("This worker", told(figures.completed, figures.failed));
    facts.add("All workers", told(figures.fleet_completed, figures.fleet_failed));
    facts.text()
}

fn text(worker: &Worker) -> String {
    let now = times::now();
    let mut facts = Facts::default();
    facts.add("Worker", &worker.worker).add("Namespace", &worker.namespace).add("State", liveness(worker).0);
    facts.add("Tags", worker.tags.join(", ")).add("Slots", worker.slots.to_string());
    facts.add("Owner", worker.owner.as_deref().unwrap_or_default());
    facts.add("Registered", times::both(&worker.registered_at, now));
    facts.add("Seen", times::both(&worker.last_seen, now));
    facts.add("Info", worker.info.as_ref().map(ToString::to_string).unwrap_or_default());
    facts.text()
}
