//! `windlass stats`: how it stands.

use super::{Context, Done};
use crate::{fail::code, output::Facts, times};
use clap::Args;
use std::collections::BTreeMap;
use windlass_api::{
    Uuid,
    stats::{Count, CountJobs, Stats as Told},
};

#[derive(Args)]
#[command(
    after_help = "Jobs of a namespace, and of a definition, are counted exactly. With any other filter counting stops at 1000.

Examples:
  windlass stats                               jobs and workers by state
  windlass stats --definition nightly          jobs of one definition by state
  windlass stats --facet shot=s010             jobs with a facet by state"
)]
pub struct Stats {
    /// Only jobs of this definition.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["facet", "name", "run", "worker"])]
    definition: Option<String>,
    /// Only jobs with this facet.
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = super::options::pair)]
    facet: Option<(String, String)>,
    /// Only jobs whose name begins with this text.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// Only jobs of this run.
    #[arg(long, value_name = "ID")]
    run: Option<Uuid>,
    /// Only jobs this worker holds now.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
}

impl Stats {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        let chosen = CountJobs {
            definition: self.definition,
            facet: self.facet.map(|(name, value)| format!("{name}:{value}")),
            name: self.name,
            run: self.run,
            worker: self.worker,
            ..CountJobs::default()
        };
        if chosen == CountJobs::default() {
            let stats = client.stats().await?;
            context.format.one(&stats, || text(&stats))?;
        } else {
            let counts = client.job_counts(&chosen).await?;
            context.format.one(&counts, || {
                let mut facts = Facts::default();
                add_jobs(&mut facts, &counts.jobs);
                facts.text()
            })?;
        }
        Ok(code::OK)
    }
}

/// In the order a job goes through them.
const STATES: [&str; 9] =
    ["blocked", "scheduled", "pending", "claimed", "running", "completed", "failed", "cancelled", "skipped"];

fn add_jobs(facts: &mut Facts, jobs: &BTreeMap<String, Count>) {
    for state in STATES {
        if let Some(count) = jobs.get(state) {
            let more = if count.more { "or more" } else { "" };
            facts.add(&format!("Jobs {state}"), format!("{} {more}", count.count).trim_end());
        }
    }
}

fn text(stats: &Told) -> String {
    let mut facts = Facts::default();
    facts.add("Namespace", &stats.namespace);
    add_jobs(&mut facts, &stats.jobs);
    for (state, count) in &stats.workers {
        facts.add(&format!("Workers {state}"), count.to_string());
    }
    facts.add("Waiting claims", stats.waiting_claims.to_string());
    let most = stats.stored_bytes_max.map_or("no limit".into(), |max| format!("{} allowed", times::bytes(max)));
    facts.add("Stored", format!("{} ({most})", times::bytes(stats.stored_bytes)));
    facts.add("Server", format!("{} on the {} store", stats.version, stats.store));
    facts.text()
}
