use std::{net::IpAddr, sync::Arc};
use windlass_server::listener::permits::{ConnectionPermits, Full};

fn at(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn places_are_counted_in_all_and_by_network_and_given_back() {
    let permits = Arc::new(ConnectionPermits::new(4, 2));
    let first = permits.take(at("10.0.0.1")).unwrap();
    let _second = permits.take(at("::ffff:10.0.0.1")).unwrap();
    assert_eq!(permits.take(at("10.0.0.1")).err(), Some(Full::Address));
    drop(first);
    let _third = permits.take(at("10.0.0.1")).unwrap();
    let six = [at("2001:db8::1"), at("2001:db8::ffff")].map(|address| permits.take(address).unwrap());
    assert_eq!(permits.take(at("127.0.0.1")).err(), Some(Full::Total));
    drop(six);
    assert_eq!(permits.networks(), 1, "networks without connections are forgotten");
}

#[test]
fn loopback_is_only_held_to_the_total() {
    let permits = Arc::new(ConnectionPermits::new(3, 1));
    let taken: Vec<_> = (0..3).map(|_| permits.take(at("127.0.0.1")).unwrap()).collect();
    assert_eq!(permits.take(at("::1")).err(), Some(Full::Total));
    drop(taken);
    assert!(permits.take(at("::1")).is_ok());
}
