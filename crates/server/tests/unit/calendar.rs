use windlass_core::Timestamp;
use windlass_server::calendar::Calendar;

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn times(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let found = Calendar::new(cron, Some(zone)).unwrap().some_after(at(from), count);
    found.into_iter().map(|at| jiff::Timestamp::from_millisecond(at.0).unwrap().to_string()).collect()
}

#[test]
fn times_follow_the_time_zone_through_the_year() {
    let table: &[(&str, &str, &str, &[&str])] = &[
        ("0 3 * * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"]),
        ("@daily", "UTC", "2026-01-01T00:00:00Z", &["2026-01-02T00:00:00Z"]),
        ("*/10 * * * * *", "UTC", "2026-01-01T00:00:05Z", &["2026-01-01T00:00:10Z"]),
        ("0 9 * * MON", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-05T03:30:00Z"]),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]),
        // Summer time begins on 29 March 2026 in Berlin: 12:00 is an hour earlier in UTC from then on.
        ("0 12 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", &["2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z"]),
        // 02:30 does not exist on that day; it runs once, when the clock jumps.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
        // Summer time ends on 25 October 2026: 02:30 comes twice, and is taken once.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        // What repeats goes by real time: no half hour is left out or doubled.
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"],
        ),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00Z",
            &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
        ),
    ];
    for (cron, zone, from, expected) in table {
        assert_eq!(times(cron, zone, from, expected.len()), *expected, "{cron} in {zone} from {from}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let table = [
        ("", None, "cron"),
        ("every day", None, "cron"),
        ("60 * * * *", None, "cron"),
        ("* * * *", None, "cron"),
        ("0 3 * * *\tUTC", None, "cron"),
        ("0 3 * * *", Some("Mars/Olympus"), "time_zone"),
        ("0 3 * * *", Some("../../etc/passwd"), "time_zone"),
    ];
    for (cron, zone, field) in table {
        let problem = Calendar::new(cron, zone).unwrap_err();
        assert_eq!(problem.0.field.as_deref(), Some(field), "{cron} {zone:?}");
    }
    let never = Calendar::new("0 0 31 2 *", None).map(|calendar| calendar.after(at("2026-01-01T00:00:00Z")));
    assert!(matches!(never, Ok(None) | Err(_)), "31 February never comes");
}

#[test]
fn a_calendar_survives_being_stored() {
    let text = Calendar::stored("30 2 * * *", Some("Europe/Berlin"));
    let restored = Calendar::restore(&text).unwrap();
    let made = Calendar::new("30 2 * * *", Some("Europe/Berlin")).unwrap();
    assert_eq!(restored.after(at("2026-07-01T00:00:00Z")), made.after(at("2026-07-01T00:00:00Z")));
}
