//! What a piece of a log consists of: text of one stream, or chunks, each with its stream and what its worker said about it.
//!
//! Chunks are kept inside the bytes of a piece, so that a thousand lines of two streams in turns are one row. Each begins with
//! a byte of flags, then its length, its time and its sequence, as far as it has them; times and sequences as the distance from
//! the chunk before, which is short for lines that follow each other.

use crate::model::payload::Payload;

/// Chunks in one piece: whoever shows a piece has to write out each of them.
pub const CHUNKS_MAX: usize = 4_096;
/// The most that a chunk takes beside its text: flags, and three numbers of up to ten bytes.
pub const CHUNK_HEAD_MAX: usize = 31;

/// Where a program wrote it. Lines of both keep their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStream {
    #[default]
    Out,
    Err,
}

/// How the bytes of a piece are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// Text, nothing else; of the ordinary stream unless more is known.
    Text(LogStream),
    Chunks,
}

impl Default for LogForm {
    fn default() -> Self {
        LogForm::Text(LogStream::Out)
    }
}

impl LogForm {
    /// What stores keep.
    pub fn code(self) -> i16 {
        match self {
            LogForm::Text(LogStream::Out) => 0,
            LogForm::Text(LogStream::Err) => 1,
            LogForm::Chunks => 2,
        }
    }
    pub fn from_code(code: i16) -> Self {
        match code {
            1 => LogForm::Text(LogStream::Err),
            2 => LogForm::Chunks,
            _ => LogForm::default(),
        }
    }
}

/// Text, and what the worker said about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// None: not told, as where both come through one pipe.
    pub stream: Option<LogStream>,
    /// Milliseconds by the worker's clock.
    pub time: Option<u64>,
    /// The worker's own number.
    pub sequence: Option<u64>,
    /// The next chunk is the rest of this one, which was too large for one piece.
    pub continues: bool,
    pub data: &'a [u8],
}

const ERR: u8 = 1;
const TIMED: u8 = 2;
const NUMBERED: u8 = 4;
const CONTINUES: u8 = 8;
const OUT: u8 = 16;

/// Distances are counted from what came before in the same piece.
#[derive(Clone, Copy, Default)]
struct Before {
    time: u64,
    sequence: u64,
}

/// Puts chunks into one piece.
#[derive(Default)]
pub struct ChunkWriter {
    bytes: Vec<u8>,
    count: usize,
    before: Before,
}

impl ChunkWriter {
    pub fn push(&mut self, chunk: Chunk<'_>) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        self.bytes.push(
            flag(chunk.stream == Some(LogStream::Err), ERR)
                | flag(chunk.stream == Some(LogStream::Out), OUT)
                | flag(chunk.time.is_some(), TIMED)
                | flag(chunk.sequence.is_some(), NUMBERED)
                | flag(chunk.continues, CONTINUES),
        );
        put(&mut self.bytes, chunk.data.len() as u64);
        if let Some(time) = chunk.time {
            put(&mut self.bytes, zigzag(time.wrapping_sub(self.before.time)));
            self.before.time = time;
        }
        if let Some(sequence) = chunk.sequence {
            put(&mut self.bytes, zigzag(sequence.wrapping_sub(self.before.sequence)));
            self.before.sequence = sequence.wrapping_add(1);
        }
        self.bytes.extend_from_slice(chunk.data);
        self.count += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// So much text is certain to fit into a piece of so many bytes.
    fn room(&self, bytes_max: usize) -> usize {
        let room = bytes_max.saturating_sub(self.bytes.len() + CHUNK_HEAD_MAX);
        if self.count < CHUNKS_MAX { room } else { 0 }
    }

    pub fn finish(&mut self) -> Payload {
        Payload::from(std::mem::take(self).bytes)
    }
}

/// Chunks as pieces of at most so many bytes. A chunk that is too large for one goes on in the next.
pub fn pieces_of<'a>(chunks: impl IntoIterator<Item = Chunk<'a>>, bytes_max: usize) -> Vec<Payload> {
    let (mut pieces, mut writer) = (Vec::new(), ChunkWriter::default());
    let whole = bytes_max.saturating_sub(CHUNK_HEAD_MAX).max(4);
    for mut chunk in chunks {
        loop {
            if !writer.is_empty() && (chunk.data.len() > writer.room(bytes_max) || writer.count == CHUNKS_MAX) {
                pieces.push(writer.finish());
            }
            if chunk.data.len() <= whole {
                writer.push(chunk);
                break;
            }
            let (now, rest) = chunk.data.split_at(fitting(chunk.data, whole));
            writer.push(Chunk { data: now, continues: true, ..chunk });
            chunk.data = rest;
        }
    }
    if !writer.is_empty() {
        pieces.push(writer.finish());
    }
    pieces
}

