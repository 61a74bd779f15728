use std::{net::IpAddr, time::Instant};
use windlass_server::dialects::joblib::users::tries::{Tries, WITHIN};

fn ip(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

#[test]
fn guessing_ends_after_ten_and_begins_again_later() {
    let (tries, now) = (Tries::default(), Instant::now());
    for _ in 0..10 {
        assert!(tries.take(ip(1), "a@x", now).is_ok());
    }
    assert_eq!(tries.take(ip(1), "a@x", now).err(), Some(WITHIN));
    assert!(tries.take(ip(2), "a@x", now).is_ok(), "somebody else at the same account");
    assert!(tries.take(ip(1), "b@x", now).is_ok(), "the same at another account");
    assert!(tries.take(ip(1), "a@x", now + WITHIN).is_ok());
}

#[test]
fn one_address_and_one_account_have_limits_of_their_own() {
    let (tries, now) = (Tries::default(), Instant::now());
    let many = |from: u8| (0..100).all(|at| tries.take(ip(from), &format!("{at}@x"), now).is_ok());
    assert!(many(1) && tries.take(ip(1), "new@x", now).is_err(), "one address");
    let (tries, now) = (Tries::default(), Instant::now());
    assert!((0..100).all(|from| tries.take(ip(from), "a@x", now).is_ok()));
    assert!(tries.take(ip(200), "a@x", now).is_err(), "one account");
}

#[test]
fn being_right_costs_nothing() {
    let (tries, now) = (Tries::default(), Instant::now());
    for _ in 0..300 {
        let one = tries.take(ip(1), "a@x", now).unwrap_or_else(|_| panic!("refused"));
        tries.was_right(one);
    }
}
