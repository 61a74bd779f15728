//! Which server to talk to, and as whom.
//!
//! Flags win over environment variables, those over the profile, that over what is found on this machine. The admin token
//! a server left in its data folder is only ever sent to this machine: a mistyped address must not give it away.

use crate::{
    files,
    profile::{Profile, Profiles},
};
use anyhow::Context as _;
use clap::Args;
use std::{
    fmt,
    path::{Path, PathBuf},
};
use windlass_sdk::Client;

pub const SERVER: &str = "http://127.0.0.1:3000";
/// Where a server started here without further words keeps its data.
pub const DATA: &str = ".windlass";

#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub struct Remote {
    /// The server's URL [default: http://127.0.0.1:3000].
    #[arg(long, global = true, value_name = "URL", env = "WINDLASS_SERVER", hide_env_values = true)]
    pub server: Option<String>,
    /// The token. Prefer --token-file: other users of this machine can see command lines.
    #[arg(long, global = true, value_name = "TOKEN", env = "WINDLASS_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// A file that contains the token.
    #[arg(long, global = true, value_name = "FILE", env = "WINDLASS_TOKEN_FILE", hide_env_values = true)]
    pub token_file: Option<PathBuf>,
    /// The namespace to work in [default: default].
    #[arg(short, long, global = true, value_name = "NAME", env = "WINDLASS_NAMESPACE", hide_env_values = true)]
    pub namespace: Option<String>,
    /// An additional certificate authority to trust (PEM).
    #[arg(long, global = true, value_name = "FILE", env = "WINDLASS_CA_CERT", hide_env_values = true)]
    pub ca_cert: Option<PathBuf>,
    /// A connection saved with `windlass profile set`.
    #[arg(long, global = true, value_name = "NAME", env = "WINDLASS_PROFILE", hide_env_values = true)]
    pub profile: Option<String>,
}

/// Where the token came from, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFrom {
    Given,
    File(PathBuf),
    Profile(String),
    DataFolder(PathBuf),
    Nowhere,
}

impl fmt::Display for TokenFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenFrom::Given => write!(f, "--token or WINDLASS_TOKEN"),
            TokenFrom::File(path) | TokenFrom::DataFolder(path) => write!(f, "the file {}", path.display()),
            TokenFrom::Profile(name) => write!(f, "the profile {name:?}"),
            TokenFrom::Nowhere => write!(f, "nowhere"),
        }
    }
}

/// All that was found out about how to connect.
pub struct Found {
    pub server: String,
    pub namespace: String,
    pub token: Option<String>,
    pub from: TokenFrom,
    pub ca_cert: Option<PathBuf>,
}

impl Remote {
    /// Puts together what is said in the several places.
    pub fn find(&self) -> anyhow::Result<Found> {
        let (name, profile) = self.profile()?;
        let server = self.server.clone().or(profile.server).unwrap_or_else(|| SERVER.to_owned());
        let (token, from) = if let Some(token) = &self.token {
            (Some(token.trim().to_owned()), TokenFrom::Given)
        } else if let Some(file) = &self.token_file {
            (Some(read_token(file)?), TokenFrom::File(file.clone()))
        } else if let Some(token) = profile.token.filter(|_| self.server.is_none()) {
            (Some(token), TokenFrom::Profile(name.unwrap_or_default()))
        } else if let Some(file) = profile.token_file.filter(|_| self.server.is_none()) {
            (Some(read_token(&file)?), TokenFrom::File(file))
        } else {
            on_this_machine(&server)
        };
        let namespace = self.namespace.clone().or(profile.namespace).unwrap_or_else(|| "default".to_owned());
        Ok(Found { server, namespace, token, from, ca_cert: self.ca_cert.clone().or(profile.ca_cert) })
    }

    fn profile(&self) -> anyhow::Result<(Option<String>, Profile)> {
        let profiles = Profiles::load()?;
        let name = self.profile.clone().or_else(|| profiles.default.clone());
        let Some(name) = name else { return Ok((None, Profile::default())) };
        let profile = profiles.get(&name)?;
        Ok((Some(name), profile))
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        self.find()?.client()
    }
}

impl Found {
    pub fn client(&self) -> anyhow::Result<Client> {
        let mut builder = Client::builder(&self.server).namespace(&self.namespace);
        if let Some(token) = &self.token {
            builder = builder.token(token);
        }
        if let Some(file) = &self.ca_cert {
            let pem = files::read(file, files::SMALL_MAX)?;
            builder = builder.root_certificate(pem);
        }
        Ok(builder.build()?)
    }
}

pub fn read_token(file: &Path) -> anyhow::Result<String> {
    let text = files::read_text(file, files::SMALL_MAX)
        .with_context(|| format!("no token can be read from {}", file.display()))?;
    let token = text.trim();
    anyhow::ensure!(!token.is_empty(), "{} is empty; it should hold a token", file.display());
    Ok(token.to_owned())
}

/// Folders in which a server on this machine may have left its admin token.
pub fn data_folders() -> Vec<PathBuf> {
    std::env::var_os("WINDLASS_DATA").map(PathBuf::from).into_iter().chain([PathBuf::from(DATA)]).collect()
}

fn on_this_machine(server: &str) -> (Option<String>, TokenFrom) {
    if !is_loopback(server) {
        return (None, TokenFrom::Nowhere);
    }
    let files = data_folders().into_iter().map(|folder| folder.join("admin.token"));
    let found = files.into_iter().find_map(|file| Some((read_token(&file).ok()?, file)));
    match found {
        Some((token, file)) => (Some(token), TokenFrom::DataFolder(file)),
        None => (None, TokenFrom::Nowhere),
    }
}

/// Whether an address cannot leave this machine.
pub fn is_loopback(server: &str) -> bool {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
