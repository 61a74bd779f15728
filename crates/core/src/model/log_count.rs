//! How much there is of a job's log, and which part of it goes when there is too much.
//!
//! Half of what a log may have is for its beginning, the rest for the newest part. That part is a row of segments, and the
//! oldest segment goes as a whole: what there is to remove is known from the job's row alone, without a look at the pieces.

use crate::model::is_default;
use serde::{Deserialize, Serialize};

/// Segments in the newest part of a log, if its pieces are large.
const SEGMENTS: u64 = 32;
/// Pieces in a segment: no append has to remove more.
pub const SEGMENT_PIECES_MAX: u64 = 512;
/// Segments in the newest part at most, however small its pieces are.
pub const SEGMENTS_MAX: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCount {
    /// All that were ever written; the number of the last one.
    pub pieces: u64,
    /// Text that is there.
    pub bytes: u64,
    /// Text that was written and is not there.
    pub dropped_bytes: u64,
    /// What chunks take beside their text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub framing: u64,
    /// Once the part for the beginning is full.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tail: Option<Box<LogTail>>,
}

/// The newest part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogTail {
    /// The last piece of the beginning.
    pub head: u64,
    /// What the beginning takes.
    pub head_bytes: u64,
    pub segments: Vec<LogSegment>,
}

/// Neighbouring pieces that go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSegment {
    #[serde(rename = "p")]
    pub first: u64,
    #[serde(rename = "b")]
    pub bytes: u64,
    #[serde(rename = "f", default, skip_serializing_if = "is_default")]
    pub framing: u64,
}

impl LogSegment {
    fn stored(&self) -> u64 {
        self.bytes + self.framing
    }
}

/// What a reader does not see between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGap {
    /// None: it went while the reader was reading, and nobody knows how much of it was read before.
    pub bytes: Option<u64>,
}

impl LogCount {
    pub(crate) fn stored(&self) -> u64 {
        self.bytes + self.framing
    }

    /// The largest piece that can be kept.
    pub(crate) fn piece_max(&self, cap: u64) -> u64 {
        tail_max(cap, self.tail.as_ref().map_or_else(|| self.stored(), |tail| tail.head_bytes))
    }

    /// Counts a piece of `stored` bytes, `text` of them text, and gives the first and the last piece that go for it.
    pub fn append(&mut self, text: u64, stored: u64, cap: u64) -> Option<(u64, u64)> {
        let (head, head_bytes) = (self.pieces, self.stored());
        let new = LogSegment { first: head + 1, bytes: text, framing: stored - text };
        self.pieces += 1;
        self.bytes += new.bytes;
        self.framing += new.framing;
        if self.tail.is_none() && self.dropped_bytes == 0 && self.stored() <= cap / 2 {
            return None;
        }
        let tail = self.tail.get_or_insert_with(|| Box::new(LogTail { head, head_bytes, segments: Vec::new() }));
        let most = tail_max(cap, tail.head_bytes);
        tail.push(new, most);
        let gone = tail.shrink(most)?;
        self.bytes -= gone.bytes;
        self.framing -= gone.framing;
        self.dropped_bytes += gone.bytes;
        Some((gone.first, tail.segments[0].first - 1))
    }

    /// Pieces that are there.
    pub fn kept_pieces(&self) -> u64 {
        let gone =
            self.tail.as_ref().map_or(0, |tail| tail.segments.first().map_or(0, |kept| kept.first - 1 - tail.head));
        self.pieces - gone
    }

    /// What is missing for a reader who saw `after` last and sees `next` now.
    pub fn gap(&self, after: u64, next: u64) -> Option<LogGap> {
        if next <= after + 1 && !self.is_cut(after, next) {
            return None;
        }
        let seen_all_before = self.tail.as_ref().is_none_or(|tail| after <= tail.head);
        Some(LogGap { bytes: seen_all_before.then_some(self.dropped_bytes) })
    }

    /// Whether something is missing between two pieces that follow each other: the first piece behind the beginning was too large, and
    /// only its end was kept, or what came before it was never kept.
    fn is_cut(&self, after: u64, next: u64) -> bool {
        let begins = |tail: &LogTail| tail.segments.first().is_some_and(|first| first.first == next);
        self.dropped_bytes > 0 && self.tail.as_ref().is_some_and(|tail| tail.head == after && begins(tail))
    }

    /// Whether what is missing is what came last, as it was before the newest part was kept.
    pub fn ends_short(&self) -> bool {
        self.dropped_bytes > 0 && self.tail.is_none()
    }
}

/// Half of what a log may have; more if the beginning takes less.
fn tail_max(cap: u64, head_bytes: u64) -> u64 {
    (cap - cap / 2).max(cap.saturating_sub(head_bytes))
}

impl LogTail {
    fn push(&mut self, new: LogSegment, most: u64) {
        match self.segments.last_mut() {
            Some(last)
                if last.stored() < most / SEGMENTS
                    && new.first - last.first < SEGMENT_PIECES_MAX
                    && last.stored() + new.stored() <= most =>
            {
                last.bytes += new.bytes;
                last.framing += new.framing;
            }
            _ => self.segments.push(new),
        }
    }

    /// Takes away the oldest segments until the rest fits, and gives their sum. The newest one stays.
    fn shrink(&mut self, most: u64) -> Option<LogSegment> {
        let mut stored: u64 = self.segments.iter().map(LogSegment::stored).sum();
        let mut count = 0;
        while count + 1 < self.segments.len() && (stored > most || self.segments.len() - count > SEGMENTS_MAX) {
            stored -= self.segments[count].stored();
            count += 1;
        }
        let sum = |sum: LogSegment, one: LogSegment| LogSegment {
            bytes: sum.bytes + one.bytes,
            framing: sum.framing + one.framing,
            ..sum
        };
        self.segments.drain(..count).reduce(sum)
    }
}
