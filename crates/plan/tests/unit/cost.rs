use serde_json::json;
use windlass_plan::{
    expr::Expr,
    meter::{Budget, Meter},
    vars::Vars,
};

fn vars() -> Vars {
    let mut vars = Vars::default();
    let long = "x".repeat(1_000);
    vars.set(
        "input",
        json!({"list": vec![1; 1_000], "long": long, "texts": vec![long.as_str(); 300], "p": "^[a-z]+$"}),
    );
    vars
}

fn spent(text: &str) -> u64 {
    let meter = Meter::default();
    Expr::new(text).unwrap().eval(&vars(), &meter).unwrap();
    meter.spent()
}

#[test]
fn cost_counts_what_a_call_costs() {
    let table = [
        ("input.list.all(x, x > 0)", 1_000, 20_000),
        ("input.list.all(x, [1, 2, 3].exists(y, y == x))", 10_000, 1_000_000),
        ("input.list.map(x, x).map(x, x).map(x, x).size()", 3_000, 100_000),
        ("input.texts.filter(x, x.matches('^[a-z]+$'))", 300 * 1_000, 3_000_000),
        ("input.texts.filter(x, x.matches(input.p))", 300 * 1_000, 5_000_000),
        ("input.long + input.long", 10, 1_000),
        ("input.list", 1_000, 5_000),
        ("input.long.size()", 1, 1_000),
    ];
    for (text, least, most) in table {
        let spent = spent(text);
        assert!((least..=most).contains(&spent), "{text}: {spent}");
    }
}

#[test]
fn what_would_be_too_large_is_not_made() {
    let sum = |times: usize| vec!["input.long"; times].join(" + ");
    let doubled = "[input.texts, input.texts].map(a, [a, a]).map(b, [b, b]).map(c, [c, c]).map(d, [d, d])";
    let tight = || Meter::new(Budget { room: 100_000, ..Budget::default() });
    assert!(Expr::new(&sum(3)).unwrap().eval(&vars(), &tight()).is_ok());
    for text in [sum(95).as_str(), doubled, "[input.texts]", "{'a': input.texts}", "input.texts.map(x, x + x)"] {
        let meter = tight();
        let why = Expr::new(text).unwrap().eval(&vars(), &meter).unwrap_err();
        assert!(why.contains("100000 bytes of memory") && meter.is_over(), "{text}: {why}");
    }
}

#[test]
fn a_loop_that_takes_too_long_is_given_up_where_the_budget_ends() {
    let meter = Meter::default();
    let cube = "input.list.all(a, input.list.all(b, input.list.all(c, a + b + c > 0)))";
    assert!(Expr::new(cube).unwrap().eval(&vars(), &meter).unwrap_err().contains("steps of work"));
    assert!(meter.is_over() && meter.spent() < 11_000_000, "{}", meter.spent());
    let made = "input.list.map(a, a).all(b, input.list.map(a, a).all(c, input.list.map(a, a).all(d, d > 0)))";
    assert!(Expr::new(made).unwrap().eval(&vars(), &Meter::default()).is_err());
}

#[test]
fn functions_that_could_multiply_what_they_are_given_are_not_there() {
    let table = [
        "input.long.replace('x', input.long)",
        "input.texts.join(input.long)",
        "lists.range(2000000000)",
        "input.long.split('x')",
        "'a'.repeat(1000000)",
        "[1, 2].flatten()",
        "'%s%s'.format([input.long, input.long])",
    ];
    for text in table {
        let found = Expr::new(text).and_then(|made| made.eval(&vars(), &Meter::default()));
        assert!(found.is_err(), "{text}");
    }
}
