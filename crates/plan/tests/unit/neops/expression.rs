use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_plan::neops::{document::EXPRESSION_BYTES_MAX, expression::Expression, scope::Scope};

fn scope() -> Scope {
    Scope::of([("parameters", json!({"a": 1, "list": [1, 2, 3], "name": "x"})), ("other", json!({"b": true}))])
}

#[test]
fn paths_that_lead_nowhere_are_null_and_types_stay() {
    let table = [
        ("parameters.a", json!(1)),
        ("parameters.list[?@ > `1`]", json!([2, 3])),
        ("other.b", json!(true)),
        ("parameters.none.at.all", Value::Null),
        ("length(parameters.list)", json!(3)),
        ("{n: parameters.name, b: other.b}", json!({"n": "x", "b": true})),
        ("parameters.a == `1`", json!(true)),
    ];
    for (text, expected) in table {
        assert_eq!(Expression::new(text).unwrap().search(&scope()), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_no_expression_or_too_much_is_refused_before_it_is_read() {
    let deep = format!("{}a{}", "(".repeat(1_000), ")".repeat(1_000));
    let bang = format!("{}a", "!".repeat(1_000));
    let chain = vec!["a"; 1_000].join(".");
    let long = "a".repeat(EXPRESSION_BYTES_MAX + 1);
    for bad in ["a.", "", "foo(", "a b", &*deep, &*bang, &*chain, &*long, &"[".repeat(2_000)] {
        assert!(Expression::new(bad).is_err(), "{}", &bad[..bad.len().min(30)]);
    }
    assert!(Expression::new("contains('((((((((((((((((((((((((((((((((((((', parameters.name)").is_ok(), "in quotes");
}

#[test]
fn what_would_double_for_ever_is_not_begun() {
    let bomb = vec!["[@, @][]"; 40].join(" | ");
    let why = Expression::new(&bomb).unwrap().search(&scope()).unwrap_err();
    assert!(why.contains("memory"), "{why}");
    assert!(Expression::new("nothing(parameters)").unwrap().search(&scope()).is_err(), "an unknown function");
}

#[test]
fn it_is_known_what_an_expression_looks_at() {
    let table = [
        ("parameters.a", true, "a parameters"),
        ("steps.x.result && parameters.b", true, "b parameters result steps x"),
        ("@", false, ""),
        ("keys(@)", false, ""),
        ("sort_by(context.devices, &id)", true, "context devices id"),
        ("'text'", true, ""),
    ];
    for (text, named, expected) in table {
        let mut found = BTreeSet::new();
        assert_eq!(Expression::new(text).unwrap().names(&mut found), named, "{text}");
        assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected, "{text}");
    }
}
