use windlass_core::Namespace;
use windlass_server::ask::{DEPTH_MAX, Params, check_depth, namespace};

#[test]
fn a_call_is_about_one_namespace() {
    let named = |query: &str| namespace(query).map(|namespace| namespace.to_string());
    assert_eq!(named("limit=3").unwrap(), Namespace::default().as_str());
    assert_eq!(named("limit=3&namespace=te%61m").unwrap(), "team");
    assert_eq!(named("namespace=team&limit=3").unwrap(), "team");
    assert_eq!(named("n%61mespace=team").unwrap(), "team");
    for odd in ["namespace=", "namespace", "namespace=a%20b", "namespace=a+b", "namespace=a&n%61mespace=a"] {
        assert!(named(odd).is_err(), "{odd}");
    }
}

#[test]
fn flags_and_numbers_of_a_query_are_read_strictly() {
    let query = Params::read("a=true&b=yes&n=7&s=x&s=y");
    assert_eq!((query.flag("a").unwrap(), query.flag("none").unwrap()), (true, false));
    assert!(query.flag("b").is_err() && query.number("n", 0, 6).is_err() && query.number("a", 0, 6).is_err());
    assert_eq!(query.number("n", 0, 7).unwrap(), Some(7));
    assert_eq!((query.all("s").collect::<Vec<_>>(), query.get("s")), (vec!["x", "y"], Some("y")));
}

#[test]
fn depth_counts_brackets_outside_strings() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(check_depth(deep(DEPTH_MAX).as_bytes()).is_ok());
    assert!(check_depth(deep(DEPTH_MAX + 1).as_bytes()).is_err());
    let text = format!("{{\"a\": \"{}\\\"\", \"b\": 1}}", "[".repeat(100));
    assert!(check_depth(text.as_bytes()).is_ok(), "brackets in a string are text");
}
