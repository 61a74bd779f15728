use windlass_server::dialects::neops::cursor::Cursor;

#[test]
fn a_cursor_is_read_back_and_one_made_up_is_refused() {
    let cursor = Cursor(("label\nx".into(), "id".into()));
    assert_eq!(Cursor::read(&cursor.text()).unwrap(), cursor);
    for junk in ["", "x", "!!!", "YWJj"] {
        assert!(Cursor::read(junk).is_err(), "{junk}");
    }
}
