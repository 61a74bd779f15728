use windlass_server::prefix::split;

#[test]
fn tokens_and_doubled_slashes_leave_the_path() {
    type Expected = Option<(Option<&'static str>, &'static str)>;
    let table: [(&str, Expected); 9] = [
        ("/api/workflows", None),
        ("/~wl_a/api/workflows?limit=1", Some((Some("wl_a"), "/api/workflows?limit=1"))),
        ("/~wl_a//api/jobs/claim", Some((Some("wl_a"), "/api/jobs/claim"))),
        ("//api/jobs/claim", Some((None, "/api/jobs/claim"))),
        ("/~wl_a", Some((Some("wl_a"), "/"))),
        ("/~wl_a?x=/api", Some((Some("wl_a"), "/?x=/api"))),
        ("/~/api", Some((Some(""), "/api"))),
        ("/a/~wl_a/api", None),
        ("http://h:1/~wl_a/api", Some((Some("wl_a"), "/api"))),
    ];
    for (uri, expected) in table {
        let found = split(&uri.parse().unwrap());
        let found = found.as_ref().map(|(token, path)| (token.as_deref(), path.as_str()));
        assert_eq!(found, expected, "{uri}");
    }
}
