//! What an operator can set: flags win over variables, variables over the file, the file over defaults. Names that other
//! programs' users know ([`table::Foreign`]) come after our own in each of these.

pub mod adjusted;
pub mod docs;
mod file;
pub mod limits;
pub mod table;
pub mod value;
pub mod values;

use crate::{logs::Format, peer, secret::Secret, without_token::WithoutToken};
use adjusted::Adjusted;
use std::{fmt, net::IpAddr, path::PathBuf};
use table::{From, Kind, Setting, Table};
use thiserror::Error;
use values::Values;
use windlass_core::Millis;

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("{}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("{}, line {line}: {why}", path.display())]
    Line { path: PathBuf, line: usize, why: String },
    #[error("{name} (from {origin}): {why}")]
    Value { name: &'static str, origin: Origin, why: String },
    #[error("{0}")]
    Together(String),
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// More retries a second than any server makes.
const RETRY_RATE_MAX: usize = 1_000_000;

/// Looks a variable up.
pub type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Everything that may hold a setting.
#[derive(Default)]
pub struct Sources<'a> {
    /// By the setting's name.
    pub flags: Vec<(&'static str, String)>,
    pub file: Option<(PathBuf, String)>,
    pub variable: Option<&'a Variables<'a>>,
    pub table: Table,
}

/// The value of one setting, and why it is that.
pub struct Effective {
    pub setting: &'static Setting,
    text: String,
    pub origin: Origin,
    /// Where the value in effect is another than the one that was written.
    adjusted: Option<Adjusted>,
}

impl Effective {
    pub fn is_set(&self) -> bool {
        !self.text.is_empty()
    }

    /// For people to see: what is in effect.
    pub fn shown(&self) -> &str {
        if let Some(adjusted) = &self.adjusted {
            return &adjusted.text;
        }
        if self.setting.kind == Kind::Secret && self.is_set() { "(set, not shown)" } else { &self.text }
    }

    /// Where what is shown comes from.
    pub fn source(&self) -> String {
        self.adjusted.as_ref().map_or_else(|| self.origin.to_string(), |adjusted| adjusted.source.clone())
    }
}

/// The settings that hold, in the order of the table.
pub fn effective(sources: &Sources) -> Result<Vec<Effective>, ConfigError> {
    let entries = match &sources.file {
        Some((path, text)) => file::read(path, text, &sources.table)?,
        None => Vec::new(),
    };
    let variable = |name: &str| sources.variable.and_then(|variable| variable(name)).filter(|text| !text.is_empty());
    let mut found = Vec::with_capacity(sources.table.settings.len());
    for setting in sources.table.settings.iter().copied() {
        let one = pick(setting, sources, &entries, &variable)?;
        // What is secret must not be repeated in a message.
        let checked = if setting.name == table::dialects.name {
            sources.table.check_dialects(&one.text)
        } else {
            value::check(setting.kind, &one.text)
        };
        checked.map_err(|why| ConfigError::Value { name: setting.name, origin: one.origin.clone(), why })?;
        found.push(one);
    }
    for (name, convert, text) in idle(&sources.table, &variable) {
        let failed = |why| ConfigError::Value { name, origin: Origin::Variable(name.to_owned()), why };
        convert(&text).map_err(failed)?;
    }
    let values = Values::new(&found);
    for adjusted in sources.table.adjusted.iter().flat_map(|adjust| adjust(&values)) {
        if let Some(one) = found.iter_mut().find(|one| one.setting.name == adjusted.setting) {
            one.adjusted = Some(adjusted);
        }
    }
    Ok(found)
}

type Convert = fn(&str) -> Result<String, String>;

/// Variables of other programs that are set and have nothing to say here.
fn idle(table: &Table, variable: &Variables) -> Vec<(&'static str, Convert, String)> {
    let idle = table.foreign.iter().filter(|foreign| foreign.to.name == table::NOTHING.name);
    let set = idle.filter_map(|foreign| match foreign.from {
        From::Variable(name) => Some((name, foreign.convert, variable(name).filter(|text| !text.is_empty())?)),
        From::Plain(_) | From::Key { .. } => None,
    });
    set.collect()
}

/// Their names, for the start to say so.
pub fn without_effect(table: &Table, variable: &Variables) -> Vec<&'static str> {
    idle(table, variable).into_iter().map(|(name, ..)| name).collect()
}

fn pick(
    setting: &'static Setting,
    sources: &Sources,
    entries: &[file::Entry],
    variable: &Variables,
) -> Result<Effective, ConfigError> {
    let found = |text: String, origin: Origin| Ok(Effective { setting, text, origin, adjusted: None });
    if let Some((_, text)) = sources.flags.iter().find(|(name, _)| *name == setting.name) {
        return found(text.clone(), Origin::Flag(setting.flag()));
    }
    if let Some(text) = variable(&setting.variable()) {
        return found(text, Origin::Variable(setting.variable()));
    }
    for foreign in sources.table.foreign.iter().filter(|foreign| foreign.to.name == setting.name) {
        if let From::Variable(name) = foreign.from
            && let Some(text) = variable(name)
        {
            let origin = Origin::Variable(name.to_owned());
            let text = (foreign.convert)(&text);
            let failed = |why| ConfigError::Value { name: setting.name, origin: origin.clone(), why };
            return found(text.map_err(failed)?, origin);
        }
    }
    let mut ours: Vec<&file::Entry> = entries.iter().filter(|entry| entry.setting == setting.name).collect();
    ours.sort_by_key(|entry| entry.foreign);
    if let (Some(entry), Some((path, _))) = (ours.first(), &sources.file) {
        return found(entry.text.clone(), Origin::File { path: path.clone(), line: entry.line });
    }
    found(setting.default.to_owned(), Origin::Default)
}

/// The settings as the server uses them. No `Debug`: there are secrets in it.
pub struct Config {
    pub data: PathBuf,
    pub listen: String,
    pub database: Option<Secret>,
    pub tls: Option<(PathBuf, PathBuf)>,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub proxies: Vec<peer::Network>,
    pub admin_token: Option<Secret>,
    /// As it was written; see [`Config::without_token`].
    without_token: String,
    pub log: String,
    pub log_format: Format,
    pub limits: windlass_core::Limits,
    pub events_kept: Millis,
    pub body_max: usize,
    pub bodies: crate::room::Limits,
    pub connections: peer::Limits,
    pub definitions: Option<PathBuf>,
    pub workflows: Option<PathBuf>,
    /// Names, or `all`, or `none`.
    pub dialects: Vec<String>,
    pub artifacts: Option<String>,
    pub artifacts_adopt: bool,
    pub artifact_max: u64,
    pub files: limits::Files,
    pub quotas: limits::StoredBytes,
    /// Bytes of disk that the embedded store keeps back.
    pub disk_reserve: u64,
    pub otel_endpoint: Option<String>,
    pub unsafe_no_fsync: bool,
    /// All of it once more, for dialects to read their own settings from.
    pub values: Values,
}

impl Config {
    pub fn new(effective: &[Effective]) -> Result<Self, ConfigError> {
        let values = Values::new(effective);
        let read = &values;
        let tls = match (read.path(table::tls_cert), read.path(table::tls_key)) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(ConfigError::Together("tls_cert and tls_key go together: set both, or neither".into()));
            }
        };
        Ok(Self {
            data: read.path(table::data).unwrap_or_default(),
            listen: read.text(table::listen).to_owned(),
            database: read.some(table::database).map(Secret::new),
            tls,
            hosts: value::list(read.text(table::hosts)),
            origins: value::list(read.text(table::origins)),
            // Checked when it was read.
            proxies: value::networks(read.text(table::proxies)).unwrap_or_default(),
            admin_token: read.some(table::admin_token).map(Secret::new),
            without_token: read.text(table::without_token).to_owned(),
            log: read.text(table::log).to_owned(),
            log_format: if read.text(table::log_format) == "json" { Format::Json } else { Format::Text },
            limits: windlass_core::Limits {
                payload_bytes_max: read.bytes(table::payload_max),
                log_bytes_max: read.bytes(table::job_log_max) as u64,
                lease_default: read.millis(table::lease),
                retention: read.millis(table::retention),
                audit_kept: read.millis(table::audit_kept),
                workers_max: read.count(table::workers_per_namespace_max),
                definitions_max: read.count(table::definitions_per_namespace_max),
                schedules_max: read.count(table::schedules_per_namespace_max),
                offers_max: read.count(table::offers_per_namespace_max),
                lanes_max: read.count(table::tag_sets_per_namespace_max),
                retries_per_second: read.count(table::retry_rate).min(RETRY_RATE_MAX) as u32,
                ..windlass_core::Limits::default()
            },
            events_kept: read.millis(table::events_kept),
            body_max: read.bytes(table::body_max),
            bodies: crate::room::Limits {
                total: read.bytes(table::bodies_max) as u64,
                share: read.bytes(table::bodies_per_principal_max) as u64,
            },
            connections: peer::Limits {
                connections: read.count(table::connections_max),
                per_address: read.count(table::connections_per_address_max),
                head: read.time(table::head_timeout),
                idle: read.time(table::idle_timeout),
                body: read.time(table::body_timeout),
                body_rate: read.bytes(table::body_rate_min) as u64,
                write: read.time(table::write_timeout),
                drain: read.time(table::drain_timeout),
                ..peer::Limits::default()
            },
            definitions: read.path(table::definitions),
            workflows: read.path(table::workflows),
            dialects: value::list(read.text(table::dialects)),
            artifacts: read.some(table::artifacts).map(str::to_owned),
            artifacts_adopt: read.flag(table::artifacts_adopt),
            artifact_max: read.bytes(table::artifact_max) as u64,
            files: limits::Files {
                per_job: read.bytes(table::artifacts_per_job_max) as u64,
                per_namespace: read.bytes(table::artifacts_per_namespace_max) as u64,
                reserve: read.bytes(table::artifacts_reserve) as u64,
            },
            quotas: limits::StoredBytes::read(
                read.text(table::stored_bytes_per_namespace_max),
                read.text(table::stored_bytes_of_namespaces),
            )
            .map_err(ConfigError::Together)?,
            disk_reserve: read.bytes(table::disk_reserve) as u64,
            otel_endpoint: read.some(table::otel_endpoint).map(str::to_owned),
            unsafe_no_fsync: read.flag(table::unsafe_no_fsync),
            values: values.clone(),
        })
    }

    /// Who may call without a token, given where the server listens.
    pub fn without_token(&self, listens_on: IpAddr) -> WithoutToken {
        WithoutToken::resolve(&self.without_token, listens_on, &self.hosts)
    }
}
