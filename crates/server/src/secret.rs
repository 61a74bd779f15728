//! Secrets that cannot slip into a log or an answer: no `Debug`, no `Display`, no `Serialize`.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;
use windlass_core::principal::Role;

/// Only [`Secret::reveal`] shows it, so that `grep reveal` finds every place that does.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes the same time wherever the two differ.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

/// Takes the same time wherever two secrets differ.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

/// What tokens of a role begin with, so that people and scanners for leaked secrets recognise them.
pub fn prefix(role: Role) -> &'static str {
    match role {
        Role::Admin => "wl_admin_",
        Role::Editor => "wl_edit_",
        Role::Viewer => "wl_view_",
        Role::Worker => "wl_work_",
    }
}

/// A new token: its role's prefix and 256 random bits.
pub fn draw_token(role: Role) -> Secret {
    draw(prefix(role))
}

pub fn draw(prefix: &str) -> Secret {
    let random: [u8; 32] = rand::random();
    Secret(format!("{prefix}{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
}

/// The first characters of a token, to recognise it by; far too few to guess the rest.
pub fn shown(token: &Secret) -> String {
    let after_prefix = |rest: &str| rest.find('_').map_or(0, |at| "wl_".len() + at + 1);
    let prefix = token.0.strip_prefix("wl_").map_or(0, after_prefix);
    token.0.chars().take(prefix + 4).collect()
}
