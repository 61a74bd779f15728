//! Every setting: its name, what it takes, its default, what it is for. Flag, variable, file key, `--help` and the
//! documentation all follow from this one table.

use super::value;
use crate::without_token;

/// What a value has to look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// `HOST:PORT`.
    Address,
    Path,
    Url,
    Count,
    /// A whole number, with a sign if need be.
    Whole,
    /// `1024`, `64KiB`, `16MiB`, `2GiB`.
    Bytes,
    /// `500ms`, `10s`, `5m`, `12h`, `7d`.
    Time,
    Flag,
    /// Separated by commas; in a file also a list.
    List,
    Choice(&'static [&'static str]),
    /// Never shown.
    Secret,
}

#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub name: &'static str,
    pub kind: Kind,
    /// Empty: not set.
    pub default: &'static str,
    pub help: &'static str,
}

impl Setting {
    pub fn variable(&self) -> String {
        format!("WINDLASS_{}", self.name.to_uppercase())
    }

    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Everybody on a machine can read its command lines, so what is nothing but a secret has no flag.
    pub fn has_flag(&self) -> bool {
        self.kind != Kind::Secret || self.name == "database"
    }
}

pub const fn setting(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Setting {
    Setting { name, kind, default, help }
}

/// The setting that says which dialects are served.
pub const DIALECTS: &str = "dialects";

pub const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];
pub const FORMATS: &[&str] = &["text", "json"];

pub const SETTINGS: &[Setting] = &[
    setting("data", Kind::Path, ".windlass", "Folder for the embedded store, the admin token and artifacts"),
    setting("listen", Kind::Address, "127.0.0.1:3000", "Address and port to listen on"),
    setting(
        "database",
        Kind::Secret,
        "",
        "PostgreSQL to keep everything in, e.g. postgres://user:password@host/database; without it the embedded store is used",
    ),
    setting("tls_cert", Kind::Path, "", "Certificate chain as PEM; together with the key switches TLS on"),
    setting("tls_key", Kind::Path, "", "Private key as PEM"),
    setting(
        "hosts",
        Kind::List,
        "",
        "Names the server may be called by, beside localhost and the address it listens on; * for any",
    ),
    setting("origins", Kind::List, "", "Origins whose web pages may call, e.g. https://app.example.com"),
    setting(
        "admin_token",
        Kind::Secret,
        "",
        "The admin token, 16 characters or more; without it one is drawn and written to admin.token in the data folder",
    ),
    setting(
        "without_token",
        Kind::Choice(without_token::CHOICES),
        "auto",
        "Who may call without a token, where a dialect's clients cannot send one: never (nobody), loopback (programs on this machine), anyone (whoever \
         can reach the port can then run jobs) or auto (loopback if the server listens on a loopback address and hosts names no \
         other, else never). Behind a proxy on the same machine set never",
    ),
    setting("log", Kind::Choice(LEVELS), "info", "How much the server logs: off, error, warn, info, debug or trace"),
    setting("log_format", Kind::Choice(FORMATS), "text", "How it logs: text for people or json for programs"),
    setting("retention", Kind::Time, "7d", "How long finished jobs are kept where they do not say themselves"),
    setting("events_kept", Kind::Time, "1d", "How long events can be replayed"),
    setting("lease", Kind::Time, "30s", "Lease length where neither job nor worker says"),
    setting("body_max", Kind::Bytes, "2MiB", "Largest body of an ordinary request; batches and uploads may be larger"),
    setting(
        "bodies_max",
        Kind::Bytes,
        "256MiB",
        "Memory for the bodies of all requests that are being received; more are answered 503",
    ),
    setting(
        "bodies_per_principal_max",
        Kind::Bytes,
        "64MiB",
        "Of that, for the requests of one principal; more are answered 429. Bodies of up to 16 KiB are not counted",
    ),
    setting("payload_max", Kind::Bytes, "1MiB", "Largest payload and largest result of a job"),
    setting(
        "job_log_max",
        Kind::Bytes,
        "16MiB",
        "Largest log of a job. Beyond it the beginning and the newest part are kept",
    ),
    setting(
        "retry_rate",
        Kind::Count,
        "100",
        "Failed jobs of one kind (definition, else tags) that are tried again each second; more wait their turn; 0 is no limit",
    ),
    setting("artifact_max", Kind::Bytes, "1GiB", "Largest artifact"),
    setting(
        "artifacts_per_job_max",
        Kind::Bytes,
        "8GiB",
        "What the artifacts of one job may take in all; 0 is no limit",
    ),
    setting(
        "artifacts_per_namespace_max",
        Kind::Bytes,
        "64GiB",
        "What the artifacts and files of one namespace may take in all; 0 is no limit",
    ),
    setting(
        "artifacts_reserve",
        Kind::Bytes,
        "1GiB",
        "What artifacts leave free on the disk of their folder, so that the store can go on; at most a tenth of the disk",
    ),
    setting("connections_max", Kind::Count, "10000", "Open connections in all; more are answered 503 and closed"),
    setting(
        "connections_per_address_max",
        Kind::Count,
        "1000",
        "Open connections from one address (IPv6: one /64); loopback is not held to it",
    ),
    setting("head_timeout", Kind::Time, "10s", "Time for a request's head, from its first byte"),
    setting("body_timeout", Kind::Time, "15s", "Longest pause within a request's body"),
    setting(
        "body_rate_min",
        Kind::Bytes,
        "8KiB",
        "Bytes a second that a body has to arrive with, once it was waited for for twice `body_timeout`; 0 is no limit",
    ),
    setting("write_timeout", Kind::Time, "30s", "Longest time in which a client reads nothing of its answer"),
    setting("idle_timeout", Kind::Time, "2m", "How long a connection without a request stays open"),
    setting("drain_timeout", Kind::Time, "7s", "How long requests may take to end when the server stops"),
    setting("definitions", Kind::Path, "", "Folder with job definitions to load and to watch"),
    setting(
        "workflows",
        Kind::Path,
        "",
        "Folder with workflow files, native ones and those of dialects, loaded at the start",
    ),
    setting(
        DIALECTS,
        Kind::List,
        "all",
        "Protocols to serve beside Windlass's own: all, none, or some of those listed below. Those that are not served have no paths",
    ),
    setting(
        "artifacts",
        Kind::Text,
        "",
        "Folder for artifacts. Default: `artifacts` in the data folder. Servers of one database need one folder that all of them share",
    ),
    setting(
        "artifacts_adopt",
        Kind::Flag,
        "false",
        "Take the folder for artifacts as this database's from now on, although the database knows another one",
    ),
    setting(
        "otel_endpoint",
        Kind::Url,
        "",
        "Where to send OpenTelemetry traces (OTLP over HTTP), e.g. http://127.0.0.1:4318",
    ),
    setting(
        "unsafe_no_fsync",
        Kind::Flag,
        "false",
        "Acknowledge before the disk does. A power cut may then lose acknowledged work and damage the store: for tests only",
    ),
];

