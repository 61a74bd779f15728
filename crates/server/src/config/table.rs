//! Every setting: its name, what it takes, its default, what it is for. Flag, variable, file key, `--help` and the
//! documentation all follow from this one table.

use super::{
    adjusted::{self, Adjusted},
    value,
    values::Values,
};

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
    /// IP addresses and networks, separated like a list.
    Networks,
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
        self.kind != Kind::Secret || self.name == database.name
    }
}

pub const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];
pub const FORMATS: &[&str] = &["text", "json"];

/// A table of settings, each of them also a constant of its name, so that a name that is misspelt does not compile.
#[macro_export]
macro_rules! settings {
    ($table:ident: $($name:ident: $kind:expr, $default:expr, $help:expr;)+) => {
        $(#[allow(non_upper_case_globals)]
        pub const $name: $crate::config::table::Setting =
            $crate::config::table::Setting { name: stringify!($name), kind: $kind, default: $default, help: $help };)+
        pub const $table: &[$crate::config::table::Setting] = &[$($name),+];
    };
}

settings! { SETTINGS:
    data: Kind::Path, ".windlass", "Folder for the embedded store, the admin token and artifacts";
    listen: Kind::Address, "127.0.0.1:3000", "Address and port to listen on";
    database: Kind::Secret, "", "URL of the PostgreSQL database, e.g. postgres://user:password@host/database. Default: the embedded store";
    tls_cert: Kind::Path, "", "Certificate chain (PEM). Together with tls_key it switches TLS on";
    tls_key: Kind::Path, "", "Private key (PEM)";
    hosts: Kind::List, "", "Host names the server accepts, in addition to localhost and the address it listens on; * accepts any";
    origins: Kind::List, "", "Origins whose web pages may call the API, e.g. https://app.example.com";
    proxies: Kind::Networks, "", "Addresses or networks of reverse proxies, e.g. 10.0.0.5, 10.1.0.0/16. Limits on failed logins, device logins and guests \
         then count for the client that such a proxy names in X-Forwarded-For. Default: none; the header is ignored";
    admin_token: Kind::Secret, "", "The admin token, at least 16 characters. Default: a new token, written to admin.token in the data folder";
    without_token: Kind::Choice(crate::without_token::CHOICES), "auto", "Who may call without a token, on the paths of dialects whose clients cannot send one: never (nobody), loopback (programs on this \
         machine), anyone (everybody who can reach the port, who can then run jobs) or auto (loopback if the server listens on a \
         loopback address and hosts names no other host, else never). If a proxy runs on the same machine, set never";
    log: Kind::Choice(LEVELS), "info", "Log level: off, error, warn, info, debug or trace";
    log_format: Kind::Choice(FORMATS), "text", "Log format: text for people, json for programs";
    retention: Kind::Time, "7d", "How long finished jobs are kept if they do not set it themselves";
    events_kept: Kind::Time, "1d", "How long events are kept";
    audit_kept: Kind::Time, "365d", "How long entries of the audit log are kept. At most 100000 entries of each namespace are; beyond that only acts on \
         principals and tokens are added";
    lease: Kind::Time, "30s", "Lease duration if neither the job nor the worker sets one";
    body_max: Kind::Bytes, "2MiB", "Largest body of an ordinary request; batches and uploads may be larger";
    bodies_max: Kind::Bytes, "256MiB", "Memory for all request bodies that are being received, and for large answers. Requests beyond it are answered 503";
    bodies_per_principal_max: Kind::Bytes, "64MiB", "Part of bodies_max that one principal, with those it makes tokens for, may use. Requests beyond it are answered 429. Bodies of up to \
         16 KiB and answers of up to 64 KiB are not counted";
    workers_per_namespace_max: Kind::Count, "10000", "Workers that may be registered in one namespace. Registrations beyond it are answered 429";
    definitions_per_namespace_max: Kind::Count, "100000", "Definitions that one namespace may have, those that were deleted included. Requests beyond it are answered 429";
    schedules_per_namespace_max: Kind::Count, "1000", "Schedules that one namespace may have. Requests beyond it are answered 429";
    offers_per_namespace_max: Kind::Count, "10000", "Different tag sets with which the workers of one namespace may wait at the same time. Claims beyond it are answered 429";
    tag_sets_per_namespace_max: Kind::Count, "200000", "Different tag sets that the waiting jobs of one namespace may have. Further jobs with tags are answered 429. A set with many \
         tags counts as several";
    payload_max: Kind::Bytes, "1MiB", "Largest payload of a job, and largest result";
    job_log_max: Kind::Bytes, "16MiB", "Largest log of a job. Of a longer log, the beginning and the newest part are kept";
    retry_rate: Kind::Count, "100", "How many failed jobs of one kind (same definition, or same tags) are retried per second; the others wait. 0: no limit";
    stored_bytes_per_namespace_max: Kind::Text, "auto", "Bytes that one namespace may store, e.g. 10GiB: payloads, results, logs, records and events. What would store more is answered 507; \
         reports, cancels and deletes are not limited. 0: no limit. auto: half of the disk with the embedded store, 64GiB with PostgreSQL";
    stored_bytes_of_namespaces: Kind::List, "", "Namespaces with a limit of their own in place of stored_bytes_per_namespace_max, e.g. film=100GiB,tools=1GiB";
    artifact_max: Kind::Bytes, "1GiB", "Largest artifact";
    artifacts_per_job_max: Kind::Bytes, "8GiB", "Total size of the artifacts of one job. 0: no limit";
    artifacts_per_namespace_max: Kind::Bytes, "64GiB", "Total size of the artifacts and files of one namespace. 0: no limit";
    artifacts_reserve: Kind::Bytes, "1GiB", "Free space that artifacts leave on their disk, so that the store keeps working; at most a tenth of the disk";
    disk_reserve: Kind::Bytes, "32MiB", "Disk space that the embedded store keeps back for reports, renewals, cancels, deletes and revoked tokens. While nothing else is free, \
         all other writes are answered 507. At most a tenth of the disk. 0: none";
    connections_max: Kind::Count, "10000", "Open connections in total. Connections beyond it are answered 503 and closed";
    connections_per_address_max: Kind::Count, "1000", "Open connections from one address (IPv6: one /64); loopback is exempt";
    head_timeout: Kind::Time, "10s", "Time limit for a request head, from its first byte";
    body_timeout: Kind::Time, "15s", "Longest pause within a request body";
    body_rate_min: Kind::Bytes, "8KiB", "Minimum average rate of a body in bytes per second, once the server has waited for it twice `body_timeout`. 0: no limit";
    write_timeout: Kind::Time, "30s", "Close the connection if the client has read no response data for this long";
    idle_timeout: Kind::Time, "2m", "Close a connection without a request after this time";
    drain_timeout: Kind::Time, "7s", "How long running requests may take to finish when the server stops";
    definitions: Kind::Path, "", "Folder with job definitions, loaded at startup and whenever they change";
    workflows: Kind::Path, "", "Folder with workflow files, native ones and those of dialects, loaded at the start";
    dialects: Kind::List, "all", "Protocols to serve beside Windlass's own: all, none, or names separated by commas. Those that are not served have no paths";
    artifacts: Kind::Text, "", "Folder for artifacts. Default: `artifacts` in the data folder. Servers on one database must share one folder";
    artifacts_adopt: Kind::Flag, "false", "Accept this artifact folder although the database has recorded another one, and record this one from now on";
    otel_endpoint: Kind::Url, "", "Where to send OpenTelemetry traces (OTLP over HTTP), e.g. http://127.0.0.1:4318";
    trace_url: Kind::Url, "", "Address of a trace in your tracing UI, with {trace} where its id goes, e.g. https://jaeger.example.com/trace/{trace}; jobs then \
         link to it";
    unsafe_no_fsync: Kind::Flag, "false", "Do not fsync before acknowledging. A power cut can then lose acknowledged work and damage the store. For tests only";
}

