//! Principals and their tokens: the first domain built on records alone.
//!
//! Only the SHA-256 of a token is ever seen in here; the engine's caller draws the token, shows it once and hashes it.

use crate::{is_default, name::Namespace, record::Kind, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
}

impl Kind for Token {
    const KIND: &'static str = "token";
    fn due(&self) -> Option<Timestamp> {
        self.expires_at
    }
    fn parent(&self) -> Option<Arc<str>> {
        Some(self.principal.clone())
    }
}

impl Token {
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_include_the_lower_ones_and_workers_stand_apart() {
        use Role::*;
        let table = [
            (Viewer, Viewer, true),
            (Viewer, Editor, false),
            (Editor, Viewer, true),
            (Editor, Admin, false),
            (Admin, Viewer, true),
            (Admin, Worker, false),
            (Worker, Viewer, false),
            (Worker, Worker, true),
        ];
        for (have, needed, passes) in table {
            assert_eq!(have.includes(needed), passes, "{have:?} for {needed:?}");
        }
    }
}
