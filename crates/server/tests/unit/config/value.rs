use std::time::Duration;
use windlass_server::config::{
    table::Kind,
    value::{bytes, check, list, time},
};

#[test]
fn values_are_understood_as_people_write_them() {
    assert_eq!((bytes("64KiB"), bytes("3 mib"), bytes("7")), (Ok(65_536), Ok(3 << 20), Ok(7)));
    assert_eq!((time("500ms"), time("2m")), (Ok(Duration::from_millis(500)), Ok(Duration::from_secs(120))));
    assert!(time("10").is_err() && time("s").is_err() && bytes("1XB").is_err() && bytes("99999999999GiB").is_err());
    assert_eq!(list(" a, b,,c "), ["a", "b", "c"]);
    for (kind, good, bad) in [
        (Kind::Address, "[::1]:3000", "3000"),
        (Kind::Address, "localhost:0", "localhost:99999"),
        (Kind::Url, "http://127.0.0.1:4318", "127.0.0.1:4318"),
        (Kind::Count, "12", "-1"),
        (Kind::Flag, "yes", "maybe"),
        (Kind::Choice(&["a", "b"]), "a", "c"),
    ] {
        assert!(check(kind, good).is_ok() && check(kind, bad).is_err(), "{kind:?}");
    }
}
