//! What a caller was admitted with. Each of its commands is decided only if it stands for the same by then: requests that are under
//! way when a token is revoked, or a principal or a user may less, write nothing. `commands/credential.rs` decides.

use crate::model::{
    keys::{Keys, RecordKey},
    name::Namespace,
    principal::{Principal, Role, Token},
    record::key_of,
};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Credential {
    /// All records that it rests on, so that they come with a batch's first load. The first one names it.
    keys: Vec<RecordKey>,
    pub stands_for: StandsFor,
}

/// What has to be so still.
#[derive(Clone, Debug, PartialEq)]
pub enum StandsFor {
    /// The token is valid, and its principal may no less.
    Rights { role: Role, namespaces: Arc<[Namespace]> },
    /// The record is at this version: a dialect's user, of whom the rules know nothing else.
    Version(u64),
}

impl Credential {
    pub fn token(namespace: &Namespace, hash: &str, token: &Token, principal: &Principal) -> Self {
        let tokens = [hash].into_iter().chain(token.made_by.iter().map(|hash| &**hash));
        let mut keys: Vec<RecordKey> = tokens.map(|hash| key_of::<Token>(namespace, hash)).collect();
        keys.push(key_of::<Principal>(namespace, &token.principal));
        let namespaces = principal.namespaces.as_slice().into();
        Self { keys, stands_for: StandsFor::Rights { role: principal.role, namespaces } }
    }

    pub fn record(key: RecordKey, version: u64) -> Self {
        Self { keys: vec![key], stands_for: StandsFor::Version(version) }
    }

    /// Whether its holder, as it is `now`, may all that it might when it was admitted.
    pub fn is_covered_by(&self, now: &Self) -> bool {
        match (&self.stands_for, &now.stands_for) {
            (StandsFor::Rights { role, namespaces }, StandsFor::Rights { role: now, namespaces: reach }) => {
                let within = !namespaces.is_empty() && namespaces.iter().all(|namespace| reach.contains(namespace));
                now.includes(*role) && (reach.is_empty() || within)
            }
            (before, now) => before == now,
        }
    }

    /// The record of the token or of the user.
    pub fn key(&self) -> &RecordKey {
        &self.keys[0]
    }

    pub fn keys(&self, keys: &mut Keys) {
        self.keys.iter().for_each(|key| keys.want_record(key.clone(), false));
    }
}
