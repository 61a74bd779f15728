mod hostile;

use serde_json::{Value, json};
use std::sync::Arc;
use windlass_api::definition::DefinitionBody;
use windlass_core::{Namespace, Payload};
use windlass_server::{
    problem::{Code, Result},
    schema::{Compiled, KEPT, STEPS_MAX, Versions, cost, fits},
};

fn compiled(schema: serde_json::Value) -> Result<Compiled> {
    Compiled::new(DefinitionBody { payload_schema: Some(schema), ..DefinitionBody::default() })
}

#[test]
fn the_pointer_leads_to_what_is_wrong() {
    let schema = json!({"type": "object", "required": ["to"], "properties": {
        "to": {"type": "array", "items": {"type": "string"}}, "a/b": {"type": "integer"}}});
    let compiled = compiled(schema).unwrap();
    let table = [
        (r#"{"to": ["x"]}"#, None),
        (r#"{"to": ["x", 7]}"#, Some("/to/1")),
        (r#"{"to": [], "a/b": "no"}"#, Some("/a~1b")),
        (r#"{}"#, Some("")),
        ("", Some("")),
    ];
    for (payload, field) in table {
        let problem = compiled.check_payload(&payload.into()).err();
        assert_eq!(problem.as_ref().and_then(|problem| problem.0.field.as_deref()), field, "{payload}");
        assert!(problem.is_none_or(|problem| problem.0.is(Code::Schema)));
    }
}

#[test]
fn what_cannot_be_used_is_refused_when_it_is_written() {
    let bad = [
        json!({"type": "strnig"}),
        json!({"$ref": "http://127.0.0.1:1/schema.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"pattern": "(a+)+\\1$"}),
        json!(7),
    ];
    for schema in bad {
        let problem = compiled(schema.clone()).err().unwrap_or_else(|| panic!("{schema}"));
        assert!(problem.0.field.unwrap().starts_with("payload_schema"), "{schema}");
    }
    let own = json!({"properties": {"$ref": {"type": "string"}, "$id": {"const": {"$ref": "http://x"}}}});
    assert!(compiled(own).is_ok(), "names of properties are no keywords");
    assert!(compiled(json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}})).is_ok());
}

#[test]
fn only_the_versions_in_use_are_kept() {
    let mut used = Versions::default();
    let key = |version| (Namespace::default(), Arc::from("d"), version);
    for version in 0..KEPT as u32 + 10 {
        used.put(key(version), Arc::new(compiled(json!({})).unwrap()));
        used.get(&key(0));
    }
    assert!(used.get(&key(0)).is_some() && used.get(&key(1)).is_none());
    let kept = (0..KEPT as u32 + 10).filter(|version| used.get(&key(*version)).is_some());
    assert_eq!(kept.count(), KEPT);
}

#[test]
fn what_would_take_too_long_to_check_is_refused_with_its_place() {
    let twice = |of: &str| json!([{"$ref": of}, {"$ref": of}]);
    let list = json!({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}}]});
    let tree = compiled(list).unwrap();
    let deep = |depth: usize| Payload::from(format!("{}{}", "[".repeat(depth), "]".repeat(depth)).as_str());
    assert!(tree.check_payload(&deep(6)).is_ok());
    let problem = tree.check_payload(&deep(40)).unwrap_err();
    assert!(problem.0.detail.contains("steps") && problem.0.field.unwrap().starts_with("/0/0"));
    let mut defs = json!({"d0": {"type": "integer"}});
    for at in 1..30 {
        defs[format!("d{at}")] = json!({"anyOf": twice(&format!("#/$defs/d{}", at - 1))});
    }
    let chain = compiled(json!({"$ref": "#/$defs/d29", "$defs": defs})).unwrap();
    assert!(chain.check_payload(&"\"x\"".into()).unwrap_err().0.detail.contains("steps"));
    let own = compiled(
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
    );
    if let Ok(own) = own {
        let told = own.check_payload(&"1".into()).unwrap_err().0.detail;
        assert!(told.contains("leads back to itself"), "{told}");
    }
}

#[test]
fn every_keyword_that_costs_is_counted() {
    let many = json!((0..2_000).collect::<Vec<_>>());
    let fields: Value =
        (0..500).map(|at| (format!("f{at}"), json!({"x": at}))).collect::<serde_json::Map<_, _>>().into();
    let table = [
        (json!({"uniqueItems": true}), many.clone(), 20_000),
        (json!({"items": {"enum": (0..100).collect::<Vec<_>>()}}), many.clone(), 200_000),
        (json!({"items": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}), many.clone(), 8_000),
        (json!({"patternProperties": {"^f": {"type": "object"}, "[0-9]$": true}}), fields.clone(), 8_000),
        (json!({"additionalProperties": {"required": ["x"]}}), fields.clone(), 1_500),
        (json!({"allOf": [{"properties": {"f1": true}}], "unevaluatedProperties": true}), fields.clone(), 1_500),
        (json!({"propertyNames": {"pattern": "^f[0-9]+$"}}), fields, 8_000),
        (json!({"pattern": "^[a-z]+$"}), json!("a".repeat(10_000)), 40_000),
        (json!({"maxLength": 9}), json!("a".repeat(10_000)), 2_500),
    ];
    for (schema, value, least) in table {
        let fit = fits::check("f", &schema).unwrap();
        let steps = cost::of(&fit, &value, STEPS_MAX).ok().unwrap().steps;
        assert!((least..least * 30).contains(&steps), "{schema}: {steps}");
        assert!(cost::of(&fit, &value, least / 2).is_err(), "{schema}");
    }
}

#[test]
fn a_schema_that_would_take_too_much_to_compile_is_refused() {
    let patterns = |pattern: &str, times: usize| {
        let one = |at: usize| (format!("p{at}"), json!({"pattern": format!("{pattern}{at}")}));
        json!({"properties": (0..times).map(one).collect::<serde_json::Map<_, _>>()})
    };
    let mut deep = json!({});
    for _ in 0..80 {
        deep = json!({"not": deep});
    }
    let table = [
        (patterns(r"(\pL{30}){6}[k]", 1), "compiled"),
        (patterns(r"(\pL{30}){6}[k]", 100), "compiled"),
        (patterns("a", 101), "100 patterns"),
        (patterns(r"^\pL+\p{Lu}$", 90), "KiB"),
        (json!({"patternProperties": {r"(\pL{30}){6}": true}}), "compiled"),
        (deep, "nested"),
        (json!({"enum": (0..60_000).collect::<Vec<_>>()}), "parts"),
        (json!({"properties": {"a": {"$id": "http://a/b"}}}), "root"),
        (json!({"$ref": "other.json#/a"}), "leads out"),
        (json!({"$ref": "#/$defs/gone"}), "no schema"),
    ];
    for (schema, why) in table {
        let problem = compiled(schema).err().unwrap_or_else(|| panic!("{why}"));
        assert!(problem.0.detail.contains(why), "{}", problem.0.detail);
    }
}
