use windlass_server::dialects::joblib::settings::{seconds, words};

#[test]
fn values_are_read_as_the_original_writes_them() {
    assert_eq!((seconds("60").unwrap(), seconds("0.01").unwrap()), ("60000ms".into(), "10ms".into()));
    assert_eq!(words(r#"["modifiers", "filesystem"]"#).unwrap(), "modifiers,filesystem");
    for junk in ["-1", "soon", "NaN", "1e30"] {
        assert!(seconds(junk).is_err(), "{junk}");
    }
    assert!(words("modifiers").is_err() && words(r#"["a,b"]"#).is_err());
}
