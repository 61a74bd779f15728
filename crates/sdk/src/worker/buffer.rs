//! What a job printed and the server has not heard yet.
//!
//! Bounded: who prints faster than the server takes has to wait. A piece is kept until the server has taken it, so that a lost
//! connection costs at worst a piece that appears twice.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
};
use tokio::sync::Notify;
use windlass_api::log::{LogChunk, OutputStream};

/// The server takes no larger piece.
pub(crate) const PIECE_BYTES_MAX: usize = 256 << 10;
const BUFFER_BYTES_MAX: usize = 1 << 20;
/// What a chunk counts beside its text: so much the server may need to keep it.
const CHUNK_BYTES: usize = 31;
/// Far below what the server takes in a piece.
const PIECE_CHUNKS_MAX: usize = 1_024;
/// Text of one stream that is printed within this time is one chunk.
const TOGETHER_MS: u64 = 100;

#[derive(Default)]
pub(crate) struct LogBuffer {
    inner: Mutex<Inner>,
    /// Rung whenever a printer that waits, or the reporter, should look again.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    pending: VecDeque<LogChunk>,
    pending_bytes: usize,
    /// Cut off and sent, but not taken yet.
    sent: Option<Vec<LogChunk>>,
    in_flight: bool,
    closed: bool,
    /// Nothing more is sent before the end: what does not fit is dropped.
    last: bool,
}

/// What chunks count together.
pub(crate) fn weight(chunks: &[LogChunk]) -> usize {
    chunks.iter().map(|chunk| chunk.data.len() + CHUNK_BYTES).sum()
}

impl Inner {
    fn bytes(&self) -> usize {
        self.pending_bytes + self.sent.as_deref().map_or(0, weight)
    }

    fn room(&self) -> usize {
        BUFFER_BYTES_MAX.saturating_sub(self.bytes())
    }

    /// As much of the text as there is room for.
    fn push(&mut self, stream: Option<OutputStream>, now_ms: u64, text: &str) -> usize {
        let room = self.room();
        let together = |last: &&mut LogChunk| {
            last.stream == stream && last.time_ms.is_some_and(|time| now_ms.saturating_sub(time) < TOGETHER_MS)
        };
        if let Some(last) = self.pending.back_mut().filter(together) {
            let fits = text.floor_char_boundary(room);
            last.data.push_str(&text[..fits]);
            self.pending_bytes += fits;
            return fits;
        }
        let fits = text.floor_char_boundary(room.saturating_sub(CHUNK_BYTES));
        if fits > 0 {
            self.pending.push_back(LogChunk { data: text[..fits].to_owned(), stream, time_ms: Some(now_ms) });
            self.pending_bytes += fits + CHUNK_BYTES;
        }
        fits
    }

    /// The next piece, of at most so many bytes; the last chunk in it may be cut.
    fn cut(&mut self, bytes_max: usize) -> Vec<LogChunk> {
        let (mut room, mut piece) = (bytes_max.min(PIECE_BYTES_MAX), Vec::new());
        while piece.len() < PIECE_CHUNKS_MAX
            && let Some(first) = self.pending.front_mut()
        {
            let fits = first.data.floor_char_boundary(room.saturating_sub(CHUNK_BYTES));
            if fits == 0 {
                break;
            }
            room -= fits + CHUNK_BYTES;
            let rest = first.data.split_off(fits);
            let chunk = LogChunk { data: std::mem::replace(&mut first.data, rest), ..first.clone() };
            self.pending_bytes -= fits;
            if first.data.is_empty() {
                self.pending.pop_front();
                self.pending_bytes -= CHUNK_BYTES;
            }
            piece.push(chunk);
        }
        piece
    }
}

impl LogBuffer {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Appends, and waits for room where there is none. What is printed after the job's end goes nowhere.
    pub async fn push(&self, stream: Option<OutputStream>, now_ms: u64, mut text: &str, wake: impl Fn()) {
        while !text.is_empty() {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let taken = self.push_some(stream, now_ms, text);
            text = &text[taken..];
            wake();
            if !text.is_empty() {
                changed.await;
            }
        }
    }

    fn push_some(&self, stream: Option<OutputStream>, now_ms: u64, text: &str) -> usize {
        let mut inner = self.inner();
        if inner.closed {
            return text.len();
        }
        let taken = inner.push(stream, now_ms, text);
        if inner.last { text.len() } else { taken }
    }

    pub fn len(&self) -> usize {
        self.inner().bytes()
    }

    /// The next piece to send, the one that was not taken the last time first. [`LogBuffer::note_sent`] says what came of it.
    pub fn take(&self, bytes_max: usize) -> Option<Vec<LogChunk>> {
        let mut inner = self.inner();
        if inner.closed || inner.in_flight {
            return None;
        }
        if inner.sent.is_none() {
            let piece = inner.cut(bytes_max);
            if piece.is_empty() {
                return None;
            }
            inner.sent = Some(piece);
        }
        inner.in_flight = true;
        inner.sent.clone()
    }

