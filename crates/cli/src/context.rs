//! What every command gets to know, and what it gives back.

use crate::{output::Format, remote::Remote};
use windlass_sdk::Client;

/// What every command gets to know.
pub struct Context {
    pub remote: Remote,
    pub format: Format,
}

impl Context {
    pub fn client(&self) -> anyhow::Result<Client> {
        self.remote.client()
    }
}

/// The exit code.
pub type Done = anyhow::Result<u8>;