/// How many bytes fit into `room` without cutting a UTF-8 character in two.
pub fn fitting(data: &[u8], room: usize) -> usize {
    if data.len() <= room {
        return data.len();
    }
    (0..=room).rev().find(|&at| at == 0 || data[at] & 0xc0 != 0x80).unwrap_or(0)
}

/// The chunks of a piece, whatever its form.
pub fn chunks(form: LogForm, data: &[u8]) -> Chunks<'_> {
    Chunks { form, rest: data, before: Before::default() }
}

/// The text of a piece, whatever its form.
pub fn text_len(form: LogForm, data: &[u8]) -> usize {
    match form {
        LogForm::Text(_) => data.len(),
        LogForm::Chunks => chunks(form, data).map(|chunk| chunk.data.len()).sum(),
    }
}

/// The newest part of a piece that is no longer than so many bytes: whole chunks, whole characters.
pub fn newest(form: LogForm, data: &Payload, bytes_max: usize) -> Payload {
    if data.len() <= bytes_max {
        return data.clone();
    }
    match form {
        LogForm::Text(_) => {
            let from = data.len() - bytes_max;
            let start = (from..data.len()).find(|&at| data.as_bytes()[at] & 0xc0 != 0x80).unwrap_or(data.len());
            Payload::from(&data.as_bytes()[start..])
        }
        LogForm::Chunks => {
            let all: Vec<Chunk<'_>> = chunks(form, data.as_bytes()).collect();
            let mut left = bytes_max;
            let fits = |chunk: &&Chunk<'_>| {
                let fits = left.checked_sub(chunk.data.len() + CHUNK_HEAD_MAX);
                left = fits.unwrap_or(0);
                fits.is_some()
            };
            let count = all.iter().rev().take_while(fits).count();
            let mut writer = ChunkWriter::default();
            all[all.len() - count..].iter().for_each(|chunk| writer.push(*chunk));
            writer.finish()
        }
    }
}

pub struct Chunks<'a> {
    form: LogForm,
    rest: &'a [u8],
    before: Before,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let stream = match self.form {
            LogForm::Text(LogStream::Err) => Some(LogStream::Err),
            LogForm::Text(LogStream::Out) => None,
            LogForm::Chunks => match self.framed() {
                Some(chunk) => return Some(chunk),
                // Not as it was written, which a checksum would have told: the rest is shown as it is.
                None => None,
            },
        };
        Some(Chunk { stream, data: std::mem::take(&mut self.rest), ..Chunk::default() })
    }
}

impl<'a> Chunks<'a> {
    fn framed(&mut self) -> Option<Chunk<'a>> {
        let (&flags, mut rest) = self.rest.split_first()?;
        let length = usize::try_from(take(&mut rest)?).ok()?;
        let mut before = self.before;
        let mut chunk = Chunk { continues: flags & CONTINUES != 0, ..Chunk::default() };
        chunk.stream = match (flags & ERR != 0, flags & OUT != 0) {
            (true, _) => Some(LogStream::Err),
            (false, true) => Some(LogStream::Out),
            (false, false) => None,
        };
        if flags & TIMED != 0 {
            before.time = before.time.wrapping_add(unzigzag(take(&mut rest)?));
            chunk.time = Some(before.time);
        }
        if flags & NUMBERED != 0 {
            let sequence = before.sequence.wrapping_add(unzigzag(take(&mut rest)?));
            before.sequence = sequence.wrapping_add(1);
            chunk.sequence = Some(sequence);
        }
        (chunk.data, self.rest) = rest.split_at_checked(length)?;
        self.before = before;
        Some(chunk)
    }
}

/// Seven bits a byte, the lowest first; the eighth says that there are more.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Small distances in both directions become small numbers.
fn zigzag(distance: u64) -> u64 {
    (distance << 1) ^ ((distance as i64 >> 63) as u64)
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
