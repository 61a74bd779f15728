//! The hash of a token, worked out once a connection.

use crate::secret::Secret;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Tokens longer than this are hashed each time. Ours have about fifty characters.
pub const KEPT_BYTES_MAX: usize = 256;

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

    /// The token whose hash is at hand.
    pub fn kept(&self) -> Option<Secret> {
        self.0.lock().as_ref().map(|(token, _)| token.clone())
    }
}
