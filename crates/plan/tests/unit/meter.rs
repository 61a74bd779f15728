use serde_json::json;
use windlass_plan::meter::{Budget, Meter, weight_of_text};

#[test]
fn what_is_read_takes_no_more_than_its_text_said() {
    let values = [json!(1), json!("a,b"), json!([[], [1, 2, 3]]), json!({"a": {"b": [null, {"c": "d"}]}, "e": 1})];
    for value in values {
        let weight = Meter::default().weigh(&value).unwrap();
        assert!(weight <= weight_of_text(value.to_string().as_bytes()), "{value}");
    }
}

#[test]
fn a_text_is_given_up_where_it_gets_too_long() {
    let meter = Meter::new(Budget { payload: 8, ..Budget::default() });
    assert_eq!(meter.text(&json!("123456")).unwrap(), "\"123456\"");
    assert!(meter.text(&json!("1234567")).unwrap_err().contains("8 bytes"));
    assert!(!meter.is_over(), "it is too large however much could be spent");
}
