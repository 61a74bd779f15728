//! `Prefer: wait=N`: how long a caller would wait.

use http::{HeaderMap, HeaderValue};
use std::time::Duration;

/// The first `wait=` with digits after it, anywhere in the header.
pub fn wait(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get("prefer").and_then(|value| value.to_str().ok())?;
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    let mut found = value.match_indices("wait=").map(|(at, word)| &value[at + word.len()..]);
    let rest = found.find(|rest| digits(rest) > 0)?;
    // More than a number holds is as long as it may be.
    Some(rest[..digits(rest)].parse().unwrap_or(u64::MAX))
}

/// How long to wait for a caller who asked for so many seconds.
pub fn bounded(seconds: u64, most: Duration) -> Duration {
    Duration::from_secs(seconds).min(most)
}

/// What a caller is told who was waited for.
pub fn applied(wait: Duration) -> HeaderValue {
    HeaderValue::try_from(format!("wait={}", wait.as_secs())).expect("digits")
}
