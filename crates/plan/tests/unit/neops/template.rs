use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_plan::{
    Budget, Meter,
    neops::{
        scope::Scope,
        template::{self, names},
    },
};

fn fill(value: &Value, scope: &Scope) -> Result<Value, String> {
    template::fill(value, scope, &Meter::default())
}

fn holds(text: &str, scope: &Scope) -> bool {
    template::holds(text, scope, &Meter::default()).unwrap()
}

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
fn what_takes_more_than_the_budget_is_an_error_that_no_fallback_and_no_condition_hides() {
    let tight = || Meter::new(Budget { room: 10_000, ..Budget::default() });
    let scope = Scope::of([("p", json!({"t": "x".repeat(3_000), "q": vec![1; 100]}))]);
    let over = |found: Result<Value, String>| found.unwrap_err().contains("10000 bytes of memory");
    for text in ["{{ join('', [p.t, p.t, p.t]) !! 'y' }}", "{{ p.t }}{{ p.t }}", "{{ p.q }}{{ p.q }}{{ p.q }}{{ p.q }}"]
    {
        assert!(over(template::fill(&json!({"a": text}), &scope, &tight())), "{text}");
    }
    assert!(over(template::fill(&json!(["{{ p.t }}", "{{ p.t }}", "{{ p.t }}", "{{ p.t }}"]), &scope, &tight())));
    assert!(over(template::fill(&json!(["x".repeat(20_000)]), &scope, &tight())), "what is copied counts as well");
    let condition = template::holds("join('', [p.t, p.t, p.t]) == 'x'", &scope, &tight());
    assert!(condition.unwrap_err().contains("10000 bytes of memory"));
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
