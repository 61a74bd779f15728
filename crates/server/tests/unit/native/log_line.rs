use windlass_api::log::LogLevel;
use windlass_server::native::log_line::{level, plain};

#[test]
fn escape_sequences_are_left_out() {
    let cases = [
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}[1;38;2;255;0;0mtrue\u{1b}[m colour", "true colour"),
        ("\u{1b}[?25lhidden cursor\u{1b}[2K", "hidden cursor"),
        ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7} end", "link end"),
        ("\u{1b}(Bcharset\u{1b}7", "charset"),
        ("cut \u{1b}[3", "cut "),
        ("cut \u{1b}", "cut "),
        ("é\u{1b}]title", "é"),
    ];
    for (line, text) in cases {
        assert_eq!(plain(line), text, "{line:?}");
    }
}

/// The same table is in `web/tests/stories/logs.mjs`.
#[test]
fn a_line_has_the_level_of_its_words() {
    let (error, warn, debug) = (Some(LogLevel::Error), Some(LogLevel::Warn), Some(LogLevel::Debug));
    let cases = [
        ("2026-01-01 ERROR disk full", error),
        ("Error: no such file", error),
        ("error: expected one argument", error),
        ("src/a.rs:3: error[E0308]: mismatched types", error),
        ("Traceback (most recent call last):", error),
        ("ValueError: invalid literal", error),
        ("KeyboardError", error),
        ("java.lang.NullPointerException: x", error),
        ("thread 'main' panicked at src/main.rs:1", error),
        (r#"{"level":"error","message":"x"}"#, error),
        (r#"{"severity": "error"}"#, error),
        ("level=error msg=x", error),
        ("npm ERR! code 1", error),
        ("WARN and then an ERROR", error),
        ("warning: unused variable", warn),
        ("WARN low disk", warn),
        ("DEBUG x=1", debug),
        ("0 errors", None),
        ("no error was found", None),
        ("Error handling is enabled", None),
        ("TERROR", None),
        ("the level error of it", None),
    ];
    for (line, expected) in cases {
        assert_eq!(level(line), expected, "{line:?}");
    }
}
