//! The server's own log: lines for people, or one JSON object a line for programs.
//!
//! Only our own crates are listened to below warnings: database drivers write what they are given into their debug logs,
//! and what they are given includes hashes and leases.

use tracing::Subscriber;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter, util::SubscriberInitExt};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

const OURS: [&str; 6] =
    ["windlass", "windlass_cli", "windlass_core", "windlass_engine", "windlass_server", "windlass_stores"];

fn filter(level: &str) -> EnvFilter {
    let ours = OURS.iter().map(|name| format!("{name}={level}"));
    let others = if matches!(level, "off" | "error") { level } else { "warn" };
    EnvFilter::new(ours.chain([others.to_owned()]).collect::<Vec<_>>().join(","))
}

pub fn subscriber<W>(level: &str, format: Format, colours: bool, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level)).with_writer(writer);
    // A closed standard error must not end the server.
    let builder = builder.log_internal_errors(false);
    match format {
        Format::Text => Box::new(builder.with_ansi(colours).finish()),
        Format::Json => Box::new(builder.json().flatten_event(true).finish()),
    }
}

/// For the whole process, to standard error. A second call changes nothing.
pub fn init(level: &str, format: Format) {
    use std::io::IsTerminal;
    let colours = std::io::stderr().is_terminal();
    drop(subscriber(level, format, colours, std::io::stderr).try_init());
}
