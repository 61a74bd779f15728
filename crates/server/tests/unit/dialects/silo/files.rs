use windlass_server::dialects::silo::files::check_name;

#[test]
fn names_are_relative_paths_that_stay_where_they_are() {
    for name in ["a", "part.json", "exports/F01-0001_rev3.step", "größe/ä b.txt", ".hidden", "a..b"] {
        assert!(check_name("name", name).is_ok(), "{name}");
    }
    let (long, deep) = ("x".repeat(256), vec!["a"; 17].join("/"));
    for name in [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../a",
        "a/../b",
        "a/./b",
        "a//b",
        "a/",
        "a\\b",
        "C:x",
        "a\nb",
        "a\0",
        "a. ",
        "b./c",
    ] {
        assert!(check_name("name", name).is_err(), "{name:?}");
    }
    assert!(check_name("name", &long).is_err() && check_name("name", &deep).is_err());
}
