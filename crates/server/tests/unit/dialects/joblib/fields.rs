use serde_json::{Value, json};
use windlass_server::dialects::joblib::{error::HttpError, fault::Fault, fields::Fields};

fn told(fields: Fields) -> Vec<(String, Value)> {
    let Err(HttpError::Invalid(faults)) = fields.done() else { return Vec::new() };
    let told = |fault: &Fault| {
        let shown = serde_json::to_value(fault).unwrap();
        (format!("{} {}", shown["type"].as_str().unwrap(), shown["loc"]), shown["input"].clone())
    };
    faults.iter().map(told).collect()
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let sent = r#"{"name": 7, "schema_": null, "worker_id": "x", "status": "odd", "extra": 1}"#;
    let mut fields = Fields::read(sent.as_bytes()).unwrap();
    fields.text("category");
    fields.text("name");
    fields.object(&["schema", "schema_"]);
    fields.maybe_id("worker_id");
    fields.word("status", &["running"]);
    let told = told(fields);
    let kinds: Vec<&str> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            r#"missing ["body","category"]"#,
            r#"string_type ["body","name"]"#,
            r#"dict_type ["body","schema_"]"#,
            r#"uuid_parsing ["body","worker_id"]"#,
            r#"enum ["body","status"]"#
        ]
    );
    assert_eq!(told[0].1["name"], 7);
}

#[test]
fn what_is_sent_is_kept_as_it_was_sent() {
    let mut fields = Fields::read(br#"{"schema_": {"b": 1.0,  "a": []}, "worker_id": null}"#).unwrap();
    assert_eq!(fields.object(&["schema", "schema_"]).unwrap().get(), r#"{"b": 1.0,  "a": []}"#);
    assert_eq!(fields.maybe_id("worker_id"), None);
    fields.done().unwrap();
}

#[test]
fn no_fault_repeats_a_secret() {
    let mut fields = Fields::read(br#"{"email": 1, "password": "hush"}"#).unwrap().hidden();
    fields.text("email");
    fields.text("name");
    assert!(told(fields).iter().all(|(_, input)| input.is_null()));
}

#[test]
fn what_is_no_object_is_refused() {
    for (sent, kind) in [("[1]", "model_attributes_type"), ("{\"a\":", "json_invalid"), ("{} x", "json_invalid")] {
        let fault = Fields::read(sent.as_bytes()).unwrap_err();
        assert_eq!(serde_json::to_value(&fault).unwrap()["type"], json!(kind), "{sent}");
    }
}
