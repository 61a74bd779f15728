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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wait_with_digits_counts() {
        let prefer = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(text));
            wait(&headers)
        };
        for (text, expected) in [
            ("wait=5", Some(5)),
            ("respond-async, wait=10; x", Some(10)),
            ("wait=, wait=7", Some(7)),
            ("wait=0", Some(0)),
            ("wait = 5", None),
            ("respond-async", None),
            ("wait=99999999999999999999999", Some(u64::MAX)),
        ] {
            assert_eq!(prefer(text), expected, "{text}");
        }
        assert_eq!(wait(&HeaderMap::new()), None);
        assert_eq!(applied(bounded(100, Duration::from_secs(60))), "wait=60");
    }
}
