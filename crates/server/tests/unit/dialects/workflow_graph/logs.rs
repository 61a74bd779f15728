use windlass_core::{JobId, JobKey, LogAppend, LogForm, Namespace, Payload, Timestamp};
use windlass_server::dialects::workflow_graph::{
    logs::{Lines, pieces},
    wire::{LogChunk, Stream},
};

fn chunk(sequence: u64, stream: Stream, data: &str) -> LogChunk {
    let (workflow_id, job_id) = ("w".into(), "j".into());
    LogChunk { workflow_id, job_id, sequence, data: data.into(), timestamp_ms: 1_000 + sequence * 7, stream }
}

fn kept(piece: u64, attempt: u32, form: LogForm, data: Payload) -> LogAppend {
    let job = JobKey::new(&Namespace::default(), JobId::from_u128(1));
    LogAppend { job, piece, attempt, at: Timestamp(5), form, data }
}

fn shown(pieces: &[LogAppend]) -> Vec<LogChunk> {
    let mut lines = Lines::new("w", "j", None);
    pieces.iter().flat_map(|piece| lines.of(piece).collect::<Vec<_>>()).collect()
}

#[test]
fn chunks_come_back_as_they_were_sent_however_they_are_cut() {
    let sent = [
        chunk(0, Stream::Stdout, "one\ntwo\n"),
        chunk(1, Stream::Stderr, ""),
        chunk(9, Stream::Stdout, &"é".repeat(500)),
        chunk(3, Stream::Stdout, "no line end"),
        chunk(3, Stream::Stderr, "\n"),
    ];
    for most in [40, 64, 100, 1 << 18] {
        let pieces = pieces(&sent, most);
        assert!(pieces.iter().all(|piece| piece.len() <= most));
        let stored: Vec<LogAppend> =
            (1u64..).zip(pieces).map(|(at, data)| kept(at, 1, LogForm::Chunks, data)).collect();
        assert_eq!(shown(&stored), sent, "{most}");
    }
}

#[test]
fn text_without_chunks_is_cut_into_lines_and_a_gap_is_told() {
    let text = |piece, attempt, data: &str| kept(piece, attempt, LogForm::default(), Payload::from(data));
    let found = shown(&[text(1, 1, "a\nb"), text(2, 2, "c\n"), text(9, 2, "d\n")]);
    let found: Vec<(u64, &str)> = found.iter().map(|chunk| (chunk.sequence, chunk.data.as_str())).collect();
    assert_eq!(found[..3], [(0, "a\n"), (1, "b"), (0, "c\n")]);
    assert!(found[3].1.contains("missing here"), "{found:?}");
    assert_eq!(found[4].1, "d\n");
}
