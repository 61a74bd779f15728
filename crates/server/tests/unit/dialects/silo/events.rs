use serde_json::{Value, json};
use windlass_server::dialects::silo::events::{SUMMARY_CHARACTERS, summary};

#[test]
fn a_result_is_summed_up_shortly() {
    let long = json!({"x": "y".repeat(500)});
    let table = [
        (Value::Null, 0),
        (json!({"summary": "all well"}), 8),
        (json!({"summary": 7}), 13),
        (long, SUMMARY_CHARACTERS),
        (json!("text"), 6),
    ];
    for (result, length) in table {
        assert_eq!(summary(&result).chars().count(), length, "{result}");
    }
}
