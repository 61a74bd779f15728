//! Commands that work on the data themselves, without a server.

mod backup;
pub mod doctor;
mod export;
mod import;
pub mod line;
mod migrate;
pub mod sound;
pub mod unfinished;

use crate::{
    commands::{Context, Done},
    remote::DATA,
};
use anyhow::ensure;
use clap::{Args, Subcommand};
use std::{path::PathBuf, sync::Arc};
use windlass_engine::Bulk;
use windlass_stores::{
    embedded::{self, Embedded},
    postgres::{self, Postgres},
};

/// Which store.
#[derive(Args, Clone)]
#[command(next_help_heading = "Store")]
pub struct StoreAddress {
    /// The data folder of the embedded store [default: ./.windlass].
    #[arg(long, value_name = "DIR", env = "WINDLASS_DATA", hide_env_values = true, conflicts_with = "database")]
    pub data: Option<PathBuf>,
    /// Use this PostgreSQL database instead, e.g. postgres://user@host/database.
    #[arg(long, value_name = "URL", env = "WINDLASS_DATABASE", hide_env_values = true)]
    pub database: Option<String>,
}

#[derive(Subcommand)]
pub enum StoreCommand {
    Migrate(migrate::Migrate),
    Export(export::Export),
    Import(import::Import),
    Backup(backup::Backup),
    Doctor(doctor::Doctor),
}

impl StoreCommand {
    pub async fn run(self, context: &Context) -> Done {
        match self {
            StoreCommand::Migrate(command) => command.run(context).await,
            StoreCommand::Export(command) => command.run(context).await,
            StoreCommand::Import(command) => command.run(context).await,
            StoreCommand::Backup(command) => command.run(context).await,
            StoreCommand::Doctor(command) => command.run(context).await,
        }
    }
}

impl StoreAddress {
    pub fn folder(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from(DATA))
    }

    /// For people; without the password.
    pub fn name(&self) -> String {
        match &self.database {
            Some(url) => windlass_stores::postgres::name_of_url(url),
            None => self.folder().display().to_string(),
        }
    }

    pub fn kind(&self) -> &'static str {
        if self.database.is_some() { "postgres" } else { "embedded" }
    }

    /// Whether there is something to read. PostgreSQL says so itself.
    pub fn must_exist(&self) -> anyhow::Result<()> {
        let folder = self.folder();
        let there = self.database.is_some() || folder.join("windlass.db").exists();
        ensure!(
            there,
            "there are no data in {}; name the folder with --data, or a database with --database",
            folder.display()
        );
        Ok(())
    }

    /// Opens the store for work without a server. `migrate`: an older schema is brought forward, else refused.
    pub async fn open(&self, migrate: bool) -> anyhow::Result<Arc<dyn Bulk>> {
        match &self.database {
            Some(url) => {
                let mut options = postgres::Options::new(url);
                (options.notify, options.in_flight, options.migrate) = (false, 1, migrate);
                Ok(Arc::new(Postgres::connect(options).await?))
            }
            None => Ok(Arc::new(Embedded::open(&self.folder(), embedded::Options::default())?)),
        }
    }
}
