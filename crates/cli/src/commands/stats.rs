//! `windlass stats`: how it stands.

use super::{Context, Done};
use crate::{fail::code, output::Facts};
use windlass_api::stats::Stats;

pub async fn run(context: &Context) -> Done {
    let stats = context.client()?.stats().await?;
    context.format.one(&stats, || text(&stats))?;
    Ok(code::OK)
}

/// In the order a job goes through them.
const STATES: [&str; 9] =
    ["blocked", "scheduled", "pending", "claimed", "running", "completed", "failed", "cancelled", "skipped"];

fn text(stats: &Stats) -> String {
    let mut facts = Facts::default();
    facts.add("Namespace", &stats.namespace);
    for state in STATES {
        if let Some(count) = stats.jobs.get(state) {
            let more = if count.more { "or more" } else { "" };
            facts.add(&format!("Jobs {state}"), format!("{} {more}", count.count).trim_end());
        }
    }
    for (state, count) in &stats.workers {
        facts.add(&format!("Workers {state}"), count.to_string());
    }
    facts.add("Waiting claims", stats.waiting_claims.to_string());
    facts.add("Server", format!("{} on the {} store", stats.version, stats.store));
    facts.text()
}
