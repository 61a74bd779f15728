use http::{HeaderMap, header};
use windlass_server::guard::token;

fn headers(authorization: &str) -> HeaderMap {
    [(header::AUTHORIZATION, authorization.parse().unwrap())].into_iter().collect()
}

#[test]
fn a_password_is_a_token_only_where_the_surface_says_so() {
    let basic = headers("Basic d29ya2VyOnNlY3JldA==");
    assert_eq!((token(&basic, true).as_deref(), token(&basic, false)), (Some("secret"), None));
    assert_eq!(token(&headers("bearer  abc"), false).as_deref(), Some("abc"));
    for junk in ["Bearer", "Basic !!!", "Digest abc", "abc"] {
        assert_eq!(token(&headers(junk), true), None, "{junk}");
    }
}
