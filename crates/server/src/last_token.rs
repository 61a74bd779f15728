//! The hash of a token, worked out once a connection.

use crate::secret::Secret;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Tokens longer than this are hashed each time. Ours have about fifty characters.
const KEPT_BYTES_MAX: usize = 256;

pub type TokenHash = [u8; 32];

pub fn hash(token: &str) -> TokenHash {
    Sha256::digest(token).into()
}

/// The token that came last over a connection, with its hash. Nearly all requests of a connection come with the same one, and on a
/// processor without instructions for SHA-256 hashing it is a thirteenth of what a request costs. In the extensions of every request
/// that came over a socket; gone with the connection.
#[derive(Clone, Default)]
pub struct LastToken(Arc<Mutex<Option<(Secret, TokenHash)>>>);

impl LastToken {
    pub fn hash(&self, token: &str) -> TokenHash {
        if token.len() > KEPT_BYTES_MAX {
            return hash(token);
        }
        let mut last = self.0.lock();
        match &*last {
            Some((same, known)) if same.is(token) => *known,
            _ => last.insert((Secret::new(token), hash(token))).1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_its_own_hash_whichever_came_before() {
        let last = LastToken::default();
        let (long, longer) = ("x".repeat(KEPT_BYTES_MAX), "x".repeat(KEPT_BYTES_MAX + 1));
        for token in ["a", "a", "b", "ab", "a", "", "", &long, &longer, &long, "a"] {
            assert_eq!(last.hash(token), hash(token), "{token}");
        }
    }

    #[test]
    fn nothing_long_is_kept() {
        let last = LastToken::default();
        last.hash(&"x".repeat(KEPT_BYTES_MAX + 1));
        assert!(last.0.lock().is_none());
        last.hash("a");
        assert!(last.0.lock().as_ref().is_some_and(|(token, _)| token.is("a")));
    }
}
