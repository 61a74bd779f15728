use windlass_server::service::{names, pattern};

#[test]
fn names_are_numbered_so_that_paths_that_begin_alike_agree() {
    assert_eq!(pattern("/api/jobs/{id}/artifacts/{*key}"), "/api/jobs/{p1}/artifacts/{*p2}");
    assert_eq!(names("/api/jobs/{id}/artifacts/{*key}"), ["id", "key"]);
    assert_eq!((pattern("/"), names("/health")), ("/".to_owned(), vec![]));
}