/// A setting under a name that another program's users know it by. Our own names win over these.
#[derive(Clone, Copy)]
pub struct Foreign {
    /// A variable, or `block.key` in a file.
    pub from: From,
    pub to: &'static str,
    /// From their way of writing it to ours.
    pub convert: fn(&str) -> Result<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Variable(&'static str),
    /// In a file, beside our own names.
    Plain(&'static str),
    Key {
        block: &'static str,
        key: &'static str,
    },
}

/// For names that differ while values do not.
pub fn as_it_is(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn open_to(text: &str) -> Result<String, String> {
    value::flag(text).map(|open| if open { "anyone" } else { "auto" }.to_owned())
}

/// Older names of our own.
pub fn older() -> Vec<Foreign> {
    vec![
        // What `without_token` was called before it could say who.
        Foreign { from: From::Variable("WINDLASS_ALLOW_OPEN"), to: "without_token", convert: open_to },
        Foreign { from: From::Plain("allow_open"), to: "without_token", convert: open_to },
    ]
}

/// All that can be set: our own settings, and those that dialects bring along.
#[derive(Clone)]
pub struct Table {
    pub settings: Vec<&'static Setting>,
    pub foreign: Vec<Foreign>,
    /// The dialects' names, as people write them.
    pub dialects: Vec<String>,
}

/// Without any dialect.
impl Default for Table {
    fn default() -> Self {
        Self { settings: SETTINGS.iter().collect(), foreign: older(), dialects: Vec::new() }
    }
}

impl Table {
    pub fn find(&self, name: &str) -> Option<&'static Setting> {
        self.settings.iter().copied().find(|setting| setting.name == name)
    }

    /// What the setting `dialects` may say.
    pub fn check_dialects(&self, text: &str) -> Result<(), String> {
        let known = |name: &String| matches!(name.as_str(), "all" | "none") || self.dialects.contains(&shown(name));
        let names = value::list(text);
        match names.iter().find(|name| !known(name)) {
            None if names.len() > 1 && names.iter().any(|name| matches!(name.as_str(), "all" | "none")) => {
                Err(format!("{text:?} is not clear: all and none stand alone"))
            }
            None => Ok(()),
            Some(name) => {
                Err(format!("there is no dialect {name:?}; write all, none, or some of {}", self.dialects.join(", ")))
            }
        }
    }
}

/// A dialect's name may be written with either stroke.
pub fn shown(name: &str) -> String {
    name.replace('_', "-")
}
