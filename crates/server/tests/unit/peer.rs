use http::HeaderMap;
use std::net::IpAddr;
use windlass_server::peer::{Network, client, network};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn networks(texts: &[&str]) -> Vec<Network> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_network_has_the_addresses_with_its_first_bits() {
    for (text, inside, outside) in [
        ("10.1.2.3", &["10.1.2.3", "::ffff:10.1.2.3"][..], &["10.1.2.4", "::1"][..]),
        ("10.0.0.0/8", &["10.255.0.1", "::ffff:10.9.9.9"], &["11.0.0.1", "2001:db8::1"]),
        ("10.9.9.9/8", &["10.0.0.1"], &["11.0.0.1"]),
        ("0.0.0.0/0", &["1.2.3.4"], &["2001:db8::1"]),
        ("2001:db8::/32", &["2001:db8:ffff::1"], &["2001:db9::1", "10.0.0.1"]),
        ("::/0", &["2001:db8::1", "10.0.0.1"], &[]),
    ] {
        let network: Network = text.parse().unwrap();
        inside.iter().for_each(|address| assert!(network.has(ip(address)), "{text} {address}"));
        outside.iter().for_each(|address| assert!(!network.has(ip(address)), "{text} {address}"));
    }
    for wrong in ["", "proxy", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "10.0.0.0/8/8", "10.0.0.0/"] {
        let told = wrong.parse::<Network>().unwrap_err().to_string();
        assert!(told.contains(&format!("{wrong:?}")) && told.contains("10.0.0.0/8"), "{told}");
    }
}

#[test]
fn the_client_is_the_last_address_that_is_no_proxy_and_what_it_wrote_itself_counts_for_nothing() {
    let proxies = networks(&["10.0.0.0/24", "2001:db8::5"]);
    for (peer, forwarded, expected) in [
        ("10.0.0.9", &[][..], "10.0.0.9"),
        ("10.0.0.9", &["198.51.100.1"], "198.51.100.1"),
        ("::ffff:10.0.0.9", &["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.9", &["198.51.100.1:5000, [2001:db8::5]:443"], "198.51.100.1"),
        ("10.0.0.9", &["192.0.2.1, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.9", &["192.0.2.1, 198.51.100.1, 10.0.0.7"], "198.51.100.1"),
        ("10.0.0.9", &["192.0.2.1", "198.51.100.1, 2001:db8::5"], "198.51.100.1"),
        ("10.0.0.9", &["10.0.0.1, 10.0.0.2"], "10.0.0.1"),
        ("10.0.0.9", &["198.51.100.1, unknown"], "10.0.0.9"),
        ("10.0.0.9", &["198.51.100.1, "], "10.0.0.9"),
        ("198.51.100.7", &["192.0.2.1"], "198.51.100.7"),
    ] {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        assert_eq!(client(ip(peer), &headers, &proxies), ip(expected), "{peer} {forwarded:?}");
        assert_eq!(client(ip(peer), &headers, &[]), ip(peer), "without proxies");
    }
    let mut long = HeaderMap::new();
    long.insert("x-forwarded-for", format!("192.0.2.1{}", ", 10.0.0.1".repeat(1_000)).parse().unwrap());
    assert_eq!(client(ip("10.0.0.9"), &long, &proxies), ip("10.0.0.1"), "so far and no further");
}

#[test]
fn an_ipv6_address_counts_with_its_network() {
    assert_eq!(network(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
    assert_eq!((network(ip("::ffff:192.0.2.1")), network(ip("192.0.2.1"))), (ip("192.0.2.1"), ip("192.0.2.1")));
}
