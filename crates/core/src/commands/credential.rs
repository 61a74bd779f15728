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
        if !stands(desk, by)? {
            return Err(Refusal::AccessEnded.into());
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

fn stands(desk: &mut Desk, credential: &Credential) -> Result<bool, Stop> {
    let key = credential.key();
    match &credential.stands_for {
        StandsFor::Rights { role, namespaces } => match tokens::valid(desk, &key.namespace, &key.key) {
            Ok((_, principal)) => Ok(principal.role == *role && *principal.namespaces == **namespaces),
            Err(Stop::Refused(Refusal::NotFound { .. })) => Ok(false),
            Err(stop) => Err(stop),
        },
        StandsFor::Version(version) => {
            let now = desk.now();
            let found = desk.record(key, false)?;
            Ok(found.is_some_and(|found| found.version == *version && !found.is_expired(now)))
        }
    }
}
