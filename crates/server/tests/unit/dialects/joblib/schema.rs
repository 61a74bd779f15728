use serde_json::value::RawValue;
use windlass_server::dialects::joblib::schema::print;

fn same(a: &str, b: &str) -> bool {
    let read = |text: &str| RawValue::from_string(text.into()).unwrap();
    print(&read(a)) == print(&read(b))
}

#[test]
fn schemas_are_compared_as_values() {
    for (a, b, expected) in [
        (r#"{"a":1,"b":[1,2]}"#, r#"{ "b": [1.0, 2], "a": 1.0 }"#, true),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
        (r#"{"a":1}"#, r#"{"a":1.5}"#, false),
        (r#"{"a":0}"#, r#"{"a":-0.0}"#, true),
        (r#"{"a":"1"}"#, r#"{"a":1}"#, false),
        (r#"{"a":null}"#, r#"{}"#, false),
        (r#"{"a":["b"]}"#, r#"{"a":["b",[]]}"#, false),
    ] {
        assert_eq!(same(a, b), expected, "{a} {b}");
    }
}
