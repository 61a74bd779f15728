use windlass_cli::top::look::plain;

#[test]
fn a_line_of_a_log_cannot_move_the_cursor() {
    assert_eq!(plain("\u{1b}[31mred\u{1b}[0m and \u{1b}[2Jgone"), "red and gone");
    assert!(!plain("bell\u{7} back\u{8}").contains(['\u{7}', '\u{8}']));
}
