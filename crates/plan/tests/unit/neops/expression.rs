use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_plan::{
    Budget, Meter,
    neops::{
        document::EXPRESSION_BYTES_MAX,
        expression::{Expression, budget},
        scope::Scope,
    },
};

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
        assert_eq!(Expression::new(text).unwrap().search(&scope(), &Meter::default()), Ok(expected), "{text}");
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
    let why = Expression::new(&bomb).unwrap().search(&scope(), &Meter::default()).unwrap_err();
    assert!(why.contains("memory"), "{why}");
    assert!(
        Expression::new("nothing(parameters)").unwrap().search(&scope(), &Meter::default()).is_err(),
        "an unknown function"
    );
}

fn search(text: &str, parameters: &Value) -> Result<Value, String> {
    Expression::new(text)?.search(&Scope::of([("p", parameters.clone())]), &Meter::new(budget()))
}

#[test]
fn a_result_that_would_be_too_large_is_refused_before_it_is_made() {
    let parameters = json!({"q": vec!["x"; 60_000], "g": "g".repeat(250_000), "s": "\"\"\"\"", "n": vec![1; 50_000],
        "o": {"a": vec!["y"; 10_000]}});
    let text = "p.q".to_owned() + &"|to_string([@])".repeat(40);
    for text in [&*text, "length(join(p.g, p.q))"] {
        assert!(search(text, &parameters).unwrap_err().contains("134217728 bytes of memory"), "within the real budget");
    }
    let escaped = "p.s".to_owned() + &"|to_string([@])".repeat(40);
    let doubled = |part: &str, times: usize| format!("p.{part}{}", "|[@,@]".repeat(times));
    let ones = format!("'[{}1]'", "1,".repeat(300));
    let table = [
        text,
        escaped,
        "length(join(p.g, p.q))".into(),
        "p.q[*].join('', [to_string(@), to_string(@)]) | [@, @][] | join(join('', @), @)".into(),
        doubled("q", 40),
        format!("to_string({})", doubled("q", 20)),
        format!("{} == {}", doubled("q", 30), doubled("q", 30)),
        format!("contains({}, {})", doubled("n", 30), doubled("n", 29)),
        format!("p.q{}", "|[@,@][]".repeat(20)),
        format!("length(p.q{})", "|[@,@][]".repeat(20)),
        format!("p.n{}", "|map(&[@,@,@,@,@,@,@,@,@,@], @)[]".repeat(5)),
        format!("p.q{}|sort(@)", "|[@,@][]".repeat(8)),
        format!("p.q{}|max(@)", "|[@,@][]".repeat(10)),
        format!("p.q{}|sort_by(@, &join('', [@,@]))", "|[@,@][]".repeat(8)),
        format!("p.q{}|reverse(@)", "|[@,@][]".repeat(10)),
        format!("p.n|map(&to_number({ones}), @)"),
        format!("p.q|map(&keys({{{}}}), @)|@", (0..60).map(|n| format!("k{n}:@")).collect::<Vec<_>>().join(",")),
        format!("[p.g,p.g,p.g,p.g,p.g,p.g,p.g,p.g]{}|sort(@)", "|[@,@][]".repeat(8)),
        format!("values({{a: p.q, b: p.q}}){}", "|[@,@]".repeat(30)),
    ];
    let scope = Scope::of([("p", parameters)]);
    for text in table {
        let meter = Meter::new(Budget { work: 1_000_000, room: 4 << 20, ..budget() });
        let why = Expression::new(&text).unwrap().search(&scope, &meter).unwrap_err();
        let named =
            why.contains(&text[..text.len().min(20)]) && (why.contains("bytes of memory") || why.contains("steps"));
        assert!(named && why.contains("the most that a turn may take") && why.len() < 1_000, "{text}: {why}");
    }
}

#[test]
fn what_was_made_on_the_way_to_a_small_result_is_not_counted_for_ever() {
    let parameters = json!({"q": (0..2_000).map(|n| json!({"n": n, "t": "x".repeat(50_000)})).collect::<Vec<_>>()});
    let found = search("length(p.q[?contains(to_string(@), '\"n\":7,')])", &parameters);
    assert_eq!(found, Ok(json!(1)), "each text is gone before the next is made");
}

