//! What a job printed and the server has not heard yet.
//!
//! Bounded: who prints faster than the server takes has to wait. A piece is kept until the server has taken it, so that a lost
//! connection costs at worst a piece that appears twice.

use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The server takes no larger piece.
pub(crate) const PIECE_BYTES_MAX: usize = 256 << 10;
const BUFFER_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct LogBuffer {
    inner: Mutex<Inner>,
    /// Rung whenever a printer that waits, or the reporter, should look again.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    pending: String,
    /// Cut off and sent, but not taken yet.
    sent: Option<String>,
    in_flight: bool,
    closed: bool,
}

impl Inner {
    fn room(&self) -> usize {
        BUFFER_BYTES_MAX.saturating_sub(self.pending.len() + self.sent.as_ref().map_or(0, String::len))
    }
}

impl LogBuffer {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Appends, and waits for room where there is none. What is printed after the job's end goes nowhere.
    pub async fn push(&self, mut text: &str, wake: impl Fn()) {
        while !text.is_empty() {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let taken = self.push_some(text);
            text = &text[taken..];
            wake();
            if !text.is_empty() {
                changed.await;
            }
        }
    }

    fn push_some(&self, text: &str) -> usize {
        let mut inner = self.inner();
        if inner.closed {
            return text.len();
        }
        let fits = text.floor_char_boundary(inner.room());
        inner.pending.push_str(&text[..fits]);
        fits
    }

    pub fn len(&self) -> usize {
        let inner = self.inner();
        inner.pending.len() + inner.sent.as_ref().map_or(0, String::len)
    }

    /// The next piece to send, the one that was not taken the last time first. [`LogBuffer::settle`] says what came of it.
    pub fn take(&self, bytes_max: usize) -> Option<String> {
        let mut inner = self.inner();
        if inner.closed || inner.in_flight {
            return None;
        }
        if inner.sent.is_none() {
            let end = inner.pending.floor_char_boundary(bytes_max.min(PIECE_BYTES_MAX));
            if end == 0 {
                return None;
            }
            inner.sent = Some(inner.pending.drain(..end).collect());
        }
        inner.in_flight = true;
        inner.sent.clone()
    }

    pub fn settle(&self, taken: bool) {
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
        inner.pending = String::new();
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Takes nothing more, waits for the piece that is on its way, and gives the rest in pieces.
    pub async fn close(&self) -> Vec<String> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut inner = self.inner();
                inner.closed = true;
                if !inner.in_flight {
                    let mut pieces: Vec<String> = inner.sent.take().into_iter().collect();
                    pieces.extend(cut(&std::mem::take(&mut inner.pending)));
                    return pieces;
                }
            }
            changed.await;
        }
    }
}

/// Pieces no larger than the server takes, whole characters each.
fn cut(mut text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES_MAX));
        pieces.push(piece.to_owned());
        text = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, time::Duration};

    #[tokio::test]
    async fn a_printer_waits_for_room_and_nothing_is_lost_or_cut_in_two() {
        let buffer = Arc::new(LogBuffer::default());
        let text = "é".repeat(BUFFER_BYTES_MAX);
        let printer = tokio::spawn({
            let (buffer, text) = (buffer.clone(), text.clone());
            async move { buffer.push(&text, || ()).await }
        });
        let mut heard = String::new();
        while heard.len() < text.len() {
            tokio::task::yield_now().await;
            assert!(buffer.len() <= BUFFER_BYTES_MAX);
            let Some(piece) = buffer.take(100_001) else { continue };
            assert!(piece.len() <= 100_001);
            heard.push_str(&piece);
            buffer.settle(true);
        }
        printer.await.unwrap();
        assert!(heard == text);
    }

    #[tokio::test]
    async fn what_was_not_taken_is_sent_again_first() {
        let buffer = LogBuffer::default();
        buffer.push("one", || ()).await;
        assert_eq!(buffer.take(9).as_deref(), Some("one"));
        buffer.push("two", || ()).await;
        assert_eq!(buffer.take(9), None, "one at a time");
        buffer.settle(false);
        assert_eq!(buffer.take(9).as_deref(), Some("one"));
        buffer.settle(false);
        assert_eq!(buffer.close().await, ["one", "two"]);
    }

    #[tokio::test]
    async fn closing_waits_for_the_piece_on_its_way() {
        let buffer = Arc::new(LogBuffer::default());
        buffer.push("one", || ()).await;
        buffer.take(9).unwrap();
        buffer.push("two", || ()).await;
        let closing = tokio::spawn({
            let buffer = buffer.clone();
            async move { buffer.close().await }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!closing.is_finished());
        buffer.settle(true);
        assert_eq!(closing.await.unwrap(), ["two"]);
        buffer.push("three", || ()).await;
        assert_eq!(buffer.len(), 0, "what comes after the end goes nowhere");
    }

    #[test]
    fn the_rest_is_cut_between_characters() {
        let text = "ü".repeat(PIECE_BYTES_MAX);
        let pieces = cut(&format!("x{text}"));
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX));
        assert_eq!(pieces.len(), 3);
        assert!(pieces.concat()[1..] == text);
    }
}
