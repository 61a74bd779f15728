use windlass_core::log_count::{LogCount, LogGap, SEGMENT_PIECES_MAX, SEGMENTS_MAX};

#[test]
fn nothing_goes_before_the_cap_and_the_beginning_and_the_newest_part_stay_within_it() {
    for (cap, piece) in [(1u64 << 20, 1_000u64), (1 << 20, 7), (1_000, 64), (10, 5), (100, 1)] {
        let mut count = LogCount::default();
        let (mut written, mut lost_to) = (0, 0);
        for _ in 0..(4 * cap / piece).min(400_000) {
            let gone = count.append(piece, piece, cap);
            written += piece;
            assert!(gone.is_none() || written > cap || count.pieces > 60_000, "{cap} {piece}: {written} {gone:?}");
            if let Some((first, last)) = gone {
                assert!(first == lost_to + 1 || lost_to == 0, "{gone:?} after {lost_to}");
                assert!(first <= last && last < count.pieces && last - first < 2 * SEGMENT_PIECES_MAX);
                lost_to = last;
            }
            assert!(count.bytes <= cap, "{cap} {piece} {count:?}");
            assert_eq!(count.bytes + count.dropped_bytes, written);
            assert_eq!(count.kept_pieces() * piece, count.bytes);
            let segments = count.tail.as_ref().map_or(0, |tail| tail.segments.len());
            assert!(segments <= SEGMENTS_MAX);
        }
        assert!(count.dropped_bytes > 0, "{cap} {piece}");
        assert!(count.bytes >= cap * 9 / 10 - piece || count.pieces > 60_000, "{cap} {piece} {count:?}");
    }
}

#[test]
fn a_row_from_before_keeps_what_it_has_and_the_newest_part_from_now_on() {
    let mut count = LogCount { pieces: 3, bytes: 100, dropped_bytes: 40, ..LogCount::default() };
    assert!(count.ends_short());
    assert_eq!(count.gap(2, 3), None);
    assert_eq!(count.append(30, 30, 100), None);
    assert_eq!(count.gap(3, 4), Some(LogGap { bytes: Some(40) }), "what was dropped was between these");
    assert_eq!(count.append(30, 30, 100), Some((4, 4)));
    assert_eq!((count.bytes, count.dropped_bytes, count.kept_pieces()), (130, 70, 4));
    assert!(!count.ends_short());
    assert_eq!(count.gap(3, 5), Some(LogGap { bytes: Some(70) }));
    assert_eq!(count.gap(4, 6), Some(LogGap { bytes: None }));
}

#[test]
fn rows_without_the_newer_fields_read_as_before() {
    let old: LogCount = serde_json::from_str(r#"{"pieces":2,"bytes":5,"dropped_bytes":0}"#).unwrap();
    assert_eq!(old, LogCount { pieces: 2, bytes: 5, ..LogCount::default() });
    assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"pieces":2,"bytes":5,"dropped_bytes":0}"#);
}
