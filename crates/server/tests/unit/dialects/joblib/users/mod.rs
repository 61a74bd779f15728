mod jwt;
mod password;
mod tries;

use windlass_server::dialects::joblib::users::{ADDRESS_BYTES_MAX, check_address};

#[test]
fn an_address_has_two_sides() {
    for good in ["a@b.c", "Ada.Lovelace+x@mail.example.org", "ü@exämple.org"] {
        assert!(check_address(good).is_ok(), "{good}");
    }
    let long = format!("{}@b.c", "x".repeat(ADDRESS_BYTES_MAX));
    for bad in ["", "a", "@b.c", "a@", "a@b", "a@b..c", "a@b@c.d", "a b@c.d", "a@b.c\n", &long] {
        assert!(check_address(bad).is_err(), "{bad}");
    }
}
