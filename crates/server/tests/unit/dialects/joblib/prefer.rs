use http::{HeaderMap, HeaderValue};
use std::time::Duration;
use windlass_server::dialects::joblib::prefer::{applied, bounded, wait};

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
