//! Principals and their tokens: the first domain built on records alone.
//!
//! Only the SHA-256 of a token is ever seen in here; the engine's caller draws the token, shows it once and hashes it.

use crate::model::{
    is_default,
    name::{Facet, Namespace},
    record::Kind,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What callers without a token are called. No principal may have this name, or it would have a share in what they hold.
pub const ANONYMOUS: &str = "anonymous";

/// Sessions are found by this and their principal.
pub const SESSION: &str = "session";

/// How long a line of tokens that were made with one another may get.
pub const LINE_MAX: usize = 16;

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub name: Arc<str>,
    pub role: Role,
    /// Where its rights end. Empty: everywhere.
    #[serde(default, skip_serializing_if = "is_default")]
    pub namespaces: Vec<Namespace>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "is_default")]
    pub disabled: bool,
}

/// For people and tools each role includes the ones before it; `Worker` is a surface of its own and passes for none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    Editor,
    Admin,
    Worker,
}

impl Role {
    pub fn includes(self, needed: Role) -> bool {
        match (self, needed) {
            (Role::Worker, Role::Worker) => true,
            (Role::Worker, _) | (_, Role::Worker) => false,
            (have, needed) => have as u8 >= needed as u8,
        }
    }
}

impl Principal {
    /// An admin of everything, as opposed to one of some namespaces.
    pub fn rules_all(&self) -> bool {
        self.role == Role::Admin && self.namespaces.is_empty() && !self.disabled
    }
}

impl Kind for Principal {
    const KIND: &'static str = "principal";
}

/// Kept under the hash of the token, so that a lookup is by hash and nothing secret is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub principal: Arc<str>,
    /// The first characters, for people to recognise it by.
    pub shown: Arc<str>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "is_default")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_used: Option<Timestamp>,
    /// Hashes of the tokens it was made with, the first of the line first. It ends with any of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub made_by: Vec<Arc<str>>,
    /// The principal to whose share its use counts. Absent: its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub root: Option<Arc<str>>,
    /// Whether others were made with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_made: bool,
    /// Whether it is the session of a page.
    #[serde(default, skip_serializing_if = "is_default")]
    pub session: bool,
    /// Present for a token that an operator keeps in a file or a variable.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kept: Option<KeptOutside>,
}

/// How it stands with a token that an operator keeps outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptOutside {
    #[serde(default, skip_serializing_if = "is_default")]
    pub standing: Standing,
    /// Valid no longer than this unless a server finds it in its place again. Absent: until a server finds otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    #[default]
    Valid,
    /// Its place holds another one now, which takes over what was made with it.
    Replaced,
    /// Ended by somebody, with all that was made with it; its place cannot bring it back.
    Revoked,
}

impl Kind for Token {
    const KIND: &'static str = "token";
    fn due(&self) -> Option<Timestamp> {
        self.expires_at
    }
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.principal.clone())
    }
    fn facets(&self) -> Vec<Facet> {
        self.session.then(|| Facet::new(SESSION, &self.principal)).into_iter().collect()
    }
}

impl Token {
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| at > now)
    }

    /// Whether it may be called with, as far as can be told without those it was made with.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        let found = |kept: KeptOutside| kept.standing == Standing::Valid && kept.until.is_none_or(|until| until > now);
        self.is_live(now) && self.kept.is_none_or(found)
    }

    pub fn is_revoked(&self) -> bool {
        self.kept.is_some_and(|kept| kept.standing == Standing::Revoked)
    }

    /// Whether what was made with it may live on.
    pub fn upholds(&self, now: Timestamp) -> bool {
        self.is_live(now) && !self.is_revoked()
    }
}
