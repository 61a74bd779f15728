use windlass_core::Timestamp;
use windlass_server::wire_time::{parse, text};

#[test]
fn times_survive_their_text_form() {
    let at = Timestamp(1_763_208_000_123);
    assert_eq!(text(at), "2025-11-15T12:00:00.123Z");
    assert_eq!(parse("t", &text(at)).unwrap(), at);
    assert_eq!(parse("t", "2025-11-15T13:00:00.123+01:00").unwrap(), at);
    assert!(parse("t", "tomorrow").is_err());
}
