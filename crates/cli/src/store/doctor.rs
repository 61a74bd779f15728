//! `windlass doctor`: is everything as it should be?
//!
//! Each finding is a sentence, and where it is bad another one that says what to do.

use super::{StoreAddress, migrate::read_only, sound};
use crate::{
    commands::{Context, Done},
    fail::code,
    output::{Colour, Rows, cell, clean_lines, say},
    remote::{Remote, TokenFrom},
    times,
};
use clap::Args;
use serde::Serialize;
use std::{borrow::Cow, fs, os::unix::fs::MetadataExt, path::Path};
use windlass_engine::Store;
use windlass_sdk::api::overview::{Dialects, Sign};
use windlass_stores::{
    embedded::{Embedded, OpenError, Options, SCHEMA_VERSION},
    postgres,
};

const FREE_MIN: u64 = 1 << 30;
const FILES_MIN: u64 = 4_096;
const OLD_TRANSACTION_S: i64 = 300;
const DEAD_MAX: i64 = 200_000;
const CLOCK_OFF_MS: i64 = 5_000;

/// Check the data, this machine and the server, and say how to fix problems.
///
/// Checks the data folder (permissions, who uses it, schema version, and every row if no server uses it) or PostgreSQL and its
/// settings; this machine (clock, disk space, open files); the server and the token.
#[derive(Args)]
#[command(after_help = "Exit codes: 0 nothing is wrong (there may be warnings), 1 something is.")]
pub struct Doctor {
    /// Do not check every row, which takes long in a large store.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    place: StoreAddress,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Fine,
    Warning,
    Bad,
}

#[derive(Serialize)]
struct Finding {
    verdict: Verdict,
    what: Cow<'static, str>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn fine(&mut self, what: impl Into<Cow<'static, str>>, text: impl Into<String>) {
        self.0.push(Finding { verdict: Verdict::Fine, what: what.into(), text: text.into(), advice: None });
    }
    fn warn(&mut self, what: impl Into<Cow<'static, str>>, text: impl Into<String>, advice: impl Into<String>) {
        let (what, text) = (what.into(), text.into());
        self.0.push(Finding { verdict: Verdict::Warning, what, text, advice: Some(advice.into()) });
    }
    fn bad(&mut self, what: &'static str, text: impl Into<String>, advice: impl Into<String>) {
        let (what, text) = (what.into(), text.into());
        self.0.push(Finding { verdict: Verdict::Bad, what, text, advice: Some(advice.into()) });
    }
}

impl Doctor {
    pub async fn run(self, context: &Context) -> Done {
        let mut findings = Findings::default();
        match &self.place.database {
            Some(url) => self.postgres(url, &mut findings).await,
            None => self.embedded(&mut findings).await,
        }
        machine(&self.place, &mut findings);
        server(&context.remote, &mut findings).await;
        let bad = findings.0.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
        context.format.many(&findings.0, || table(&findings.0))?;
        if context.format.is_table() {
            for finding in &findings.0 {
                if let Some(advice) = &finding.advice {
                    say(format!("\n{}: {}\n  {advice}", finding.what, clean_lines(&finding.text)))?;
                }
            }
        }
        Ok(if bad > 0 { code::ERROR } else { code::OK })
    }

