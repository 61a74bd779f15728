use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_plan::neops::{
    scope::Scope,
    template::{fill, holds, names},
};

fn scope() -> Scope {
    let parameters = json!({"who": "ann", "n": 7, "f": 1.5, "yes": true, "o": {"a": [1]}, "none": null, "s": "}}"});
    Scope::of([("parameters", parameters), ("echo", json!({"result": {"success": true, "data": {"x": 1}}}))])
}

#[test]
fn one_token_keeps_its_type_and_tokens_in_a_text_are_written_into_it() {
    let table = [
        ("{{ parameters.n }}", json!(7)),
        ("{{parameters.f}}", json!(1.5)),
        ("{{ parameters.o }}", json!({"a": [1]})),
        ("{{ parameters.nowhere }}", Value::Null),
        (" {{ parameters.n }}", json!(" 7")),
        ("hi {{ parameters.who }}, {{ parameters.n }} {{parameters.yes}}", json!("hi ann, 7 true")),
        ("{{ parameters.o }}!", json!("{\"a\":[1]}!")),
        ("{{ {a: {b: parameters.n}} }}", json!({"a": {"b": 7}})),
        ("{{ parameters.s }}.{{ '}}' }}", json!("}}.}}")),
        ("no token", json!("no token")),
        ("{ {", json!("{ {")),
        ("{{ !!(parameters.yes) }}", json!(true)),
    ];
    for (text, expected) in table {
        assert_eq!(fill(&json!(text), &scope()), Ok(expected), "{text}");
    }
    let deep = json!({"list": [{"x": "{{ echo.result.data.x }}"}, 5, null]});
    assert_eq!(fill(&deep, &scope()), Ok(json!({"list": [{"x": 1}, 5, null]})));
}

#[test]
fn errors_say_where_and_only_they_are_replaced() {
    let table = [
        ("x {{ parameters.none }}", "is null inside a text"),
        ("{{ parameters. }}", "is no expression"),
        ("{{ parameters.n", "has no }}"),
        ("{{ unknown() }}", "cannot be evaluated"),
        ("x {{ parameters.none !! parameters.nowhere }}", "is null inside a text"),
    ];
    for (text, expected) in table {
        let why = fill(&json!({"a": [text]}), &scope()).unwrap_err();
        assert!(why.starts_with("a: [0]: ") && why.contains(expected), "{text}: {why}");
    }
    let table = [
        ("x {{ parameters.none !! 'y' }}", json!("x y")),
        ("{{ parameters. !! `3` }}", json!(3)),
        ("{{ parameters.nowhere !! 'y' }}", Value::Null),
        ("{{ parameters.who !! 'y' }}", json!("ann")),
        ("{{ unknown('!!') !! '!!' }}", json!("!!")),
    ];
    for (text, expected) in table {
        assert_eq!(fill(&json!(text), &scope()), Ok(expected), "{text}");
    }
}

#[test]
fn a_condition_holds_only_if_it_is_true() {
    for text in ["parameters.yes", "{{ parameters.yes }}", "parameters.n == `7`", " {{ echo.result.success }} "] {
        assert!(holds(text, &scope()), "{text}");
    }
    for text in ["parameters.n", "'true'", "parameters.none", "parameters.", "", "!parameters.yes", "{{ x"] {
        assert!(!holds(text, &scope()), "{text}");
    }
}

#[test]
fn names_are_those_that_templates_look_for() {
    let mut found = BTreeSet::new();
    assert!(names(&json!({"a": "{{ parameters.x }} {{ echo.result !! steps.y }}", "b": ["plain"]}), &mut found));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["echo", "parameters", "result", "steps", "x", "y"]);
    for unknown in ["{{ @ }}", "{{ broken", "{{ a. }}"] {
        assert!(!names(&json!([unknown, "{{ x }}"]), &mut BTreeSet::new()), "{unknown}");
    }
}
