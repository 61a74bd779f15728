use super::put;
use serde_json::{Value, json};
use windlass_plan::neops::compare::{Level, compare, floor, same};

fn base() -> Value {
    let block =
        |label: &str| json!({"type": "functionBlock", "label": label, "functionBlock": "p/n:1.2", "runOn": "device"});
    json!({"type": "workflow", "label": "w", "name": "w", "package": "p", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0,
        "seedEntity": "device", "parameterSchema": {"type": "object", "required": ["a"], "properties": {
            "a": {"type": "integer", "minimum": 1}, "b": {"type": "string", "enum": ["x", "y"], "maxLength": 5}}},
        "steps": [block("one"), block("two"), {"type": "workflow", "label": "in", "name": "in", "steps": [block("three")]}]})
}

/// What is said about the base after a change.
fn after(change: impl FnOnce(&mut Value)) -> Vec<(&'static str, Level, String)> {
    let (old, mut new) = (base(), base());
    change(&mut new);
    compare(&old, &new).into_iter().map(|finding| (finding.code, finding.level, finding.path)).collect()
}

fn set(pointer: &'static str, value: Value) -> Box<dyn FnOnce(&mut Value)> {
    Box::new(move |document| put(document, pointer, value))
}

#[test]
fn each_change_calls_for_its_level() {
    use Level::*;
    let properties = "/parameterSchema/properties";
    let table: Vec<(&'static str, Value, &str, Level)> = vec![
        ("/seedEntity", json!("global"), "seedEntityChanged", Major),
        ("/steps/0/runOn", json!("global"), "runOnChanged", Major),
        ("/steps/0/functionBlock", json!("p/n:2"), "targetChanged", Major),
        ("/steps/0/functionBlock", json!("p/m:1.2"), "targetChanged", Major),
        ("/steps/0/functionBlock", json!("p/n:1.3"), "pinChanged", Minor),
        ("/steps/2/steps/0/functionBlock", json!("p/n:1"), "pinChanged", Minor),
        ("/steps/0/assert", json!([]), "assertChanged", Minor),
        ("/acquire", json!([]), "acquireChanged", Minor),
        ("/continueOnError", json!(true), "continueOnErrorChanged", Minor),
        ("/steps/0/novelty", json!(1), "unknownFieldChanged", Minor),
        ("/description", json!("d"), "fieldChanged", Patch),
        ("/steps/0/parameters", json!({"k": 1}), "fieldChanged", Patch),
        ("/parameterSchema/required", json!(["a", "b"]), "propertyRequired", Major),
        ("/parameterSchema/required", json!([]), "propertyOptional", Minor),
        ("/parameterSchema/properties/b", json!(null), "propertyRemoved", Major),
        ("/parameterSchema/properties/c", json!({}), "propertyAdded", Minor),
        ("/parameterSchema/additionalProperties", json!(false), "schemaStricter", Major),
        ("/parameterSchema/properties/a/type", json!("number"), "schemaLooser", Minor),
        ("/parameterSchema/properties/a/type", json!("string"), "schemaStricter", Major),
        ("/parameterSchema/properties/a/minimum", json!(2), "schemaStricter", Major),
        ("/parameterSchema/properties/a/minimum", json!(0), "schemaLooser", Minor),
        ("/parameterSchema/properties/a/maximum", json!(9), "schemaStricter", Major),
        ("/parameterSchema/properties/b/maxLength", json!(null), "schemaLooser", Minor),
        ("/parameterSchema/properties/b/enum", json!(["x", "y", "z"]), "schemaLooser", Minor),
        ("/parameterSchema/properties/b/enum", json!(["x"]), "schemaStricter", Major),
        ("/parameterSchema/properties/b/pattern", json!("^x"), "schemaStricter", Major),
        ("/parameterSchema/properties/b/title", json!("B"), "schemaDescribed", Patch),
        ("/parameterSchema/properties/b/anyOf", json!([]), "schemaChanged", Minor),
    ];
    for (pointer, value, code, level) in table {
        let found = after(set(pointer, value.clone()));
        assert_eq!(found.len(), 1, "{pointer} {value}: {found:?}");
        assert_eq!((found[0].0, found[0].1), (code, level), "{pointer} {value}");
        let near = pointer.starts_with(&found[0].2) || found[0].2.starts_with(properties);
        assert!(near, "{pointer}: {}", found[0].2);
    }
}

#[test]
fn steps_are_followed_by_their_labels() {
    let steps = |change: fn(&mut Vec<Value>)| after(|document| change(document["steps"].as_array_mut().unwrap()));
    let codes = |found: Vec<(&'static str, Level, String)>| found.into_iter().map(|found| found.0).collect::<Vec<_>>();
    assert_eq!(codes(steps(|steps| steps.swap(0, 1))), ["stepsReordered"]);
    assert_eq!(codes(steps(|steps| drop(steps.remove(0)))), ["stepRemoved"]);
    assert_eq!(codes(steps(|steps| steps.insert(0, json!({"label": "new", "type": "functionBlock"})))), ["stepAdded"]);
    let moved = steps(|steps| {
        let two = steps.remove(1);
        steps[1]["steps"].as_array_mut().unwrap().insert(0, two);
    });
    assert!(moved.iter().any(|found| (found.0, found.1) == ("stepMoved", Level::Major)), "{moved:?}");
    let retyped = steps(|steps| steps[0]["type"] = json!("workflow"));
    assert_eq!(retyped[0].0, "stepTypeChanged");
}

#[test]
fn the_same_document_is_told_by_its_values() {
    assert!(compare(&base(), &base()).is_empty());
    let mut other = base();
    other["majorVersion"] = json!(7);
    assert!(compare(&base(), &other).is_empty(), "the version itself is no change");
    assert!(same(&json!({"a": [1, {"b": 2.0}]}), &json!({"a": [1.0, {"b": 2}]})));
    assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": null})));
    assert_eq!(floor(&[]), None);
}