    async fn embedded(&self, findings: &mut Findings) {
        let folder = self.place.folder();
        if !folder.join("windlass.db").exists() {
            let advice = "Name the folder with --data, or a database with --database. A first server makes one.";
            return findings.warn("data", format!("there are no data in {}", folder.display()), advice);
        }
        permissions(&folder, findings);
        match read_only(&folder)
            .and_then(|c| Ok(c.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?))
        {
            Ok(version) if version == SCHEMA_VERSION => findings.fine("schema", format!("version {version}")),
            Ok(version) if version < SCHEMA_VERSION => {
                let text = format!("version {version}, and this program writes {SCHEMA_VERSION}");
                findings.warn("schema", text, "The next server start brings it forward, as does `windlass migrate`.");
            }
            Ok(version) => {
                let text = format!("version {version}, and this program knows {SCHEMA_VERSION}");
                findings.bad("schema", text, "Use the newer windlass that wrote it.");
            }
            Err(error) => {
                findings.bad("schema", format!("{error:#}"), "Restore a backup, and keep the folder for inspection.")
            }
        }
        if self.quick {
            return;
        }
        match Embedded::open(&folder, Options::default()) {
            Ok(store) => {
                findings.fine("in use", "no server uses the folder now");
                checked(store.check().await, findings);
            }
            Err(OpenError::Locked { holder, .. }) => {
                findings
                    .fine("in use", format!("a server uses it (process {})", holder.as_deref().unwrap_or("unknown")));
                quick_check(&folder, findings);
            }
            Err(error) => {
                findings.bad("data", error.to_string(), "Restore a backup, and keep the folder for inspection.")
            }
        }
    }

    async fn postgres(&self, url: &str, findings: &mut Findings) {
        if let Err(error) = settings(url, &self.place.name(), findings).await {
            let advice = "Check the address, that the server runs, and pg_hba.conf on it.";
            return findings.bad("database", format!("{}: {error:#}", self.place.name()), advice);
        }
        match self.place.version().await {
            Ok(Some(version)) => findings.fine("schema", format!("version {version}")),
            Ok(None) => {
                return findings.warn(
                    "schema",
                    "there is none yet",
                    "The first server start makes it, as does `windlass migrate`.",
                );
            }
            Err(error) => return findings.bad("schema", format!("{error:#}"), "Look at the database's own log."),
        }
        if self.quick {
            return;
        }
        match self.place.open(false).await {
            Ok(store) => checked(store.check().await, findings),
            Err(error) => findings.bad("schema", format!("{error:#}"), "Run `windlass migrate`."),
        }
    }
}

fn checked(problems: Result<Vec<String>, windlass_engine::StoreError>, findings: &mut Findings) {
    match problems {
        Ok(problems) if problems.is_empty() => findings.fine("integrity", "every row was read and makes sense"),
        Ok(problems) => {
            let text = format!("{} problems, the first: {}", problems.len(), problems[0]);
            findings.bad("integrity", text, sound::ADVICE);
        }
        Err(error) => findings.bad("integrity", error.to_string(), sound::ADVICE),
    }
}

/// What can be said of a database while a server writes to it.
fn quick_check(folder: &Path, findings: &mut Findings) {
    let answer =
        read_only(folder).and_then(|c| Ok(c.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?));
    match answer {
        Ok(answer) if answer == "ok" => {
            findings.fine("integrity", "every page is sound; rows are read through when no server runs")
        }
        Ok(answer) => findings.bad(
            "integrity",
            answer,
            "Stop the server, restore a backup, and keep the damaged data for inspection.",
        ),
        Err(error) => findings.bad("integrity", format!("{error:#}"), "Stop the server and run this again."),
    }
}

fn permissions(folder: &Path, findings: &mut Findings) {
    let open = sound::open_to_others(folder);
    for (file, mode) in &open {
        let text = format!("{} can be read or written by others (mode {mode:o})", file.display());
        findings.bad("permissions", text, format!("It holds secrets: chmod 600 {}", file.display()));
    }
    if open.is_empty() {
        findings.fine("permissions", format!("{} is for its owner alone", folder.join("windlass.db").display()));
    }
    let owner = |path: &Path| fs::metadata(path).map(|about| about.uid()).ok();
    let me = owner(Path::new("/proc/self"));
    if me.is_some_and(|me| me != 0) && owner(&folder.join("windlass.db")) != me {
        let text = format!("{} belongs to another user than the one asking", folder.display());
        findings.warn("permissions", text, "Run this as the user the server runs as.");
    }
}

