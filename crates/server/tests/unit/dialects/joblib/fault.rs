use serde_json::{Value, json};
use windlass_server::dialects::joblib::fault::{Fault, INPUT_BYTES_MAX, number, uuid};

fn shown(fault: &Fault) -> Value {
    serde_json::to_value(fault).unwrap()
}

#[test]
fn faults_look_like_the_validators() {
    assert_eq!(
        shown(&Fault::missing(&["body", "name"], json!({"a": 1}))),
        json!({"type": "missing", "loc": ["body", "name"], "msg": "Field required", "input": {"a": 1}})
    );
    let word = shown(&Fault::word(&["query", "status"], &["pending", "failed"], json!("x")));
    assert_eq!(word["msg"], "Input should be 'pending' or 'failed'");
    assert_eq!(shown(&uuid(&["path", "task_id"], "x").unwrap_err())["type"], "uuid_parsing");
    for (text, kind) in [("501", "less_than_equal"), ("-1", "greater_than_equal"), ("many", "int_parsing")] {
        assert_eq!(shown(&number(&["query", "limit"], text, 0, 500).unwrap_err())["type"], kind);
    }
    assert_eq!(number(&["query", "limit"], "0", 0, 500).unwrap(), 0);
}

#[test]
fn what_stood_there_is_repeated_only_if_it_is_short() {
    let long = "x".repeat(INPUT_BYTES_MAX);
    assert_eq!(shown(&Fault::missing(&["body"], json!(long)))["input"], Value::Null);
    assert_eq!(shown(&Fault::missing(&["body"], json!("secret")).hidden())["input"], Value::Null);
}
