//! `windlass audit`: what operators did.

use super::{Context, Done, some};
use crate::{
    fail::code,
    output::{Rows, cell},
    times,
};
use clap::Args;
use windlass_api::event::Event;

/// The audit log: what operators did, newest first. For admins.
///
/// Entries are kept for a year unless the server's setting audit_kept says otherwise. An admin of some namespaces sees the entries of these.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass audit
  windlass audit --limit 1000 --by ann
  windlass audit --limit 100000 -o jsonl > audit.jsonl")]
pub struct Audit {
    /// Look at this many entries at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Of these show only what this principal did.
    #[arg(long, value_name = "PRINCIPAL")]
    by: Option<String>,
}

impl Audit {
    pub async fn run(&self, context: &Context) -> Done {
        let client = context.client()?;
        let mut found = some(self.limit, async |paging| client.audit(&paging).await).await?;
        found.retain(|entry| self.by.as_deref().is_none_or(|by| field(entry, "by") == by));
        context.format.many(&found, || table(&found))?;
        Ok(code::OK)
    }
}

fn field<'a>(entry: &'a Event, name: &str) -> &'a str {
    entry.rest.get(name).and_then(|value| value.as_str()).unwrap_or_default()
}

fn table(entries: &[Event]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(&["TIME", "BY", "NAMESPACE", "ACT", "ON…"], "No entries.");
    for entry in entries {
        rows.add(vec![
            cell(times::both(&entry.at, now)),
            cell(field(entry, "by")),
            cell(&entry.namespace),
            cell(field(entry, "act")),
            cell(field(entry, "on")),
        ]);
    }
    rows
}
