//! A name for each request, in its answer, in its error and in the log, so that the three can be found from each other.

use http::{HeaderMap, HeaderName, HeaderValue};

const LENGTH_MAX: usize = 64;

pub struct RequestId(HeaderValue);

impl RequestId {
    pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

    /// The caller's own, if it is a short plain word: it will stand in logs.
    pub fn of(headers: &HeaderMap) -> Self {
        match headers.get(Self::HEADER) {
            Some(value) if is_sane(value.as_bytes()) => Self(value.clone()),
            _ => Self::draw(),
        }
    }

    fn draw() -> Self {
        let mut text = [0; 16];
        let random: u64 = rand::random();
        for (at, digit) in text.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(random >> (at * 4) & 15) as usize];
        }
        Self(HeaderValue::from_bytes(&text).expect("hexadecimal digits are a legal header"))
    }

    pub fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub fn into_value(self) -> HeaderValue {
        self.0
    }
}

fn is_sane(bytes: &[u8]) -> bool {
    (1..=LENGTH_MAX).contains(&bytes.len()) && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
}
