//! What deciding one turn may cost: work, room, and the bytes of what it sends off.
//!
//! A charge comes before what it pays for, so that nothing is begun that could not be finished. Room is counted as memory is
//! taken, not as JSON is written: a list of small numbers takes ten times the room of its text.

use serde_json::Value;
use std::cell::Cell;

/// A value that holds nothing, in bytes.
pub(crate) const NODE: u64 = 32;
/// A field of a map, beside its name and its value.
pub(crate) const FIELD: u64 = 64;
/// Bytes copied or compared that count as one step.
const BYTES_PER_STEP: u64 = 64;

/// The limits of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps; one takes about as long as a comparison.
    pub work: u64,
    /// Bytes of memory for what is being worked out.
    pub room: u64,
    /// Bytes of payloads in all that a turn sends off.
    pub sent: u64,
    /// Bytes of one payload.
    pub payload: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { work: 10_000_000, room: 64 << 20, sent: 32 << 20, payload: 1 << 20 }
    }
}

impl Budget {
    /// As much as a turn may cost that is decided on the spot: less than a millisecond.
    pub fn tiny(self) -> Self {
        Self { work: self.work.min(3_000), room: self.room.min(128 << 10), sent: self.sent.min(128 << 10), ..self }
    }

    /// As much as a turn may cost that nobody has to be warned of.
    pub fn small(self) -> Self {
        Self { work: self.work.min(200_000), room: self.room.min(4 << 20), sent: self.sent.min(2 << 20), ..self }
    }
}

#[derive(Debug, Default)]
pub struct Meter {
    budget: Budget,
    work: Cell<u64>,
    room: Cell<u64>,
    sent: Cell<u64>,
    over: Cell<bool>,
}

impl Meter {
    pub fn new(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Whether something was refused because of the budget, and not because it is wrong.
    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Steps so far.
    pub fn spent(&self) -> u64 {
        self.work.get()
    }

    fn over<T>(&self, why: String) -> Result<T, String> {
        self.over.set(true);
        Err(why)
    }

    pub(crate) fn work(&self, steps: u64) -> Result<(), String> {
        let spent = self.work.get().saturating_add(steps);
        self.work.set(spent);
        if spent > self.budget.work {
            return self.over(format!(
                "it would take more than {} steps of work, the most that a turn may take",
                self.budget.work
            ));
        }
        Ok(())
    }

    /// Bytes looked at or copied.
    pub(crate) fn touch(&self, bytes: u64) -> Result<(), String> {
        self.work(1 + bytes / BYTES_PER_STEP)
    }

    /// Whether there is room for so much more.
    pub(crate) fn fits(&self, bytes: u64) -> Result<(), String> {
        if self.room.get().saturating_add(bytes) > self.budget.room {
            let max = self.budget.room;
            return self.over(format!("it would take more than {max} bytes of memory, the most that a turn may take"));
        }
        Ok(())
    }

    pub(crate) fn keep(&self, bytes: u64) -> Result<(), String> {
        self.fits(bytes)?;
        self.room.set(self.room.get() + bytes);
        Ok(())
    }

    /// Room taken, to go back to when what was made since is gone.
    pub(crate) fn mark(&self) -> u64 {
        self.room.get()
    }

    pub(crate) fn back_to(&self, mark: u64) {
        self.room.set(mark.min(self.room.get()));
    }

    pub(crate) fn send(&self, bytes: u64) -> Result<(), String> {
        let sent = self.sent.get().saturating_add(bytes);
        self.sent.set(sent);
        if sent > self.budget.sent {
            let max = self.budget.sent;
            return self.over(format!(
                "its jobs would have more than {max} bytes together, the most that a turn may submit: \
                 give each less, or only the name of an artifact"
            ));
        }
        Ok(())
    }

    /// The memory a value takes, each part of it being a step.
    pub fn weigh(&self, value: &Value) -> Result<u64, String> {
        self.work(1)?;
        Ok(match value {
            Value::Array(items) => items.iter().try_fold(NODE, |sum, item| Ok::<_, String>(sum + self.weigh(item)?))?,
            Value::Object(fields) => fields.iter().try_fold(NODE, |sum, (name, value)| {
                Ok::<_, String>(sum + FIELD + name.len() as u64 + self.weigh(value)?)
            })?,
            Value::String(text) => NODE + text.len() as u64,
            _ => NODE,
        })
    }

    /// Bytes of a value as JSON, counted without writing it.
    pub(crate) fn json_bytes<T: serde::Serialize + ?Sized>(&self, value: &T) -> Result<u64, String> {
        let left = self.budget.room.saturating_sub(self.room.get());
        let mut count = Count { bytes: 0, left };
        if serde_json::to_writer(&mut count, value).is_err() {
            self.fits(left + 1)?;
        }
        self.touch(count.bytes)?;
        Ok(count.bytes)
    }

    /// A value as text, which is given up as soon as it is longer than a payload may be.
    pub fn text(&self, value: &Value) -> Result<String, String> {
        let max = self.budget.payload;
        let mut short = Short { text: Vec::new(), left: max as usize };
        if serde_json::to_writer(&mut short, value).is_err() {
            return Err(format!("it is larger than {max} bytes, which is what a payload or a result may have"));
        }
        self.touch(short.text.len() as u64)?;
        String::from_utf8(short.text).map_err(|error| error.to_string())
    }
}

/// Takes so many bytes and no more.
struct Short {
    text: Vec<u8>,
    left: usize,
}

impl std::io::Write for Short {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.left {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.left -= bytes.len();
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Counts so many bytes and no more.
struct Count {
    bytes: u64,
    left: u64,
}

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.left { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// At most the memory that JSON text takes when it is read, known by a look at its bytes.
pub fn weight_of_text(json: &[u8]) -> u64 {
    let parts = json.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':')).count() as u64;
    json.len() as u64 + (parts + 1) * FIELD
}
