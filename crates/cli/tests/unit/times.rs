use jiff::tz::TimeZone;
use windlass_cli::times::{bytes, length, local_in, localised_in, moment, moment_in, relative};

#[test]
fn lengths_are_read_as_written() {
    assert_eq!((length("90"), length("1.5"), length("5m")), (Ok(90_000), Ok(1_500), Ok(300_000)));
    for text in ["", "h", "5 parsecs", "-1s", "1e99d"] {
        assert!(length(text).is_err(), "{text}");
    }
}

#[test]
fn a_time_without_a_zone_is_local_and_people_see_local_times() {
    let zone = |name: &str| TimeZone::get(name).unwrap();
    let table = [
        ("2026-01-31T12:00", "Asia/Kolkata", "2026-01-31T06:30:00Z", "2026-01-31 12:00:00 +05:30"),
        ("2026-07-01 12:00:00", "Europe/Berlin", "2026-07-01T10:00:00Z", "2026-07-01 12:00:00 +02:00"),
        ("2026-01-31T12:00:00Z", "Europe/Berlin", "2026-01-31T12:00:00Z", "2026-01-31 13:00:00 +01:00"),
        ("2026-01-31T12:00:00-08:00", "UTC", "2026-01-31T20:00:00Z", "2026-01-31 20:00:00 +00:00"),
    ];
    for (text, name, utc, shown) in table {
        assert_eq!(moment_in(text, &zone(name)).as_deref(), Ok(utc), "{text} {name}");
        assert_eq!(local_in(utc.parse().unwrap(), &zone(name)), shown);
    }
    assert!(moment("tomorrow").unwrap_err().contains("for local time"));
    let said = "Since 2026-01-31T12:00:00.250Z: 3 of 10.5 jobs, until 2026-01-31T13:00:00Z.";
    let shown = "Since 2026-01-31 13:00:00 +01:00: 3 of 10.5 jobs, until 2026-01-31 14:00:00 +01:00.";
    assert_eq!(localised_in(said, &zone("Europe/Berlin")), shown);
}

#[test]
fn times_are_told_as_people_would() {
    let now: jiff::Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
    let cases = [
        ("2026-01-31T11:59:59.900Z", "just now"),
        ("2026-01-31T11:59:55Z", "5.0s ago"),
        ("2026-01-31T11:57:30Z", "2m 30s ago"),
        ("2026-01-30T10:00:00Z", "1d 2h ago"),
        ("2026-01-31T13:00:00Z", "in 1h"),
    ];
    for (text, told) in cases {
        assert_eq!(relative(text, now), told);
    }
    assert_eq!(bytes(1_536), "1.5 KiB");
}
