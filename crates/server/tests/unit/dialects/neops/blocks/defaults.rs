use serde_json::{Value, json};
use windlass_server::dialects::neops::blocks::defaults::fill;

#[test]
fn what_is_left_out_gets_its_default_wherever_it_stands() {
    let schema = json!({
        "properties": {
            "message": {"type": "string"},
            "count": {"default": 1},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            "inner": {"$ref": "#/$defs/inner", "default": {}},
            "list": {"items": {"$ref": "#/$defs/inner"}},
        },
        "$defs": {"inner": {"properties": {"deep": {"default": [1]}}}},
    });
    let table = [
        (json!({}), json!({"count": 1, "maybe": null, "inner": {"deep": [1]}})),
        (
            json!({"count": null, "maybe": "x", "inner": {"deep": 2}, "list": [{}, 3]}),
            json!({"count": null, "maybe": "x", "inner": {"deep": 2}, "list": [{"deep": [1]}, 3]}),
        ),
        (json!([1]), json!([1])),
    ];
    for (mut value, expected) in table {
        fill(&schema, &mut value).unwrap();
        assert_eq!(value, expected);
    }
}

#[test]
fn schemas_that_go_in_circles_or_ask_for_too_much_end() {
    let circle = json!({"$ref": "#", "properties": {"again": {"$ref": "#", "default": {}}}});
    assert!(fill(&circle, &mut json!({})).is_err());
    let much = json!({"items": {"properties": {"x": {"default": vec![0; 1_000]}}}});
    let mut items = Value::Array(vec![json!({}); 200]);
    assert!(fill(&much, &mut items).is_err());
}
