use http::{HeaderMap, HeaderValue};
use windlass_server::request_id::RequestId;

#[test]
fn only_plain_words_are_taken_over() {
    let of = |text: &str| {
        let headers = [(RequestId::HEADER, HeaderValue::from_bytes(text.as_bytes()).unwrap())].into_iter().collect();
        RequestId::of(&headers).text().to_owned()
    };
    assert_eq!(of("build-7.2_a"), "build-7.2_a");
    for odd in ["", "a b", "a\tb", "<script>", &"x".repeat(65)] {
        assert_eq!(of(odd).len(), 16, "{odd:?} gives way to a drawn one");
    }
    let drawn = || RequestId::of(&HeaderMap::new());
    assert_ne!(drawn().text(), drawn().text());
}