async fn settings(url: &str, name: &str, findings: &mut Findings) -> anyhow::Result<()> {
    let client = postgres::session(url).await?;
    let text = "SELECT current_setting('server_version_num')::integer, current_setting('server_version'), \
                current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), \
                current_setting('server_encoding'), pg_is_in_recovery(), \
                floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, current_setting('max_connections')";
    let row = client.query_typed_one(text, &[]).await?;
    let (version, shown): (i32, String) = (row.get(0), row.get(1));
    if version >= 150_000 {
        findings.fine("database", format!("{name} runs PostgreSQL {shown}"));
    } else {
        findings.bad("database", format!("PostgreSQL {shown}"), "At least 15 is needed.");
    }
    for (at, setting) in [(2, "fsync"), (3, "full_page_writes")] {
        match row.get::<_, &str>(at) {
            "off" => {
                findings.bad("durability", format!("{setting} = off"), "A power cut can lose everything: switch it on.")
            }
            value => findings.fine("durability", format!("{setting} = {value}")),
        }
    }
    match row.get::<_, &str>(4) {
        "off" => findings.warn(
            "durability",
            "synchronous_commit = off",
            "Windlass switches it on for its own sessions; a pooler may undo that.",
        ),
        value => findings.fine("durability", format!("synchronous_commit = {value}")),
    }
    if row.get::<_, &str>(5) != "UTF8" {
        findings.bad("database", "its encoding is not UTF8", "Create it with ENCODING 'UTF8'.");
    }
    if row.get::<_, bool>(6) {
        findings.bad("database", "it is a read-only standby", "Name the primary, or all hosts, in the address.");
    }
    let off = times::now().as_millisecond() - row.get::<_, i64>(7);
    if off.abs() > CLOCK_OFF_MS {
        let text = format!("this machine's clock and the database's differ by {}", times::short(off.unsigned_abs()));
        findings.warn("clock", text, "The database's clock decides; set up NTP so that logs and lists agree.");
    } else {
        findings.fine("clock", "agrees with the database's");
    }
    dead_rows(&client, findings).await
}

/// Old transactions keep what is dead, and tables and indexes swell with it.
async fn dead_rows(client: &tokio_postgres::Client, findings: &mut Findings) -> anyhow::Result<()> {
    let text = "SELECT COALESCE((SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_stat_activity \
                                 WHERE datname = current_database() AND pid <> pg_backend_pid()), 0)::bigint, \
                       COALESCE((SELECT sum(n_live_tup) FROM pg_stat_user_tables WHERE relname = 'jobs'), 0)::bigint, \
                       COALESCE((SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE relname = 'jobs'), 0)::bigint";
    let row = client.query_typed_one(text, &[]).await?;
    let (oldest, live, dead): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if oldest > OLD_TRANSACTION_S {
        let text = format!("one has been open for {}", times::short(oldest.unsigned_abs() * 1_000));
        findings.warn("transactions", text, "It keeps dead rows; find it in pg_stat_activity by its xact_start.");
    }
    let text = format!("{live} unfinished jobs, {dead} dead rows beside them");
    match dead > DEAD_MAX.max(live * 5) {
        true => findings.warn("dead rows", text, "Is autovacuum on, and does an old transaction hold it back?"),
        false => findings.fine("dead rows", text),
    }
    Ok(())
}

fn machine(place: &StoreAddress, findings: &mut Findings) {
    let now = times::now();
    let built: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    if now < built {
        findings.bad("clock", format!("this machine believes it is {now}"), "Set the clock, best with NTP.");
    }
    if place.database.is_none() {
        disk(&place.folder(), findings);
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse::<u64>().ok());
    match files {
        Some(files) if files < FILES_MIN => {
            let text = format!("at most {files} at a time");
            findings.warn(
                "open files",
                text,
                "Each connection is one: raise it (ulimit -n 65536, or LimitNOFILE in systemd).",
            );
        }
        Some(files) => findings.fine("open files", format!("at most {files} at a time")),
        None => {}
    }
}

