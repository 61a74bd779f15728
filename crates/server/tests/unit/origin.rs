use axum::{body::Body, extract::Request};
use windlass_server::{origin, peer::Peer, problem::Result};

fn check_host(request: &Request) -> Result<()> {
    origin::check_host(&["windlass.example".into()], request)
}

fn check_origin(request: &Request) -> Result<()> {
    origin::check_origin(&["https://app.example".into()], request)
}

fn request(headers: &[(&str, &str)]) -> Request {
    let peer = Peer { address: "10.0.0.2:999".parse().unwrap(), local: "10.0.0.1:3000".parse().unwrap(), tls: false };
    let request = http::Request::builder().uri("/api/v1/jobs").extension(peer);
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(Body::empty()).unwrap()
}

#[test]
fn only_names_of_ours_are_answered_to() {
    for host in [
        "localhost:3000",
        "LOCALHOST",
        "127.0.0.1",
        "127.9.9.9:1",
        "[::1]:3000",
        "10.0.0.1:3000",
        "windlass.example",
        "Windlass.Example:443",
        "a.localhost:3000",
    ] {
        assert!(check_host(&request(&[("host", host)])).is_ok(), "{host}");
    }
    for host in ["evil.example", "10.0.0.9:3000", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::2]"] {
        let problem = check_host(&request(&[("host", host)])).unwrap_err();
        assert_eq!(problem.0.status, 421, "{host}");
    }
    assert_eq!(check_host(&request(&[])).unwrap_err().0.status, 400);
    assert!(origin::check_host(&["*".into()], &request(&[("host", "evil.example")])).is_ok());
}

#[test]
fn pages_of_other_sites_change_nothing() {
    let host = ("host", "localhost:3000");
    for fine in [
        vec![host],
        vec![host, ("origin", "http://localhost:3000")],
        vec![host, ("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
        vec![host, ("sec-fetch-site", "same-origin")],
    ] {
        assert!(check_origin(&request(&fine)).is_ok(), "{fine:?}");
    }
    for foreign in [
        vec![host, ("origin", "http://localhost:4000")],
        vec![host, ("origin", "null")],
        vec![host, ("origin", "https://app.example.evil")],
        vec![host, ("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(check_origin(&request(&foreign)).unwrap_err().0.code(), "foreign-origin", "{foreign:?}");
    }
}
