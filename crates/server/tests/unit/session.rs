use axum::{body::Body, extract::Request};
use windlass_server::session::{page_key, token};

fn request(headers: &[(&str, &str)]) -> Request {
    let request = http::Request::builder().uri("/api/v1/jobs");
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(Body::empty()).unwrap()
}

#[test]
fn a_cookie_counts_for_reads_and_with_the_key_of_the_page_for_changes() {
    let (host, key) = (("host", "localhost:3000"), page_key("wl_page_a"));
    let cookie = ("cookie", "other=1; windlass_session_3000=wl_page_a");
    assert_eq!(token(&request(&[host, cookie]), false).unwrap(), Some("wl_page_a"));
    assert_eq!(token(&request(&[host, cookie, ("windlass-page-key", &key)]), true).unwrap(), Some("wl_page_a"));
    for wrong in ["", "x", &page_key("wl_page_b")] {
        let refused = token(&request(&[host, cookie, ("windlass-page-key", wrong)]), true).unwrap_err();
        assert_eq!(refused.0.code(), "foreign-origin");
    }
    for (host, cookie) in [
        ("localhost:3001", "windlass_session_3000=wl_page_a"),
        ("localhost:3000", "windlass_session_3000=wl_admin_a"),
        ("localhost", "windlass_session_3000=wl_page_a"),
    ] {
        assert_eq!(token(&request(&[("host", host), ("cookie", cookie)]), true).unwrap(), None, "{host} {cookie}");
    }
}
