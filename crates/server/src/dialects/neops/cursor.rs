//! Where a page ended: the key of its last row, in a text that says nothing.

use super::{HttpError, Result};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

/// What rows are sorted by, and then the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub (String, String));

impl Cursor {
    pub fn text(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{}\n{}", self.0.0, self.0.1))
    }

    pub fn read(text: &str) -> Result<Self> {
        let plain = BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let key = plain.as_deref().and_then(|plain| plain.rsplit_once('\n'));
        let key = key.ok_or_else(|| HttpError::bad("cursor: this was not given out by this server"))?;
        Ok(Self((key.0.to_owned(), key.1.to_owned())))
    }
}
