use axum::{body::Body, extract::Request};
use http::{Version, header};
use windlass_server::{
    peer::Peer,
    without_token::{WithoutToken, is_local},
};

fn request(from: &str, host: &str, extra: Option<&'static str>, version: Version) -> Request {
    let address = from.parse().unwrap();
    let peer = Peer { address, local: "127.0.0.1:3000".parse().unwrap(), tls: false };
    let request = http::Request::builder().uri("/").version(version).header(header::HOST, host).extension(peer);
    let request = extra.into_iter().fold(request, |request, name| request.header(name, "x"));
    request.body(Body::empty()).unwrap()
}

#[test]
fn only_this_machine_itself_is_local() {
    let here = |from: &str, host: &str| is_local(&request(from, host, None, Version::HTTP_11));
    assert!(here("127.0.0.1:9", "localhost:3000") && here("[::1]:9", "[::1]:3000"));
    assert!(!here("10.0.0.9:9", "localhost:3000") && !here("127.0.0.1:9", "windlass.example"));
}

#[test]
fn any_sign_of_a_proxy_makes_a_caller_remote() {
    let local = |extra, version| is_local(&request("127.0.0.1:9", "127.0.0.1:3000", extra, version));
    assert!(local(None, Version::HTTP_11) && local(Some("x-request-id"), Version::HTTP_11));
    assert!(!local(None, Version::HTTP_10), "nginx as it comes");
    for sign in [
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-real-ip",
        "cf-connecting-ip",
        "true-client-ip",
        "x-client-ip",
        "fastly-client-ip",
        "x-cluster-client-ip",
        "x-original-uri",
        "x-envoy-external-address",
        "x-amzn-trace-id",
    ] {
        assert!(!local(Some(sign), Version::HTTP_11), "{sign}");
    }
}

#[test]
fn a_server_that_can_be_reached_from_elsewhere_admits_nobody_by_default() {
    let auto = |ip: &str, hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        WithoutToken::resolve("auto", ip.parse().unwrap(), &hosts)
    };
    assert_eq!(auto("127.0.0.1", &[]), WithoutToken::Loopback);
    assert_eq!(auto("::1", &["localhost"]), WithoutToken::Loopback);
    for (ip, hosts) in [("0.0.0.0", &[][..]), ("::", &[]), ("10.0.0.1", &[]), ("127.0.0.1", &["jobs.example"])] {
        assert_eq!(auto(ip, hosts), WithoutToken::Never, "{ip} {hosts:?}");
    }
    let asked = |word: &str| WithoutToken::resolve(word, "0.0.0.0".parse().unwrap(), &[]);
    assert_eq!(["never", "loopback", "anyone"].map(|word| asked(word).name()), ["never", "loopback", "anyone"]);
}
