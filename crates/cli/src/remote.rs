//! Which server to talk to, and as whom.
//!
//! Flags win over environment variables, those over the profile, that over what is found on this machine. The admin token
//! a server left in its data folder is only ever sent to this machine: a mistyped address must not give it away.

use crate::profile::{Profile, Profiles};
use clap::Args;
use std::{ffi::OsString, fmt, path::PathBuf};
use windlass_sdk::Client;
use windlass_worker::connect::{ConnectOptions, Endpoint, NAMESPACE};
pub use windlass_worker::connect::{SERVER, read_token};

/// Where a server started here without further words keeps its data.
pub const DATA: &str = ".windlass";

#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub struct Remote {
    #[command(flatten)]
    pub options: ConnectOptions,
    /// A connection saved with `windlass profile set`; an empty name stands for none [env: WINDLASS_PROFILE].
    #[arg(long, global = true, value_name = "NAME")]
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
    pub endpoint: Endpoint,
    pub from: TokenFrom,
}

impl Remote {
    /// With the variables for what no option says: asked for once, before any command runs.
    pub fn or_variables(self, variable: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Self> {
        // Empty is an answer here: not even the default profile.
        let named = || variable("WINDLASS_PROFILE").map(|name| name.to_string_lossy().into_owned());
        Ok(Self { profile: self.profile.or_else(named), options: self.options.or_variables(variable)? })
    }

    /// Puts together what is said in the several places.
    pub fn find(&self) -> anyhow::Result<Found> {
        let (name, profile) = self.profile()?;
        let given = &self.options;
        let server = given.server.clone().or(profile.server).unwrap_or_else(|| SERVER.to_owned());
        let (token, from) = if let Some(token) = &given.token {
            (Some(token.trim().to_owned()), TokenFrom::Given)
        } else if let Some(file) = &given.token_file {
            (Some(read_token(file)?), TokenFrom::File(file.clone()))
        } else if let Some(token) = profile.token.filter(|_| given.server.is_none()) {
            (Some(token), TokenFrom::Profile(name.unwrap_or_default()))
        } else if let Some(file) = profile.token_file.filter(|_| given.server.is_none()) {
            (Some(read_token(&file)?), TokenFrom::File(file))
        } else {
            on_this_machine(&server)
        };
        let namespace = given.namespace.clone().or(profile.namespace).unwrap_or_else(|| NAMESPACE.to_owned());
        let ca_cert = given.ca_cert.clone().or(profile.ca_cert);
        Ok(Found { endpoint: Endpoint { server, namespace, token, ca_cert }, from })
    }

    fn profile(&self) -> anyhow::Result<(Option<String>, Profile)> {
        let profiles = Profiles::load()?;
        let name = self.profile.clone().or_else(|| profiles.default.clone());
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok((None, Profile::default())) };
        let profile = profiles.get(&name)?;
        Ok((Some(name), profile))
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        self.find()?.endpoint.client()
    }
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
