//! Schemas and values that somebody made to stop the server.

use serde_json::{Value, json};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};
use windlass_api::definition::DefinitionBody;
use windlass_core::Namespace;
use windlass_server::{
    problem::Problem,
    schema::{Compiled, KEPT, Schema, Versions},
};

/// Compiles the schema and checks the value, with the stack that threads aside have. A test that waits for years ends.
fn tried(schema: Value, value: Value) -> Result<(), Problem> {
    let (tell, told) = mpsc::channel();
    let work = move || {
        let compiled = Compiled::new(DefinitionBody { payload_schema: Some(schema), ..DefinitionBody::default() });
        let checked = compiled.and_then(|compiled| compiled.check_payload(&value.to_string().as_str().into()));
        drop(tell.send(checked));
    };
    thread::Builder::new().stack_size(8 << 20).spawn(work).unwrap();
    told.recv_timeout(Duration::from_secs(100)).expect("it takes no longer than a check may take")
}

#[track_caller]
fn refused(schema: Value, value: Value) -> String {
    let shown: String = schema.to_string().chars().take(200).collect();
    tried(schema, value).expect_err(&shown).0.detail.clone()
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// A schema that takes twice as long with each level, if it is found under this name.
fn dear(own: &str) -> Value {
    let items = json!({"type": "array", "items": {"$ref": own}});
    json!({"anyOf": [items.clone(), items]})
}

#[test]
fn the_walk_and_the_compiler_follow_a_reference_to_the_same_place() {
    let draft = |year: &str| format!("https://json-schema.org/draft/{year}/schema");
    let old = |number: &str| format!("http://json-schema.org/draft-{number}/schema#");
    let cheap = json!({"type": "array"});
    let table = [
        // Only two hexadecimal digits are a character.
        json!({"$ref": "#/$defs/%+1", "$defs": {"\u{1}": cheap, "%+1": dear("#/$defs/%+1")}}),
        json!({"$ref": "#/$defs/a%2Fb", "$defs": {"a": {"b": dear("#/$defs/a/b")}, "a/b": cheap}}),
        json!({"$ref": "#/$defs/a~1b", "$defs": {"a/b": dear("#/$defs/a~1b")}}),
        // The keyword leads to the root whatever it says.
        json!({"$schema": draft("2019-09"), "anyOf": [{"items": {"$recursiveRef": "#/$defs/a"}}, {"items": {"$recursiveRef": "#/$defs/a"}}],
               "$defs": {"a": cheap}}),
        // Names that count in one draft and not in another.
        json!({"$schema": old("07"), "$id": "#a", "anyOf": [{"items": {"$ref": "#a"}}, {"items": {"$ref": "#a"}}],
               "definitions": {"x": {"$anchor": "a"}}}),
        json!({"$ref": "#/$defs/b", "$defs": {"b": {"$schema": old("04"), "id": "http://x/y", "$ref": "#/$defs/c"}, "c": cheap}}),
        json!({"$id": old("07"), "anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}),
        // What is no schema where it stands.
        json!({"$ref": "#/const", "const": dear("#/const")}),
        json!({"$ref": "#/examples/0", "examples": [dear("#/examples/0")]}),
        json!({"$ref": "#/x/properties", "x": {"properties": dear("#/x/properties")}}),
        json!({"$ref": "#/$defs", "$defs": dear("#/$defs")}),
        json!({"$ref": "#/allOf/00", "allOf": [dear("#/allOf/00")]}),
    ];
    for schema in table {
        let told = refused(schema.clone(), nested(40));
        let known = ["steps", "no schema", "only #", "same in all", "used", "not a usable JSON Schema"];
        assert!(known.iter().any(|known| told.contains(known)), "{schema}: {told}");
    }
    let own = json!({"$id": "http://x/y", "$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "integer"}}});
    assert!(tried(own.clone(), json!(1)).is_ok() && tried(own, json!("x")).is_err());
    let hidden = json!({"$ref": "#/const", "const": {"pattern": r"(\pL{30}){6}[k]"}});
    assert!(refused(hidden, json!("x")).contains("no schema"), "patterns are counted wherever they are compiled");
}

#[test]
fn what_was_not_looked_at_is_not_looked_for_for_years() {
    let twice = |of: String| json!({"allOf": [{"$ref": of}, {"$ref": of}]});
    let chain = |keyword: &str, one: &dyn Fn(String) -> Value| {
        let mut defs = json!({"d0": {"type": "object"}});
        for at in 1..40 {
            defs[format!("d{at}")] = one(format!("#/$defs/d{}", at - 1));
        }
        json!({"$ref": "#/$defs/d39", keyword: false, "$defs": defs})
    };
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let told = refused(chain(keyword, &twice), json!({}));
        assert!(told.contains("ways"), "{told}");
        // Each level looks at all below it once more.
        let mut levels = json!({"type": "object"});
        for _ in 0..28 {
            levels = json!({keyword: false, "anyOf": [levels]});
        }
        for value in [json!({}), json!([]), json!({"a": 1})] {
            let told = refused(levels.clone(), value);
            assert!(told.contains("ways") || told.contains("steps"), "{told}");
        }
        let few = json!({keyword: {"type": "integer"}, "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"a": true}}}});
        assert!(tried(few, json!({"a": "x"})).is_ok());
    }
}

#[test]
fn long_ways_through_references_take_no_stack() {
    let chain = |length: usize, extra: Value| {
        let mut defs = serde_json::Map::new();
        for at in 0..length {
            let mut link = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            link.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            defs.insert(format!("d{at}"), link);
        }
        defs.insert(format!("d{length}"), json!({"type": "integer"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    for extra in [json!({}), json!({"unevaluatedProperties": false}), json!({"unevaluatedItems": false})] {
        let told = refused(chain(15_000, extra), json!(1));
        assert!(told.contains("deep") || told.contains("steps"), "{told}");
    }
    let circle = json!({"unevaluatedProperties": false, "allOf": [{"$ref": "#"}], "properties": {"a": true}});
    assert!(tried(circle, json!({"a": 1})).is_err(), "what leads back to itself is told as such");
}

#[test]
fn what_has_to_be_there_and_what_is_a_pattern_cost_what_they_cost() {
    let names: Vec<String> = (0..20_000).map(|at| format!("n{at}")).collect();
    let each: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!(["a"]))).collect();
    let many = json!(vec![json!({"a": 1}); 10_000]);
    for keyword in ["dependentRequired", "dependencies"] {
        assert!(refused(json!({"items": {keyword: each}}), many.clone()).contains("steps"));
        assert!(refused(json!({"items": {keyword: {"a": names}}}), many.clone()).contains("steps"));
    }
    let patterns: Vec<String> = (0..5_000).map(|at| format!(r"\pL{{90}}x{at}")).collect();
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"format": "regex"}});
    assert!(refused(schema.clone(), json!(patterns)).contains("steps"));
    assert!(tried(schema, json!(["^a+$"])).is_ok());
}

#[test]
fn what_is_wrong_is_not_copied_a_thousand_times_to_be_told() {
    let all: Vec<Value> = (1..2_000).map(|at| json!({"minItems": 1_000_000 + at})).collect();
    let schema = json!({"anyOf": [{"allOf": all}, {"type": "null"}]});
    let large = json!(vec![1; 200_000]);
    assert!(refused(schema.clone(), large).contains("too large to tell"));
    assert!(refused(schema.clone(), json!([1])).contains("not valid"));
    let compiled = Schema::new("f", &schema).unwrap();
    assert!(
        compiled.check_here(&json!(vec![1; 5_000]).to_string().as_str().into()).is_none(),
        "not where requests are answered"
    );
    let not = json!({"anyOf": [{"items": {"not": {"enum": (0..40_000).collect::<Vec<_>>()}}}]});
    let told = refused(not, json!(vec![1; 2_000]));
    assert!(told.contains("steps") || told.contains("too large to tell"), "{told}");
}

#[test]
fn one_namespace_does_not_push_out_what_another_uses() {
    let mut kept = Versions::default();
    let made = || Arc::new(Compiled::new(DefinitionBody::default()).unwrap());
    let key = |namespace: &str, version| (Namespace::new(namespace).unwrap(), Arc::from("d"), version);
    kept.put(key("quiet", 0), made());
    for version in 0..2 * KEPT as u32 {
        kept.put(key("busy", version), made());
    }
    assert!(kept.get(&key("quiet", 0)).is_some(), "although it was used longest ago");
    let all = [key("quiet", 0)].into_iter().chain((0..2 * KEPT as u32).map(|version| key("busy", version)));
    let left: Vec<_> = all.filter_map(|key| kept.get(&key)).collect();
    assert_eq!(left.len(), KEPT);
    assert_eq!(kept.bytes(), left.iter().map(|made| made.bytes()).sum::<usize>());
}

/// Of what is allowed, the dearest.
#[test]
fn the_largest_schema_is_compiled() {
    let properties: serde_json::Map<_, _> =
        (0..12_000).map(|at| (format!("p{at}"), json!({"type": "string", "maxLength": at}))).collect();
    tried(json!({"properties": properties}), json!({"p1": "x"})).unwrap();
}