#[test]
fn slices_do_as_they_say_and_steps_that_are_too_large_are_refused() {
    let list = json!([0, 1, 2, 3, 4]);
    let table = [
        ("p[1:3]", json!([1, 2])),
        ("p[::2]", json!([0, 2, 4])),
        ("p[::-1]", json!([4, 3, 2, 1, 0])),
        ("p[-2:]", json!([3, 4])),
        ("p[3:1:-1]", json!([3, 2])),
        ("p[:1:-2]", json!([4, 2])),
        ("p[-100:100]", json!([0, 1, 2, 3, 4])),
        ("p[100:-100:-1]", json!([4, 3, 2, 1, 0])),
        ("p[100:]", json!([])),
        ("p[1::1000000]", json!([1])),
        ("p[2147483647:-2147483647:-1000000]", json!([4])),
        ("p[-2147483647:2147483647]", json!([0, 1, 2, 3, 4])),
        ("p[-1]", json!(4)),
        ("p[-2147483647]", Value::Null),
        ("p[2147483647]", Value::Null),
        ("p[0][1:]", Value::Null),
    ];
    for (text, expected) in table {
        assert_eq!(search(text, &list), Ok(expected), "{text}");
    }
    for text in ["p[1::2147483647]", "p[::-2147483647]", "p[::1000001]", "p[::0]"] {
        let why = search(text, &list).unwrap_err();
        assert!(why.contains(text) && why.contains("must be from -1000000 to 1000000, and not 0"), "{why}");
    }
    assert!(search("p[::-2147483648]", &list).unwrap_err().contains("is no expression"));
}

#[test]
fn functions_do_what_the_language_says() {
    let parameters = json!({"n": [3, 1, 2], "t": ["b", "a"], "o": {"b": 1, "a": [2]}, "e": [],
        "l": [{"k": 2, "v": "x"}, {"k": 1, "v": "y"}, {"k": 2, "v": "z"}]});
    let table = [
        ("abs(`-1`)", json!(1.0)),
        ("avg(p.n)", json!(2.0)),
        ("ceil(`1.2`)", json!(2.0)),
        ("floor(`1.2`)", json!(1.0)),
        ("sum(p.n)", json!(6.0)),
        ("contains(p.n, `2`)", json!(true)),
        ("contains('abc', 'bc')", json!(true)),
        ("starts_with('abc', 'ab') && ends_with('abc', 'bc')", json!(true)),
        ("join('-', p.t)", json!("b-a")),
        ("keys(p.o)", json!(["a", "b"])),
        ("values(p.o)", json!([[2], 1])),
        ("length('äb')", json!(2)),
        ("map(&k, p.l)", json!([2, 1, 2])),
        ("map(&none, p.t)", json!([null, null])),
        ("max(p.n)", json!(3)),
        ("min(p.t)", json!("a")),
        ("max_by(p.l, &k).v", json!("x")),
        ("min_by(p.l, &k).v", json!("y")),
        ("max_by(p.e, &k)", Value::Null),
        ("sort(p.n)", json!([1, 2, 3])),
        ("sort_by(p.l, &k)[*].v", json!(["y", "x", "z"])),
        ("sort_by(p.l, &v)[0].k", json!(2)),
        ("sort_by(p.e, &k)", json!([])),
        ("merge(p.o, {b: `5`}).b", json!(5)),
        ("not_null(p.none, p.n[0])", json!(3)),
        ("reverse(p.n)", json!([2, 1, 3])),
        ("reverse('abc')", json!("cba")),
        ("to_array('x')", json!(["x"])),
        ("to_number('[1, 2]')", json!([1, 2])),
        ("to_number('x')", Value::Null),
        ("to_string(p.o)", json!("{\"a\":[2],\"b\":1}")),
        ("to_string('x')", json!("x")),
        ("type(p.n)", json!("array")),
        ("p.l[?k == `2` && v != 'x'].v | [0]", json!("z")),
        ("p.o.*", json!([[2], 1])),
        ("p.[n, t][]", json!([3, 1, 2, "b", "a"])),
        ("p.none.[n]", Value::Null),
        ("p.none || !(p.e)", json!(true)),
        ("p.n > `1`", Value::Null),
        ("p.l[*].{a: k}", json!([{"a": 2}, {"a": 1}, {"a": 2}])),
    ];
    for (text, expected) in table {
        assert_eq!(search(text, &parameters), Ok(expected), "{text}");
    }
    let wrong = [
        "sort_by(p.l, &p)",
        "sort_by(p.n, `1`)",
        "map(p.n, &k)",
        "join('x', p.n)",
        "&k",
        "length(`1`)",
        "abs()",
        "max_by(p.o, &k)",
    ];
    for text in wrong {
        assert!(search(text, &parameters).unwrap_err().contains("cannot be evaluated"), "{text}");
    }
}

#[test]
fn the_longest_expression_needs_no_more_stack_than_a_thread_has() {
    let table = [
        format!("p{}", ".a".repeat(199)),
        format!("p{}", "|[@]".repeat(66)),
        format!("{}p", "!".repeat(199)),
        format!("{}p{}", "to_array(".repeat(32), ")".repeat(32)),
        format!("p{}", "[0]".repeat(199)),
    ];
    for text in table {
        assert!(search(&text, &json!({"a": 1})).is_ok(), "{text}");
    }
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
