//! What somebody said, in eight bytes: enough to tell its repetition from something else.
//!
//! Kept in rows, so it must be the same in every version and on every machine. Not a secret and no protection against
//! somebody who looks for two texts with one digest: a worker that does so can only fool itself.

/// Odd, so that multiplying by it loses nothing: texts that differ in one word never come to the same.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Eight bytes at a time: a result of a megabyte is looked through in less time than it takes to copy it.
pub fn digest(parts: &[&[u8]]) -> u64 {
    let mut sum = FACTOR;
    for part in parts {
        // With its length, so that no part can be taken for the beginning of the next.
        sum = mix(sum, part.len() as u64);
        let (words, rest) = part.as_chunks::<8>();
        sum = words.iter().fold(sum, |sum, word| mix(sum, u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        sum = mix(sum, u64::from_le_bytes(last));
    }
    sum ^ (sum >> 32)
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
}
