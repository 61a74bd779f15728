use tokio::sync::mpsc;
use windlass_worker::{
    process::OutputSink,
    silo::lines::{Lines, Said, Stream},
};

async fn heard(stream: Stream, pieces: &[&[u8]]) -> (Vec<Said>, Option<String>) {
    let (sender, mut receiver) = mpsc::channel(100);
    let mut lines = Lines::new(stream, sender);
    for piece in pieces {
        lines.hear(piece).await;
    }
    lines.end().await;
    let complaint = lines.complaint.take();
    drop(lines);
    let mut all = Vec::new();
    while let Some(said) = receiver.recv().await {
        all.push(said);
    }
    (all, complaint)
}

fn log(level: &'static str, text: &str) -> Said {
    Said::Log(level, text.into())
}

#[tokio::test]
async fn lines_of_standard_output_are_progress_or_entries() {
    let pieces: &[&[u8]] = &[
        b"plain\r\n\n  \n::progress 45 Rebuil",
        b"ding parts\n::progress 100\n::progress 101\n::progress soon\n::log error it broke\n::log loud x\n::log warn\n",
        b"last, without an end",
    ];
    let (said, complaint) = heard(Stream::Output, pieces).await;
    let expected = [
        log("info", "plain"),
        Said::Progress(45, Some("Rebuilding parts".into())),
        Said::Progress(100, None),
        log("info", "::progress 101"),
        log("info", "::progress soon"),
        log("error", "it broke"),
        log("info", "::log loud x"),
        log("info", "::log warn"),
        log("info", "last, without an end"),
    ];
    assert_eq!((said, complaint), (expected.to_vec(), None));
}

#[tokio::test]
async fn standard_error_is_warnings_and_its_last_line_is_kept() {
    let (said, complaint) = heard(Stream::Errors, &[b"::progress 3\n", b"no such file\n\n \n"]).await;
    assert_eq!(said, [log("warn", "::progress 3"), log("warn", "no such file")]);
    assert_eq!(complaint.as_deref(), Some("no such file"));
}

#[tokio::test]
async fn a_line_too_long_for_an_entry_becomes_several() {
    let long = vec![b'x'; 150 << 10];
    let (said, _) = heard(Stream::Output, &[&long, b"\n"]).await;
    let lengths: Vec<usize> =
        said.iter().map(|said| if let Said::Log(_, text) = said { text.len() } else { 0 }).collect();
    assert_eq!((lengths.iter().sum::<usize>(), lengths.len()), (150 << 10, 3));
}
