//! Opaque bytes that travel with a job. Never parsed, never copied: clones share the same memory.

use std::{fmt, sync::Arc};

/// A job's input or result, as the caller wrote it (normally JSON text).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Payload(Arc<[u8]>);

impl Payload {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

/// A text in pieces of at most so many bytes, such as fit a record, each whole characters.
pub fn pieces(mut text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(bytes));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Payloads may hold secrets and may be large, so only the size is printed.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}
