use windlass_cli::store::line::Data;
use windlass_core::Payload;

#[test]
fn bytes_that_are_no_text_survive() {
    for bytes in [&b"plain"[..], b"\xff\x00\xfe", b"", b"{\"base64\": 1}"] {
        let text = serde_json::to_string(&Data(Payload::from(bytes))).unwrap();
        let back: Data = serde_json::from_str(&text).unwrap();
        assert_eq!(back.0.as_bytes(), bytes, "{text}");
    }
}
