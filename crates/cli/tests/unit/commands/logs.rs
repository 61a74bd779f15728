use windlass_api::log::LogPiece;
use windlass_cli::commands::logs::LastLines;

fn last(pieces: &[&str], lines: usize) -> String {
    let mut last = LastLines::new(lines);
    for data in pieces {
        let data = (*data).to_owned();
        let at = String::new();
        last.push(LogPiece { attempt: 1, at, stream: None, worker_at: None, data, missing_bytes: None });
    }
    last.cut().into_iter().map(|piece| piece.data).collect()
}

#[test]
fn the_last_lines_are_found_wherever_pieces_begin_and_end() {
    for pieces in [
        &["a\nb\nc\nd\n"][..],
        &["a\n", "b\n", "c\n", "d\n"],
        &["a", "\nb\nc", "\n", "d", "\n"],
        &["a\nb", "\n", "c\nd\n"],
    ] {
        assert_eq!(last(pieces, 1), "d\n", "{pieces:?}");
        assert_eq!(last(pieces, 3), "b\nc\nd\n", "{pieces:?}");
        assert_eq!(last(pieces, 4), "a\nb\nc\nd\n", "{pieces:?}");
        assert_eq!(last(pieces, 9), "a\nb\nc\nd\n", "{pieces:?}");
    }
    assert_eq!(last(&["a\nb\n", "c"], 1), "c");
    assert_eq!(last(&["a\nb\n", "c"], 2), "b\nc");
    assert_eq!(last(&["\n\n\n"], 2), "\n\n");
    assert_eq!(last(&[], 2), "");
}
