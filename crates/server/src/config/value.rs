//! Values as people write them.

use super::table::Kind;
use crate::peer::{Network, NotANetwork};
use std::time::Duration;
use windlass_core::Millis;

pub fn check(kind: Kind, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return match kind {
            Kind::Text | Kind::Path | Kind::Url | Kind::List | Kind::Networks | Kind::Secret => Ok(()),
            _ => Err("may not be empty".into()),
        };
    }
    match kind {
        Kind::Text | Kind::Path | Kind::List | Kind::Secret => Ok(()),
        Kind::Networks => networks(text).map(drop),
        Kind::Address => address(text),
        Kind::Url => url(text),
        Kind::Count => count(text).map(drop),
        Kind::Whole => whole(text).map(drop),
        Kind::Bytes => bytes(text).map(drop),
        Kind::Time => time(text).map(drop),
        Kind::Flag => flag(text).map(drop),
        Kind::Choice(choices) if choices.contains(&text) => Ok(()),
        Kind::Choice(choices) => Err(format!("{text:?} is none of {}", choices.join(", "))),
    }
}

/// Resolving is left to the start of the server; this is about what can be seen.
fn address(text: &str) -> Result<(), String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    match port.and_then(|port| port.parse::<u16>().ok()) {
        Some(_) => Ok(()),
        None => Err(format!("{text:?} is not an address; write it as HOST:PORT, e.g. 127.0.0.1:3000")),
    }
}

fn url(text: &str) -> Result<(), String> {
    match text.starts_with("http://") || text.starts_with("https://") {
        true => Ok(()),
        false => Err(format!("{text:?} is not a URL; it begins with http:// or https://")),
    }
}

pub fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

/// Within what a priority may be.
pub fn whole(text: &str) -> Result<i32, String> {
    let fits = text.parse().ok().filter(|number| (-1_000_000..=1_000_000).contains(number));
    fits.ok_or_else(|| format!("{text:?} is not a whole number between -1000000 and 1000000"))
}

pub fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

pub fn bytes(text: &str) -> Result<u64, String> {
    let units =
        [("", 1), ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("KB", 1_000), ("MB", 1_000_000)];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = (text[..digits].parse::<u64>(), text[digits..].trim());
    let factor = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor);
    match (number, factor) {
        (Ok(number), Some(factor)) => number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large")),
        _ => Err(format!("{text:?} is not understood; write it like 1048576, 64KiB or 16MiB")),
    }
}

pub fn time(text: &str) -> Result<Duration, String> {
    // Settings were never particular about capitals.
    let length: Millis = text.to_ascii_lowercase().parse()?;
    Ok(Duration::from_millis(length.0.unsigned_abs()))
}

pub fn networks(text: &str) -> Result<Vec<Network>, String> {
    list(text).iter().map(|part| part.parse().map_err(|error: NotANetwork| error.to_string())).collect()
}

pub fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
