use windlass_server::dialects::joblib::providers::question::{canonical, hash};

fn of(query: &[(&str, &str)]) -> String {
    canonical(&query.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>())
}

#[test]
fn the_form_and_its_hash_are_those_of_the_protocol() {
    assert_eq!(of(&[("path", "/")]), r#"{"path":"/"}"#);
    assert_eq!(hash(&of(&[("path", "/")])), "fdf6f57e150ea5cc949277a40f1c2b8fb53f108bd4c6af4b4f65f566507e6351");
    let odd = of(&[("path", "/ü😀"), ("a", "")]);
    assert_eq!(odd, r#"{"a":"","path":"/\u00fc\ud83d\ude00"}"#);
    assert_eq!(hash(&odd), "a9823aa4f424bae53855075deee34cae7f61972a8523c750eb09d5ca80c49473");
    assert_eq!(of(&[]), "{}");
    assert_eq!(of(&[("a", "1"), ("a", "\"\\\n\u{7f}")]), r#"{"a":"\"\\\n\u007f"}"#);
}
