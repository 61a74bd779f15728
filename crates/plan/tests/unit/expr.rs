use serde_json::json;
use windlass_plan::{expr::Expr, meter::Meter, vars::Vars};

fn vars() -> Vars {
    let mut vars = Vars::default();
    vars.set("input", json!({"n": 2, "who": "ann", "list": [3, 1, 2]}));
    vars.set("steps", json!({"build": {"output": {"url": "u", "n": 7}, "state": "completed"}}));
    vars
}

#[test]
fn expressions_and_what_they_come_to() {
    let table = [
        ("input.n + 1", json!(3)),
        ("steps.build.output.url + '/x'", json!("u/x")),
        ("steps['build'].output.n == 7", json!(true)),
        ("input.list.filter(x, x > 1)", json!([3, 2])),
        ("has(input.gone) ? 1 : 2", json!(2)),
        ("size(input.list)", json!(3)),
        ("input.who.startsWith('a')", json!(true)),
        ("{'a': input.n}", json!({"a": 2})),
        ("input.who.matches('^a.n$') && !matches(input.who, '^b')", json!(true)),
        ("input.n == 2 && input.n < 2.5 && 'who' in input", json!(true)),
        ("[input].map(x, x.who)", json!(["ann"])),
    ];
    for (text, expected) in table {
        assert_eq!(Expr::new(text).unwrap().eval(&vars(), &Meter::default()).unwrap(), expected, "{text}");
    }
    let named = Expr::new("steps.a.output + steps['b'].output").unwrap();
    assert_eq!(named.steps.into_iter().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_cannot_be_worked_out_is_told() {
    for text in ["", "input.", "1 +", "foo.bar", "steps.a)", "input.who.matches('(')"] {
        assert!(Expr::new(text).is_err(), "{text}");
    }
    let deep = "input.list.map(a, input.list.map(b, input.list.map(c, input.list.map(d, d))))";
    assert!(Expr::new(deep).unwrap_err().contains("deep"));
    for text in ["input.gone", "input.n.x", "1 / 0", "input.who + 1"] {
        assert!(Expr::new(text).unwrap().eval(&vars(), &Meter::default()).is_err(), "{text}");
    }
    assert!(Expr::new("input.n").unwrap().holds(&vars(), &Meter::default()).is_err(), "a number is no condition");
}

#[test]
fn what_would_take_too_long_is_not_begun() {
    let mut vars = Vars::default();
    vars.set("input", json!((0..100_000).collect::<Vec<_>>()));
    assert!(Expr::new("input.filter(x, x > 5).size()").unwrap().eval(&vars, &Meter::default()).is_ok());
    let square = "input.map(a, input.map(b, a * b)).size()";
    assert!(Expr::new(square).unwrap().eval(&vars, &Meter::default()).unwrap_err().contains("steps of work"));
}

/// As deep as a text of the longest that is read can go. Definitions are read by threads with a stack as this one has.
#[test]
fn what_is_nested_too_deep_is_refused_before_it_takes_the_stack() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let read = move || {
        for times in [90, 450, 2_000] {
            let texts = [
                nested("(", "1", ")", times),
                nested("[", "", "", times),
                nested("{1: ", "1", "}", times),
                nested("size(", "'a'", ")", times),
                nested("1 ? 1 : ", "1", "", times),
                nested("1+", "1", "", times.max(101)),
                nested("", "input", ".a", times.max(101)),
                nested("", "input", "[1]", times.max(101)),
            ];
            for text in texts {
                assert!(Expr::new(&text).is_err(), "{text:.100}");
            }
        }
        let sum = "1+".repeat(90) + "1";
        assert_eq!(Expr::new(&sum).unwrap().eval(&vars(), &Meter::default()).unwrap(), json!(91));
    };
    std::thread::Builder::new().stack_size(8 << 20).spawn(read).unwrap().join().unwrap();
}
