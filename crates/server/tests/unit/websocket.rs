use http::{HeaderMap, HeaderName, HeaderValue};
use windlass_server::websocket::key;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

/// The example of RFC 6455, section 1.3.
#[test]
fn a_key_is_answered_as_the_standard_says() {
    let asked = headers(&[
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]);
    assert_eq!(key(&asked).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    for missing in ["connection", "upgrade", "sec-websocket-version", "sec-websocket-key"] {
        let mut less = asked.clone();
        less.remove(missing);
        assert!(key(&less).is_err(), "without {missing}");
    }
}
