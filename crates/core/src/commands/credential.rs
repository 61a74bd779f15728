//! Whether what a command was sent with still stands for the same, asked in the transaction that writes.

use super::{Command, tokens};
use crate::{
    desk::{Desk, Stop},
    model::{
        credential::{Credential, StandsFor},
        keys::Keys,
        refusal::Refusal,
    },
};
use foldhash::{HashSet, HashSetExt};
use std::sync::Arc;

/// The credentials of a batch. Most of its commands come with few of them, and change nothing that one rests on: each is looked at once.
pub(crate) struct Credentials {
    /// Those that stand, by address: the batch holds them for as long as it is decided.
    stand: HashSet<usize>,
}

impl Credentials {
    pub(crate) fn new() -> Self {
        Self { stand: HashSet::new() }
    }

    /// Rows that are needed to check them, of each once.
    pub(crate) fn keys<'a>(all: impl Iterator<Item = &'a Arc<Credential>>, keys: &mut Keys) {
        let mut seen = HashSet::new();
        all.filter(|by| seen.insert(address(by))).for_each(|by| by.keys(keys));
    }

    pub(crate) fn check(&mut self, desk: &mut Desk, by: Option<&Arc<Credential>>) -> Result<(), Stop> {
        let Some(by) = by.filter(|by| !self.stand.contains(&address(by))) else { return Ok(()) };
        let now = now(desk, by)?.ok_or(Refusal::AccessEnded)?;
        if !by.is_covered_by(&now) {
            return Err(Refusal::AccessChanged.into());
        }
        self.stand.insert(address(by));
        Ok(())
    }

    /// What was found before this command may not hold behind it.
    pub(crate) fn decided(&mut self, command: &Command) {
        if !leaves_access(command) {
            self.stand.clear();
        }
    }
}

fn address(by: &Arc<Credential>) -> usize {
    Arc::as_ptr(by) as usize
}

/// What most batches are made of. None of these writes a token, a principal, or a record of a dialect.
fn leaves_access(command: &Command) -> bool {
    matches!(
        command,
        Command::Submit(_)
            | Command::Claim(_)
            | Command::Start(_)
            | Command::Renew(_)
            | Command::Progress(_)
            | Command::AppendLog(_)
            | Command::Complete(_)
            | Command::Fail(_)
            | Command::Release(_)
            | Command::Heartbeat(_)
            | Command::Look(_)
    )
}

/// What it stands for now. None: nothing.
fn now(desk: &mut Desk, before: &Credential) -> Result<Option<Credential>, Stop> {
    let key = before.key();
    match &before.stands_for {
        StandsFor::Rights { .. } => match tokens::valid(desk, &key.namespace, &key.key) {
            Ok((token, principal)) => Ok(Some(Credential::token(&key.namespace, &key.key, &token, &principal))),
            Err(Stop::Refused(Refusal::NotFound { .. })) => Ok(None),
            Err(stop) => Err(stop),
        },
        StandsFor::Version(_) => {
            let (found, now) = (desk.record(key, false)?, desk.now());
            let found = found.filter(|found| !found.is_expired(now));
            Ok(found.map(|found| Credential::record(key.clone(), found.version)))
        }
    }
}
