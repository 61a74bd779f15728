//! How bodies are read. Tested from outside, so that the crate need not be compiled a second time for unit tests.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::{
    definition::DefinitionBody,
    job::{SubmitJob, SubmitMany},
    lease::{Batch, Sync},
    object::Object,
    schedule::PutSchedule,
    settings::JobSettings,
};

fn reads<T: DeserializeOwned>(text: &str) -> bool {
    serde_json::from_str::<Object<T>>(text).is_ok()
}

#[test]
fn an_array_is_no_object_wherever_one_is_sent() {
    assert!(reads::<SubmitJob>(r#"{"payload": [1,  2], "retry": {}, "concurrency": null}"#));
    let Object(job) = serde_json::from_str::<Object<SubmitJob>>(r#"{"payload": [1,  2]}"#).unwrap();
    assert_eq!(job.payload.unwrap().get(), "[1,  2]", "payloads stay as they were written");
    for job in ["[]", "[null]", r#"{"retry": []}"#, r#"{"concurrency": ["k", 1]}"#] {
        assert!(!reads::<SubmitJob>(job), "{job}");
        assert!(!reads::<SubmitMany>(&format!(r#"{{"jobs": [{job}]}}"#)), "{job}");
        assert!(!reads::<PutSchedule>(&format!(r#"{{"every_ms": 1, "job": {job}}}"#)), "{job}");
    }
    assert!(reads::<SubmitMany>(r#"{"jobs": [{}]}"#));
    assert!(!reads::<Batch>(r#"{"operations": [], "claim": ["w"]}"#) && reads::<Batch>(r#"{"operations": []}"#));
    assert!(!reads::<Sync>(r#"{"worker": "w", "leases": [["l"]]}"#));
}

fn refused(text: &str) -> String {
    serde_json::from_str::<Object<SubmitJob>>(text).map(|_| ()).expect_err(text).to_string()
}

#[test]
fn a_wrong_field_is_named_with_its_place_and_all_fields_there_are() {
    let error = refused("{\n  \"priority\": 1,\n  \"priorty\": 2\n}");
    assert!(error.starts_with("unknown field `priorty`, expected one of `id`, `definition`, "), "{error}");
    assert!(error.contains("`tags`, `priority`") && error.ends_with("at line 3 column 11"), "{error}");
    let wrong = [
        (r#"{"priority": 1, "priority": 1}"#, "duplicate field `priority` at line 1 column 26"),
        (r#"{"payload": 1, "payload": 1}"#, "duplicate field `payload`"),
        (r#"{"priority": "high"}"#, "invalid type: string \"high\", expected i32 at line 1 column 19"),
        (r#"{"retry": {"atempts": 1}}"#, "unknown field `atempts`, expected one of `attempts`"),
        (r#"{"settings": {}}"#, "unknown field `settings`"),
        (r#"{"timeout": "1s"}"#, "unknown field `timeout`"),
        (r#"[]"#, "expected an object"),
    ];
    for (text, expected) in wrong {
        assert!(refused(text).contains(expected), "{text}: {}", refused(text));
    }
    for text in [r#"{"tags": null}"#, r#"{"cancel": "drain"}"#, r#"{"priorty": 1}"#, "[]"] {
        assert!(serde_json::from_str::<DefinitionBody>(text).is_err(), "{text}");
    }
}

/// Keys are remembered for longer than a program runs, and definitions for good.
#[test]
fn bodies_are_recognised_by_the_text_they_always_had() {
    let text = r#"{"retention_ms":8,"cancel":"drain","lease_ms":7,"pending_timeout_ms":6,"timeout_ms":5,"retry":{"attempts":2},"idempotency_ms":4,
        "idempotency_key":"k","concurrency":{"key":"c","limit":1},"facets":{"a":"b"},"when_parent_fails":"run","after":[],"delay_ms":3,
        "priority":1,"tags":[],"payload":{"b": 1.50,  "a":[ ]},"definition":"d","id":"00000000-0000-0000-0000-000000000001"}"#;
    let job: SubmitJob = serde_json::from_str(text).unwrap();
    let expected = concat!(
        r#"{"definition":"d","payload":{"b": 1.50,  "a":[ ]},"tags":[],"priority":1,"delay_ms":3,"when_parent_fails":"run","#,
        r#""facets":{"a":"b"},"concurrency":{"key":"c","limit":1},"retry":{"attempts":2},"timeout_ms":5,"#,
        r#""pending_timeout_ms":6,"lease_ms":7,"cancel":"drain","retention_ms":8}"#
    );
    assert_eq!(job.signature().unwrap(), expected);
    assert_eq!(SubmitJob::default().signature().unwrap(), "{}");
    let text = r#"{"retention_ms":6,"concurrency":{"key":"c","limit":1},"lease_ms":5,"pending_timeout_ms":4,"timeout_ms":3,"retry":{},
        "result_schema":true,"payload_schema":{},"payload":{"b":1,"a":2},"priority":1,"tags":["t"],"description":"d"}"#;
    let body: DefinitionBody = serde_json::from_str(text).unwrap();
    let expected = concat!(
        r#"{"description":"d","tags":["t"],"priority":1,"payload":{"a":2,"b":1},"payload_schema":{},"result_schema":true,"#,
        r#""retry":{},"timeout_ms":3,"pending_timeout_ms":4,"lease_ms":5,"concurrency":{"key":"c","limit":1},"#,
        r#""retention_ms":6}"#
    );
    assert_eq!(body.text().unwrap(), expected);
    assert_eq!(serde_json::from_str::<DefinitionBody>(r#"{"tags":[]}"#).unwrap().text().unwrap(), "{}");
    assert_eq!(serde_json::from_str::<DefinitionBody>(expected).unwrap(), body);
}

/// A value for each setting.
fn everything() -> Value {
    json!({
        "name": "n", "tags": ["gpu"], "priority": 7, "concurrency": {"key": "k", "limit": 2}, "retry": {"attempts": 5},
        "timeout_ms": 1, "deadline_ms": 5, "pending_timeout_ms": 2, "lease_ms": 3, "retention_ms": 4,
    })
}

fn settings(value: &Value) -> JobSettings {
    serde_json::from_value::<SubmitJob>(value.clone()).unwrap().settings
}

#[test]
fn every_setting_is_named_read_written_and_handed_on() {
    let all = everything();
    let names: Vec<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
    let mut named = JobSettings::NAMES.to_vec();
    named.sort_unstable();
    assert_eq!(named, names, "the test names them all");
    assert_eq!(serde_json::to_value(settings(&all)).unwrap(), all);
    assert_eq!(JobSettings::default().or(&settings(&all)), settings(&all), "what is not said comes from the general");
    for name in names {
        let one = json!({ name: all[name] });
        assert_eq!(serde_json::to_value(settings(&one)).unwrap(), one);
        let mut other = all.clone();
        other[name] = match name {
            "name" => json!("other"),
            "tags" => json!([]),
            "concurrency" => json!({"key": "other", "limit": 1}),
            "retry" => json!({}),
            _ => json!(99),
        };
        let merged = settings(&json!({ name: other[name] })).or(&settings(&all));
        assert_eq!(serde_json::to_value(merged).unwrap(), other, "the specific {name} is in effect");
    }
}
