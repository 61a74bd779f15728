use unicode_width::UnicodeWidthStr;
use windlass_cli::table::{Colour, Rows, cell, cut};

const ID: &str = "0190c0de-0000-7000-8000-000000000000";

fn jobs() -> Rows {
    let mut rows = Rows::new(&["ID", "STATE", "AGE", "TRY", "WORKER…", "WHAT…", "ABOUT…"], "No jobs.");
    let long = "a command that is much longer than what there is room for in a table";
    for state in ["completed", "failed"] {
        rows.add([ID, state, "12m 3s", "", "host-12345", long, long].map(cell).into());
    }
    rows
}

#[test]
fn ids_are_never_broken_however_narrow_the_terminal() {
    let mut artifacts = Rows::new(&["ID", "NAME…", "SIZE", "CREATED", "JOB"], "");
    artifacts.add([ID, &"n".repeat(200), "1.5 MiB", "3h 12m ago", ID].map(cell).into());
    for (rows, ids) in [(jobs(), 2), (artifacts, 2)] {
        for width in [None, Some(200), Some(132), Some(100), Some(80), Some(60), Some(40)] {
            let text = rows.shown(width, false);
            assert_eq!(text.matches(ID).count(), ids, "{width:?}:\n{text}");
            for line in text.lines() {
                assert!(width.is_none_or(|width| line.width() <= width), "{width:?}: {line:?}");
            }
        }
    }
}

#[test]
fn without_a_terminal_a_row_is_one_whole_line() {
    let text = jobs().shown(None, false);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("room for in a table  a command") && !text.contains('…'), "{text}");
}

#[test]
fn what_does_not_fit_goes_on_between_cells() {
    let text = jobs().shown(Some(100), false);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len() % 3, 0, "{text}");
    assert!(lines[0].starts_with("ID ") && lines[0].contains("STATE"), "{text}");
    assert!(!text.contains("TRY"), "columns without anything in them give way: {text}");
    assert!(text.contains("a command that"), "{text}");
}

#[test]
fn what_is_one_sign_is_not_cut_in_two() {
    assert_eq!((cut("short", 10), cut("much too long", 5)), ("short".into(), "much…".into()));
    assert_eq!(cut("two\nlines", 10), "two…");
    let scientist = "👩\u{200d}🔬";
    let accent = "e\u{301}";
    assert_eq!(cut(&scientist.repeat(4), 5), format!("{}…", scientist.repeat(2)));
    assert_eq!(cut(&accent.repeat(9), 4), format!("{}…", accent.repeat(3)));
    for max in 1..12 {
        assert!(cut("日本語のとても長い題名", max).width() <= max.max(1), "{max}");
    }
}

#[test]
fn an_empty_list_says_so() {
    let mut rows = Rows::new(&["ID"], "No jobs.");
    assert_eq!(rows.text(), "No jobs.");
    rows.add(vec![cell("x").colour(Colour::Red)]);
    assert_eq!((rows.text(), rows.shown(None, true)), ("ID\nx".into(), "ID\n\x1b[31mx\x1b[0m".into()));
}