/// A setting under a name that another program's users know it by. Our own names win over these.
#[derive(Clone, Copy)]
pub struct Foreign {
    /// A variable, or `block.key` in a file.
    pub from: From,
    pub to: Setting,
    /// From their way of writing it to ours.
    pub convert: fn(&str) -> Result<String, String>,
}

/// What a name means that is understood, so that a file need not be changed, and has nothing to say here.
pub const NOTHING: Setting = Setting { name: "", kind: Kind::Text, default: "", help: "" };

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
        Foreign { from: From::Variable("WINDLASS_ALLOW_OPEN"), to: without_token, convert: open_to },
        Foreign { from: From::Plain("allow_open"), to: without_token, convert: open_to },
    ]
}

/// All that can be set: our own settings, and those that dialects bring along.
#[derive(Clone)]
pub struct Table {
    pub settings: Vec<&'static Setting>,
    pub foreign: Vec<Foreign>,
    /// The dialects' names, as people write them.
    pub dialects: Vec<String>,
    /// What is in effect instead of what was written.
    pub adjusted: Vec<fn(&Values) -> Vec<Adjusted>>,
}

/// Without any dialect.
impl Default for Table {
    fn default() -> Self {
        let adjusted: Vec<fn(&Values) -> Vec<Adjusted>> = vec![adjusted::own];
        Self { settings: SETTINGS.iter().collect(), foreign: older(), dialects: Vec::new(), adjusted }
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
