use windlass_core::{
    Chunk, LogForm, LogStream, Payload,
    log::{CHUNK_HEAD_MAX, CHUNKS_MAX, chunks, fitting, newest, pieces_of, text_len},
};

fn chunk(stream: LogStream, time: Option<u64>, sequence: Option<u64>, data: &str) -> Chunk<'_> {
    Chunk { stream: Some(stream), time, sequence, continues: false, data: data.as_bytes() }
}

#[test]
fn chunks_come_back_as_they_were_put_in() {
    use LogStream::{Err, Out};
    let table = [
        chunk(Out, None, None, "plain\n"),
        chunk(Err, Some(1_763_208_000_123), Some(0), "one\n"),
        chunk(Out, Some(1_763_208_000_120), Some(1), ""),
        chunk(Out, Some(u64::MAX), Some(u64::MAX), "é"),
        chunk(Err, Some(0), Some(0), "\0\n\n"),
        Chunk { continues: true, ..chunk(Out, None, Some(7), "half") },
        Chunk { stream: None, ..chunk(Out, Some(5), None, "whose?") },
    ];
    let pieces = pieces_of(table, 1 << 10);
    assert_eq!(pieces.len(), 1);
    let found: Vec<Chunk<'_>> = chunks(LogForm::Chunks, pieces[0].as_bytes()).collect();
    assert_eq!(found, table);
    let text: usize = table.iter().map(|chunk| chunk.data.len()).sum();
    assert_eq!(text_len(LogForm::Chunks, pieces[0].as_bytes()), text);
    assert!(pieces[0].len() <= text + table.len() * CHUNK_HEAD_MAX);
}

#[test]
fn large_chunks_go_on_in_the_next_piece_and_many_small_ones_share_one() {
    let long = "é".repeat(1_000);
    let pieces = pieces_of([chunk(LogStream::Out, None, Some(3), &long)], 131);
    assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.len() <= 131));
    let parts: Vec<Chunk<'_>> = pieces.iter().flat_map(|piece| chunks(LogForm::Chunks, piece.as_bytes())).collect();
    assert_eq!(parts.iter().flat_map(|part| part.data).copied().collect::<Vec<u8>>(), long.as_bytes());
    assert!(parts.iter().all(|part| std::str::from_utf8(part.data).is_ok() && part.sequence == Some(3)));
    let last = parts.len() - 1;
    assert!(parts.iter().enumerate().all(|(at, part)| part.continues == (at < last)));

    let lines = (0..2 * CHUNKS_MAX as u64 + 1).map(|at| chunk(LogStream::Err, Some(at), Some(at), "x\n"));
    let pieces = pieces_of(lines, 256 << 10);
    let counts: Vec<usize> = pieces.iter().map(|piece| chunks(LogForm::Chunks, piece.as_bytes()).count()).collect();
    assert_eq!(counts, [CHUNKS_MAX, CHUNKS_MAX, 1]);
    assert!(pieces[0].len() < 7 * CHUNKS_MAX, "{} bytes for lines of two", pieces[0].len());
}

#[test]
fn what_is_not_chunks_is_shown_as_it_is() {
    for bytes in [&b"\x02"[..], b"\x00\xff", b"\x00\x05abc", b"\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"] {
        let found: Vec<Chunk<'_>> = chunks(LogForm::Chunks, bytes).collect();
        assert_eq!(found.iter().flat_map(|chunk| chunk.data).copied().collect::<Vec<u8>>(), bytes);
    }
}

#[test]
fn the_newest_part_is_whole_chunks_and_whole_characters() {
    let text = |data: &str, most| {
        let kept = newest(LogForm::default(), &Payload::from(data), most);
        String::from_utf8(kept.as_bytes().to_vec()).unwrap()
    };
    assert_eq!(text("abc", 5), "abc");
    assert_eq!(text("abc", 2), "bc");
    assert_eq!(text("aéb", 2), "b");
    assert_eq!(text("é", 1), "");
    assert_eq!(text("abc", 0), "");
    let texts = ["1", "2", "3"].map(|text| text.repeat(100));
    let lines = [0, 1, 2].map(|at| chunk(LogStream::Err, Some(9), None, &texts[at]));
    let piece = pieces_of(lines, 1 << 10).remove(0);
    let kept = newest(LogForm::Chunks, &piece, 150);
    assert!(kept.len() <= 150);
    assert_eq!(chunks(LogForm::Chunks, kept.as_bytes()).collect::<Vec<_>>(), [lines[2]]);
    assert!(newest(LogForm::Chunks, &piece, 3).is_empty());
}

#[test]
fn characters_are_kept_whole() {
    assert_eq!(fitting("abc".as_bytes(), 5), 3);
    assert_eq!(fitting("abc".as_bytes(), 2), 2);
    assert_eq!(fitting("aé".as_bytes(), 2), 1);
    assert_eq!(fitting("é".as_bytes(), 1), 0);
    assert_eq!(fitting("".as_bytes(), 0), 0);
}
