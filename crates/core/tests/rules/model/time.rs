use windlass_core::Millis;

#[test]
fn lengths_are_read_as_people_write_them() {
    for (text, millis) in [
        ("250ms", 250),
        ("0s", 0),
        ("90s", 90_000),
        ("5m", 300_000),
        ("1.5h", 5_400_000),
        ("0.1s", 100),
        ("7 d", 604_800_000),
        ("1w", 604_800_000),
        ("2min", 120_000),
    ] {
        assert_eq!(text.parse(), Ok(Millis(millis)), "{text}");
    }
    for (text, why) in [
        ("", "not a duration"),
        ("s", "not a duration"),
        ("-1s", "not a duration"),
        ("1.2.3s", "not a duration"),
        ("5", "no unit of time"),
        ("5 parsecs", "not a unit of time"),
        ("5M", "not a unit of time"),
        ("1h30m", "not a unit of time"),
        ("1e3s", "not a unit of time"),
        ("99999999999999d", "too long"),
    ] {
        let told = text.parse::<Millis>().unwrap_err();
        assert!(told.contains(why), "{text}: {told}");
    }
}
