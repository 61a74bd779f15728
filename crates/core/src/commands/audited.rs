//! An operator's act: a command, and the note of who gave it, as an event and in the audit log. All of it commits together, so that
//! no act goes unnoted.

use super::{Command, Decided};
use crate::{
    desk::{Desk, Stop},
    model::{
        audit::{AuditCount, AuditEntry, ENTRIES_MAX},
        event::What,
        keys::Keys,
        name::{Namespace, check_name},
        refusal::Refusal,
        reply::Reply,
        stage::system_namespace,
    },
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Audited<C> {
    pub by: Arc<str>,
    pub command: C,
    /// What is noted where the rules see no act in the command itself: its name, and what it is about.
    pub act: Option<(&'static str, Arc<str>)>,
}

/// What was done, where, and to what. The names of acts are stable.
type Act = (Namespace, &'static str, Arc<str>);

impl<C> Audited<C> {
    pub fn new(by: &Arc<str>, command: C) -> Self {
        Self { by: by.clone(), command, act: None }
    }

    /// The author of the act says what it is.
    pub fn told(by: &Arc<str>, act: &'static str, on: impl Into<Arc<str>>, command: C) -> Self {
        Self { by: by.clone(), command, act: Some((act, on.into())) }
    }
}

impl Audited<Box<Command>> {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.command.keys(keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Reply> {
        check_name("by", &self.by, &desk.limits())?;
        let mut acts = acts(&self.command);
        if let (Some((act, on)), Some(namespace)) = (&self.act, self.command.namespace()) {
            check_name("on", on, &desk.limits())?;
            acts.push((namespace.clone(), act, on.clone()));
        }
        if acts.is_empty() {
            return Err(Refusal::invalid(
                "command",
                format!("{} cannot be audited as an operator action", self.command.name()),
            )
            .into());
        }
        let reply = self.command.decide(desk)?;
        if reply.is_ok() {
            for (namespace, act, on) in acts {
                desk.tell(&namespace, What::Audit { by: self.by.clone(), act: act.into(), on: on.clone() });
                enter(desk, namespace, &self.by, act, on)?;
            }
        }
        Ok(reply)
    }
}

fn enter(desk: &mut Desk, namespace: Namespace, by: &Arc<str>, act: &str, on: Arc<str>) -> Result<(), Stop> {
    let mut count = desk.get::<AuditCount>(&namespace, AuditCount::KEY)?.unwrap_or_default();
    let of_admins = ["principal_", "token_"].iter().any(|about| act.starts_with(about));
    if count.kept >= ENTRIES_MAX && !of_admins {
        return Ok(());
    }
    (count.written, count.kept) = (count.written + 1, count.kept + 1);
    desk.put(&namespace, AuditCount::KEY, &count)?;
    let (at, until, number) = (desk.now(), desk.now() + desk.limits().audit_kept, count.written);
    let entry = AuditEntry { namespace, at, by: by.clone(), act: act.into(), on, number, until };
    let key = entry.key();
    // Read first, as what is written has to be; nothing is there.
    desk.get::<AuditEntry>(&system_namespace(), &key)?;
    desk.put(&system_namespace(), &key, &entry)
}

/// Called by the sweep, when an entry's time is over.
pub(crate) fn forget(desk: &mut Desk, key: &str) -> Result<(), Stop> {
    let Some(entry) = desk.get::<AuditEntry>(&system_namespace(), key)? else { return Ok(()) };
    if let Some(count) = desk.get::<AuditCount>(&entry.namespace, AuditCount::KEY)? {
        let left = AuditCount { kept: count.kept.saturating_sub(1), ..count };
        desk.put(&entry.namespace, AuditCount::KEY, &left)?;
    }
    desk.remove::<AuditEntry>(&system_namespace(), key)
}

fn acts(command: &Command) -> Vec<Act> {
    let act = |namespace: &Namespace, act, on: &Arc<str>| vec![(namespace.clone(), act, on.clone())];
    match command {
        Command::PutDefinition(put) => act(&put.namespace, "definition_put", &put.name),
        Command::DeleteDefinition(delete) => act(&delete.namespace, "definition_deleted", &delete.name),
        Command::PutSchedule(put) => act(&put.namespace, "schedule_put", &put.schedule.name),
        Command::DeleteSchedule(delete) => act(&delete.namespace, "schedule_deleted", &delete.name),
        Command::CreatePrincipal(create) => act(&create.namespace, "principal_created", &create.name),
        Command::ChangePrincipal(change) => act(&change.namespace, "principal_changed", &change.name),
        Command::DeletePrincipal(delete) => act(&delete.namespace, "principal_deleted", &delete.name),
        Command::DisablePrincipal(disable) => act(&disable.namespace, "principal_disabled", &disable.name),
        Command::EnablePrincipal(enable) => act(&enable.namespace, "principal_enabled", &enable.name),
        Command::IssueToken(issue) => {
            let on = format!("{} {}", issue.principal, id_of(&issue.hash)).into();
            act(&issue.namespace, "token_created", &on)
        }
        Command::RevokeToken(revoke) => act(&revoke.namespace, "token_revoked", &id_of(&revoke.hash).into()),
        Command::DrainWorker(drain) => {
            let what = if drain.draining { "worker_drained" } else { "worker_undrained" };
            act(&drain.namespace, what, &drain.worker.as_str().into())
        }
        Command::UnregisterWorker(delete) => act(&delete.namespace, "worker_deleted", &delete.worker.as_str().into()),
        Command::All(all) => all.commands.iter().flat_map(acts).collect(),
        _ => Vec::new(),
    }
}

/// As much of a token's hash as names it; the token cannot be told from it.
fn id_of(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}
