//! Times and lengths as people write and read them.

use jiff::tz::TimeZone;
use windlass_core::Millis;
use windlass_engine::clock::{Clock, System};

pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(System::default().now().0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// In milliseconds; a bare number is seconds.
pub fn length(text: &str) -> Result<u64, String> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let length: Millis = if bare { format!("{text}s").parse()? } else { text.parse()? };
    Ok(length.0.unsigned_abs())
}

/// A time as RFC 3339, or a local one without a zone (`2026-01-31T12:00` or `2026-01-31 12:00:00`). Gives RFC 3339.
pub fn moment(text: &str) -> Result<String, String> {
    moment_in(text, &TimeZone::system())
}

pub fn moment_in(text: &str, zone: &TimeZone) -> Result<String, String> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(time.to_string());
    }
    let local: jiff::civil::DateTime = text.parse().map_err(|_| {
        format!("{text:?} is not a time; write it like 2026-01-31T12:00:00Z, or without the Z for local time")
    })?;
    let zoned = local.to_zoned(zone.clone()).map_err(|error| error.to_string())?;
    Ok(zoned.timestamp().to_string())
}

/// A time as people read it: of their own zone (`TZ`, else the system's), to the second, with its offset.
pub fn local(time: jiff::Timestamp) -> String {
    local_in(time, &TimeZone::system())
}

pub fn local_in(time: jiff::Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// When, and how long ago or from now.
pub fn both(text: &str, now: jiff::Timestamp) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => format!("{} ({})", local(time), relative(text, now)),
        Err(_) => text.to_owned(),
    }
}

pub fn maybe_both(text: Option<&str>, now: jiff::Timestamp) -> String {
    text.map_or_else(String::new, |text| both(text, now))
}

/// A sentence of the server's, with the times in it as people read them.
pub fn localised(text: &str) -> String {
    localised_in(text, &TimeZone::system())
}

pub fn localised_in(text: &str, zone: &TimeZone) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..].find(|c: char| !matches!(c, '0'..='9' | '-' | ':' | '.' | 'T' | 'Z'));
        let end = end.map_or(rest.len(), |end| at + end);
        // A time ends with its Z; a full stop behind it ends the sentence.
        let word = rest[at..end].trim_end_matches(['.', ':']);
        out.push_str(&rest[..at]);
        match word.parse::<jiff::Timestamp>() {
            Ok(time) => out.push_str(&local_in(time, zone)),
            Err(_) => out.push_str(word),
        }
        rest = &rest[at + word.len()..];
    }
    out + rest
}

/// How long ago, or how long from now, in the largest unit that still says something.
pub fn relative(text: &str, now: jiff::Timestamp) -> String {
    let Ok(time) = text.parse::<jiff::Timestamp>() else { return text.to_owned() };
    let millis = now.as_millisecond().saturating_sub(time.as_millisecond());
    match millis {
        0..1_000 => "just now".into(),
        1_000.. => format!("{} ago", short(millis.unsigned_abs())),
        -999..=-1 => "now".into(),
        _ => format!("in {}", short(millis.unsigned_abs())),
    }
}

pub fn maybe_relative(text: Option<&str>, now: jiff::Timestamp) -> String {
    text.map_or_else(String::new, |text| relative(text, now))
}

/// Between two times, both as text.
pub fn between(from: &str, to: &str) -> Option<String> {
    let (from, to) = (from.parse::<jiff::Timestamp>().ok()?, to.parse::<jiff::Timestamp>().ok()?);
    Some(short((to.as_millisecond() - from.as_millisecond()).max(0).unsigned_abs()))
}

/// A length in at most two units.
pub fn short(millis: u64) -> String {
    let seconds = millis / 1_000;
    let two = |big: u64, big_name: &str, small: u64, small_name: &str| match small {
        0 => format!("{big}{big_name}"),
        _ => format!("{big}{big_name} {small}{small_name}"),
    };
    match seconds {
        0 => format!("{millis}ms"),
        1..10 => format!("{}.{}s", seconds, millis % 1_000 / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// Bytes for people.
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1_024.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1_024.0;
    }
    format!("{value:.1} TiB")
}
