//! `windlass config show`: what holds, and where it comes from.

use crate::output::{Format, say};
use crate::settings::Settings;
use clap::Subcommand;
use serde_json::json;
use std::process::ExitCode;
use windlass_server::config::{Config, Effective};

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Print every setting, its value and where it comes from. Secrets are not shown.
    Show {
        #[command(flatten)]
        settings: Settings,
    },
}

impl ConfigCommand {
    pub fn run(self, format: Format) -> ExitCode {
        let ConfigCommand::Show { settings } = self;
        let effective = settings.effective().and_then(|found| Config::new(&found).map(|_| found));
        match effective {
            Ok(found) => {
                let said = match format {
                    Format::Table => say(table(&found).trim_end()),
                    Format::Json | Format::Jsonl => say(list(&found)),
                };
                // A reader that has seen enough, as in `windlass config show | head`.
                drop(said);
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("windlass: {error}");
                ExitCode::from(crate::serve::BAD_CONFIGURATION)
            }
        }
    }
}

fn table(found: &[Effective]) -> String {
    let widest = |cell: fn(&Effective) -> usize| found.iter().map(cell).max().unwrap_or(0).min(48);
    let (name, value) = (widest(|one| one.setting.name.len()), widest(|one| one.shown().len()));
    let line = |one: &Effective| format!("{:name$}  {:value$}  {}\n", one.setting.name, one.shown(), one.source());
    found.iter().map(line).collect()
}

fn list(found: &[Effective]) -> serde_json::Value {
    found.iter().map(|one| json!({"name": one.setting.name, "value": one.shown(), "origin": one.source()})).collect()
}
