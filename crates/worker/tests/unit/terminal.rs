use windlass_worker::terminal::{Colours, line, lines};

#[test]
fn nothing_that_a_terminal_would_obey_is_left_in_foreign_text() {
    assert_eq!(line("a\x1b[2Jb\n\u{9b}31mc\u{7}\td"), "a\\u001b[2Jb\\n\\u009b31mc\\u0007\\td");
    assert_eq!(lines("a\r\nb\rc\td\x1b]0;t\u{7}"), "a\nb\\rc\td\\u001b]0;t\\u0007");
    assert_eq!(line("\u{202e}txt.exe\u{2069} ü 日 👩‍🔬"), "\\u202etxt.exe\\u2069 ü 日 👩‍🔬");
    let json = "{\"a\": \"\u{202e}\u{7f}\u{9b}\"}";
    let same = serde_json::from_str::<serde_json::Value>(&lines(json)).unwrap();
    assert_eq!(same, serde_json::from_str::<serde_json::Value>(json).unwrap());
}

#[test]
fn colours_go_through_and_nothing_else_does() {
    let cases = [
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\x1b[1;38;5;8mgrey", "\x1b[1;38;5;8mgrey\x1b[0m"),
        ("\x1b[38:2::1:2:3mx\x1b[m", "\x1b[38:2::1:2:3mx\x1b[m"),
        ("\x1b[8mhidden", "\\u001b[8mhidden"),
        ("\x1b[38;7;8mhidden", "\\u001b[38;7;8mhidden"),
        ("\x1b[2Jcleared", "\\u001b[2Jcleared"),
        ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
        ("\x1b[3\x1b[31mx", "\\u001b[3\x1b[31mx\x1b[0m"),
        ("\x1b", "\\u001b"),
        ("10 %\r20 %\r\nend\r", "10 %\n20 %\nend\n"),
        ("\u{9b}31m \u{8}\u{202e}", "\\u009b31m \\u0008\\u202e"),
    ];
    for (text, shown) in cases {
        let mut colours = Colours::default();
        let whole = colours.feed(text) + &colours.finish();
        assert_eq!(whole, shown, "{text:?}");
        let piecewise: String = text.chars().map(|c| colours.feed(&c.to_string())).collect();
        assert_eq!(piecewise + &colours.finish(), shown, "{text:?} in pieces");
    }
    let long = format!("\x1b[{}m", "1;".repeat(40));
    assert!(!Colours::default().feed(&long).contains('\x1b'), "what is held back is bounded");
}
