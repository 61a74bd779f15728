use std::collections::BTreeMap;
use windlass_worker::output::{LINE_BYTES_MAX, Output, Piece, TAIL_LINES};

fn text(text: &str) -> Piece {
    Piece::Text(text.into())
}

#[test]
fn progress_lines_are_told_and_not_logged() {
    let mut output = Output::default();
    let pieces = output.feed(b"a\n::progress 42 half way\nb\n::progress 50%\n::progress soon\n::progress 200\nc");
    let expected = [
        text("a\n"),
        Piece::Progress(42.0, "half way".into()),
        text("b\n"),
        Piece::Progress(50.0, String::new()),
        text("::progress soon\n::progress 200\nc"),
    ];
    assert_eq!(pieces, expected);
    assert_eq!(output.finish(), []);
}

#[test]
fn the_beginning_of_a_progress_line_waits_for_its_end_and_nothing_else_does() {
    let mut output = Output::default();
    assert_eq!(output.feed(b"no newline"), [text("no newline")]);
    assert_eq!(output.feed(b" yet\n::pro"), [text(" yet\n")]);
    assert_eq!(output.feed(b"gress 7"), []);
    assert_eq!(output.feed(b"0 x\n::prose"), [Piece::Progress(70.0, "x".into()), text("::prose")]);
    assert_eq!(output.feed(b"\n::progress 9"), [text("\n")]);
    assert_eq!(output.finish(), [Piece::Progress(9.0, String::new())], "the last line needs no newline");
}

#[test]
fn characters_cut_in_two_are_put_together_and_garbage_is_marked() {
    let mut output = Output::default();
    let bytes = "aé".as_bytes();
    assert_eq!(output.feed(&bytes[..2]), [text("a")]);
    assert_eq!(output.feed(&bytes[2..]), [text("é")]);
    assert_eq!(output.feed(b"\xff\xc3x"), [text("\u{fffd}\u{fffd}x")]);
    assert_eq!(output.feed(b"\xc3"), []);
    assert_eq!(output.finish(), [text("\u{fffd}")]);
}

#[test]
fn the_last_line_is_the_result_if_it_is_a_document() {
    let table: &[(&str, Option<&str>)] = &[
        ("x\n{\"a\": 1}\n", Some("{\"a\": 1}")),
        ("[1]\n\n  \n", Some("[1]")),
        ("[1]", Some("[1]")),
        ("[1]\n::progress 100\n", Some("[1]")),
        ("{\"a\": 1}\ndone\n", None),
        ("42\n", None),
        ("{a}\n", None),
        ("", None),
    ];
    for (printed, expected) in table {
        let mut output = Output::default();
        output.feed(printed.as_bytes());
        output.finish();
        assert_eq!(output.last_document(), *expected, "{printed:?}");
    }
}

#[test]
fn lines_hand_things_on_only_where_they_are_asked_to() {
    let text = b"a\n::set-output url=s3://b?c=d\n::set-output  v = 1\n::set-output none\n::set-output =x\n";
    let mut output = Output::with_outputs();
    assert_eq!(output.feed(text).len(), 1, "they are in the log all the same");
    let expected = [("url", "s3://b?c=d"), ("v", " 1")].map(|(name, value)| (name.into(), value.into()));
    assert_eq!(output.outputs(), BTreeMap::from(expected));
    let mut ordinary = Output::default();
    ordinary.feed(text);
    assert!(ordinary.outputs().is_empty());
}

#[test]
fn endless_lines_are_passed_on_but_not_kept() {
    let mut output = Output::default();
    let mut passed = 0;
    for _ in 0..64 {
        for piece in output.feed(&[b'['; 64 << 10]) {
            let Piece::Text(text) = piece else { panic!("{piece:?}") };
            passed += text.len();
        }
        assert!(output.line.len() <= LINE_BYTES_MAX + (64 << 10));
    }
    assert_eq!(passed, 4 << 20);
    output.feed(b"\n");
    assert_eq!(output.last_document(), None);
    for number in 0..20 {
        output.feed(format!("{number}\n").as_bytes());
    }
    assert_eq!(output.tail().lines().count(), TAIL_LINES);
}

#[test]
fn a_failure_begins_with_the_line_that_explains_it() {
    let table = [
        ("", "exit code 1"),
        ("bye\n", "exit code 1: bye"),
        ("first\nno luck\n", "exit code 1: no luck\nfirst\nno luck"),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    raise ValueError(1)\nValueError: bad day\n\nhint: see the docs\n",
            "exit code 1: ValueError: bad day\n",
        ),
        (
            "\u{1b}[31merror\u{1b}[0m[E0425]: cannot find value `x`\n  --> src/main.rs:1:1\nerror: aborting due to 1 previous error\nerror: could not compile `x`\n",
            "exit code 1: error[E0425]: cannot find value `x`\n",
        ),
        (
            "thread 'main' panicked at src/main.rs:2:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1` to display a backtrace\n",
            "exit code 1: index out of bounds\n",
        ),
        (
            "Exception in thread \"main\" java.lang.X: boom\n\tat com.ErrorHandler.run(E.java:1)\nCaused by: java.io.IOException: disk full\n\tat b.C(D.java:2)\n",
            "exit code 1: Caused by: java.io.IOException: disk full\n",
        ),
        (
            "gcc a.c\na.c:1:1: error: expected ';'\nmake: *** [a.o] Error 1\n",
            "exit code 1: a.c:1:1: error: expected ';'\n",
        ),
        ("cp: cannot stat 'x': No such file or directory\ncleaning up\n0 errors\n", "exit code 1: cp: cannot stat 'x'"),
        ("\u{1b}[", "exit code 1: \u{1b}["),
    ];
    for (text, expected) in table {
        let mut output = Output::default();
        output.feed(text.as_bytes());
        output.finish();
        let failure = output.failure("exit code 1");
        assert!(failure.starts_with(expected), "{text:?}: {failure:?}");
    }
    // Also where it is long since it was printed.
    let mut output = Output::default();
    output.feed(b"fatal: no key\n");
    output.feed("working\n".repeat(1_000).as_bytes());
    assert!(output.failure("exit code 1").starts_with("exit code 1: fatal: no key\nworking\n"));
}
