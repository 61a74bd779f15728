//! `windlass profile`: connections with a name, in the user's own config folder.

use crate::output::{Facts, Format, Rows, cell};
use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<PathBuf>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profiles {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    pub profiles: BTreeMap<String, Profile>,
}

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass profile set work --server https://jobs.example.org --token-file ~/.windlass-token
  windlass profile use work
  windlass --profile work jobs")]
pub enum ProfileCommand {
    /// List saved connections. Tokens are not shown.
    List,
    /// Save the values of --server, --token, --token-file, --namespace and --ca-cert under a name.
    ///
    /// The first one saved becomes the default.
    Set { name: String },
    /// Make a saved connection the default.
    Use { name: String },
    /// Delete a saved connection.
    Delete { name: String },
}

impl Profiles {
    pub fn load() -> anyhow::Result<Self> {
        let Some(file) = file() else { return Ok(Self::default()) };
        match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("{} cannot be understood", file.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
        }
    }

    pub fn get(&self, name: &str) -> anyhow::Result<Profile> {
        let known = || self.profiles.keys().cloned().collect::<Vec<_>>().join(", ");
        let found = self.profiles.get(name).cloned();
        found.with_context(|| format!("there is no profile {name:?}; there are: {}", known()))
    }

    fn save(&self) -> anyhow::Result<()> {
        let file = file().context("there is no home folder to keep profiles in; set XDG_CONFIG_HOME")?;
        write_private(&file, &serde_json::to_vec_pretty(self)?)
    }
}

impl ProfileCommand {
    pub fn run(self, remote: &crate::remote::Remote, format: Format) -> anyhow::Result<()> {
        let mut all = Profiles::load()?;
        match self {
            ProfileCommand::List => return list(&all, format),
            ProfileCommand::Set { name } => {
                let remote = &remote.options;
                let token_file = remote.token_file.as_deref().map(std::path::absolute).transpose()?;
                let profile = Profile {
                    server: remote.server.clone(),
                    token: remote.token.clone(),
                    token_file,
                    namespace: remote.namespace.clone(),
                    ca_cert: remote.ca_cert.as_deref().map(std::path::absolute).transpose()?,
                };
                all.profiles.insert(name.clone(), profile);
                all.default.get_or_insert(name);
            }
            ProfileCommand::Use { name } => {
                all.get(&name)?;
                all.default = Some(name);
            }
            ProfileCommand::Delete { name } => {
                if all.profiles.remove(&name).is_none() {
                    bail!("there is no profile {name:?}");
                }
                all.default = all.default.filter(|default| *default != name);
            }
        }
        all.save()?;
        let default = all.default.as_deref().unwrap_or("none").to_owned();
        format.done("saved", || Facts::default().add("Default profile", &default).text())
    }
}

fn list(all: &Profiles, format: Format) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Shown<'a> {
        name: &'a str,
        default: bool,
        server: &'a Option<String>,
        namespace: &'a Option<String>,
    }
    let shown = |(name, profile): (&'_ String, &'_ Profile)| (name.clone(), profile.clone());
    let profiles: Vec<(String, Profile)> = all.profiles.iter().map(shown).collect();
    let items: Vec<Shown<'_>> = profiles
        .iter()
        .map(|(name, profile)| Shown {
            name,
            default: all.default.as_deref() == Some(name),
            server: &profile.server,
            namespace: &profile.namespace,
        })
        .collect();
    format.many(&items, || {
        let mut rows = Rows::new(
            &["NAME", "DEFAULT", "SERVER", "NAMESPACE"],
            "No profiles. Make one: windlass profile set NAME --server URL",
        );
        for item in &items {
            let text = |value: &Option<String>| cell(value.as_deref().unwrap_or("-"));
            rows.add(vec![
                cell(item.name),
                cell(if item.default { "yes" } else { "" }),
                text(item.server),
                text(item.namespace),
            ]);
        }
        rows
    })
}

fn file() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("profiles.json"))
}

/// Where this user's programs keep such things.
pub fn folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home =
        || std::env::var_os("HOME").filter(|value| !value.is_empty()).map(|home| Path::new(&home).join(below_home));
    set.or_else(home).map(|folder| folder.join("windlass"))
}

/// Whole or not at all, and for its owner alone.
pub fn write_private(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be written", file.display());
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(failed)?;
    }
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let opened = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
    opened.and_then(|mut opened| opened.write_all(bytes)).with_context(failed)?;
    fs::rename(&new, file).with_context(failed)
}