/// Asked of `df`, which every system has; the standard library cannot tell.
fn disk(folder: &Path, findings: &mut Findings) {
    let there = if folder.exists() { folder } else { Path::new(".") };
    let Ok(output) = std::process::Command::new("df").arg("-Pk").arg(there).output() else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    let free =
        text.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)).and_then(|free| free.parse::<u64>().ok());
    match free.map(|free| free * 1_024) {
        Some(free) if free < FREE_MIN => {
            let advice = "Free some: a full disk refuses new work until there is room.";
            findings.warn("disk", format!("only {} are free for {}", times::bytes(free), folder.display()), advice);
        }
        Some(free) => findings.fine("disk", format!("{} are free for {}", times::bytes(free), folder.display())),
        None => {}
    }
}

async fn server(remote: &Remote, findings: &mut Findings) {
    let found = match remote.find().and_then(|found| Ok((found.endpoint.client()?, found))) {
        Ok(found) => found,
        Err(error) => {
            return findings.bad(
                "connection",
                format!("{error:#}"),
                "Correct the option, the variable or the profile it names.",
            );
        }
    };
    let (client, found) = found;
    match client.me().await {
        Ok(me) => {
            findings.fine(
                "server",
                format!("{} knows this token as {} ({})", found.endpoint.server, me.principal, me.role.name()),
            );
            // A worker's token may not ask.
            if let Ok(stats) = client.stats().await {
                without_token(&stats.without_token, findings);
            }
            if let Ok(dialects) = client.dialects().await {
                signs(dialects, findings);
            }
        }
        Err(error) if error.status() == Some(401) && found.from == TokenFrom::Nowhere => {
            let text = format!("{} answers, but no token was found to call it with", found.endpoint.server);
            findings.warn(
                "token",
                text,
                "Set WINDLASS_DATA to the server's data folder, or WINDLASS_TOKEN_FILE to a file with a token.",
            );
        }
        Err(error) if error.status() == Some(401) => {
            let text = format!("{} does not accept the token from {}", found.endpoint.server, found.from);
            findings.bad(
                "token",
                text,
                "It may be revoked, expired, or another server's; `windlass token create` makes a new one.",
            );
        }
        Err(error) if error.status().is_some() => {
            findings.warn("server", format!("{}: {error}", found.endpoint.server), "Look at the server's log.")
        }
        Err(error) => findings.warn(
            "server",
            error.to_string(),
            "Start one with `windlass up` or `windlass serve`, or name it with --server.",
        ),
    }
}

/// What the server says of the jobs and workers of its dialects. Those that nobody uses stand for nothing.
fn signs(dialects: Dialects, findings: &mut Findings) {
    for dialect in dialects.items {
        for Sign { what, text, advice } in dialect.signs {
            let what = format!("{}: {what}", dialect.name);
            match advice {
                Some(advice) => findings.warn(what, text, advice),
                None => findings.fine(what, text),
            }
        }
    }
}

fn without_token(who: &str, findings: &mut Findings) {
    match who {
        "never" => findings.fine("without a token", "nobody may call"),
        "loopback" => findings.fine(
            "without a token",
            "programs on the server's machine may call dialects whose clients send no token; behind a proxy there, set without_token = never",
        ),
        "anyone" => findings.warn(
            "without a token",
            "whoever reaches the server may run jobs over dialects whose clients send no token (without_token = anyone)",
            "Set without_token = never and give each client a token, or make sure that only its clients reach the port.",
        ),
        // An older server does not say.
        _ => {}
    }
}

fn table(findings: &[Finding]) -> Rows {
    let mut rows = Rows::new(&["", "WHAT", "FOUND"], "Nothing was looked at.");
    for finding in findings {
        let (sign, colour) = match finding.verdict {
            Verdict::Fine => ("ok", Colour::Green),
            Verdict::Warning => ("warning", Colour::Yellow),
            Verdict::Bad => ("BAD", Colour::Red),
        };
        rows.add(vec![cell(sign).colour(colour), cell(&*finding.what), cell(&finding.text)]);
    }
    rows
}
