//! Ids that protocols want of what is known here by name.

use sha2::{Digest, Sha256};
use windlass_api::Uuid;

/// Always the same of the same text.
pub fn id(text: &str) -> Uuid {
    let digest = Sha256::digest(text);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    // Marked as made by a scheme of our own (RFC 9562, version 8).
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Uuid::from_bytes(bytes)
}