    pub fn note_sent(&self, taken: bool) {
        let mut inner = self.inner();
        inner.in_flight = false;
        if taken {
            inner.sent = None;
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Nobody will hear it.
    pub fn discard(&self) {
        let mut inner = self.inner();
        inner.closed = true;
        (inner.pending, inner.pending_bytes) = (VecDeque::new(), 0);
        drop(inner);
        self.changed.notify_waiters();
    }

    /// From here on only the report sends what is printed, so no writer waits for room.
    pub fn keep_last(&self) {
        self.inner().last = true;
        self.changed.notify_waiters();
    }

    /// Takes nothing more, waits for the piece that is on its way, and gives the rest in pieces.
    pub async fn close(&self) -> Vec<Vec<LogChunk>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut inner = self.inner();
                inner.closed = true;
                if !inner.in_flight {
                    let mut pieces: Vec<Vec<LogChunk>> = inner.sent.take().into_iter().collect();
                    while !inner.pending.is_empty() {
                        pieces.push(inner.cut(PIECE_BYTES_MAX));
                    }
                    return pieces;
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    async fn push(buffer: &LogBuffer, text: &str) {
        buffer.push(None, 1_000, text, || ()).await;
    }

    fn text(piece: &[LogChunk]) -> String {
        piece.iter().map(|chunk| chunk.data.as_str()).collect()
    }

    #[tokio::test]
    async fn a_printer_waits_for_room_and_nothing_is_lost_or_cut_in_two() {
        let buffer = Arc::new(LogBuffer::default());
        let long = "é".repeat(BUFFER_BYTES_MAX);
        let printer = tokio::spawn({
            let (buffer, long) = (buffer.clone(), long.clone());
            async move { push(&buffer, &long).await }
        });
        let mut heard = String::new();
        while heard.len() < long.len() {
            tokio::task::yield_now().await;
            assert!(buffer.len() <= BUFFER_BYTES_MAX);
            let Some(piece) = buffer.take(100_001) else { continue };
            assert!(weight(&piece) <= 100_001);
            heard.push_str(&text(&piece));
            buffer.note_sent(true);
        }
        printer.await.unwrap();
        assert!(heard == long);
    }

    #[tokio::test]
    async fn last_words_never_wait_for_room() {
        let buffer = LogBuffer::default();
        push(&buffer, "before ").await;
        buffer.keep_last();
        push(&buffer, "after").await;
        push(&buffer, &"x".repeat(2 * BUFFER_BYTES_MAX)).await;
        assert!(buffer.len() <= BUFFER_BYTES_MAX);
        let all: String = buffer.close().await.iter().map(|piece| text(piece)).collect();
        assert!(all.starts_with("before afterxx"));
    }

    #[tokio::test]
    async fn what_was_not_taken_is_sent_again_first() {
        let buffer = LogBuffer::default();
        push(&buffer, "one").await;
        assert_eq!(text(&buffer.take(99).unwrap()), "one");
        push(&buffer, "two").await;
        assert_eq!(buffer.take(99), None, "one at a time");
        buffer.note_sent(false);
        assert_eq!(text(&buffer.take(99).unwrap()), "one");
        buffer.note_sent(false);
        let rest: Vec<String> = buffer.close().await.iter().map(|piece| text(piece)).collect();
        assert_eq!(rest, ["one", "two"]);
    }

    #[tokio::test]
    async fn closing_waits_for_the_piece_on_its_way() {
        let buffer = Arc::new(LogBuffer::default());
        push(&buffer, "one").await;
        buffer.take(99).unwrap();
        push(&buffer, "two").await;
        let closing = tokio::spawn({
            let buffer = buffer.clone();
            async move { buffer.close().await }
        });
        tokio::task::yield_now().await;
        assert!(!closing.is_finished());
        buffer.note_sent(true);
        assert_eq!(text(&closing.await.unwrap()[0]), "two");
        push(&buffer, "three").await;
        assert_eq!(buffer.len(), 0, "what comes after the end goes nowhere");
    }

    #[tokio::test]
    async fn streams_that_alternate_share_pieces_and_keep_their_order() {
        let buffer = LogBuffer::default();
        for line in 0..2_000u64 {
            let stream = if line % 2 == 0 { OutputStream::Stdout } else { OutputStream::Stderr };
            buffer.push(Some(stream), line, &format!("{line}\n"), || ()).await;
        }
        let pieces = buffer.close().await;
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [1_024, 976]);
        let lines: String = (0..2_000).map(|line| format!("{line}\n")).collect();
        assert_eq!(text(&pieces.concat()), lines);
        assert_eq!(buffer.len(), 0);
    }

    #[tokio::test]
    async fn text_of_one_stream_goes_together_while_it_is_fresh() {
        let buffer = LogBuffer::default();
        for (at, line) in [(0, "a\n"), (99, "b\n"), (100, "c\n"), (50, "d\n")] {
            buffer.push(Some(OutputStream::Stderr), at, line, || ()).await;
        }
        let found: Vec<(Option<u64>, String)> =
            buffer.close().await.concat().into_iter().map(|chunk| (chunk.time_ms, chunk.data)).collect();
        assert_eq!(found, [(Some(0), "a\nb\n".into()), (Some(100), "c\nd\n".into())]);
    }

    #[tokio::test]
    async fn the_rest_is_cut_between_characters() {
        let buffer = LogBuffer::default();
        let long = format!("x{}", "ü".repeat(PIECE_BYTES_MAX));
        push(&buffer, &long).await;
        let pieces = buffer.close().await;
        assert!(pieces.iter().all(|piece| weight(piece) <= PIECE_BYTES_MAX));
        assert_eq!(pieces.len(), 3);
        assert!(text(&pieces.concat()) == long);
    }
}
