//! Write and delete records of kinds the rules do not know.

use super::{Decided, claim::ClaimRequest, submit::check_size};
use crate::{
    desk::{Desk, Stop},
    model::{
        audit::{AuditCount, AuditEntry},
        definition::{Definition, DefinitionHead},
        event::What,
        keys::{Access, Keys, RecordKey},
        link::{Link, TIED},
        name::{Facet, check_facets, check_name},
        principal::{Principal, Token},
        record::{Kind, Record, key_of},
        refusal::Refusal,
        run::Run,
        schedule::Schedule,
        stage::{EarlyEvent, EarlyPlan, OF_RUN, PlanPart, RunIndex, Turn, Waiting},
        time::Timestamp,
        worker::{FormerWorker, Worker},
    },
    moves::{
        concurrency::{KeptPlace, KeyUse},
        pace::Pace,
        unique::Taken,
    },
};
use std::sync::Arc;

/// Kinds that the rules keep. They have commands of their own, which nobody may go around.
pub const KINDS: [&str; 22] = [
    AuditEntry::KIND,
    AuditCount::KIND,
    Link::KIND,
    Worker::KIND,
    FormerWorker::KIND,
    Run::KIND,
    DefinitionHead::KIND,
    Definition::KIND,
    KeyUse::KIND,
    KeptPlace::KIND,
    Taken::KIND,
    Pace::KIND,
    ClaimRequest::KIND,
    Principal::KIND,
    Token::KIND,
    Schedule::KIND,
    Turn::KIND,
    Waiting::KIND,
    EarlyEvent::KIND,
    PlanPart::KIND,
    EarlyPlan::KIND,
    RunIndex::KIND,
];

/// What must be there before the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Anything,
    Nothing,
    Version(u64),
}

#[derive(Clone, Debug)]
pub struct PutRecord {
    pub key: RecordKey,
    pub expect: Expect,
    pub parent: Option<Arc<str>>,
    /// JSON text.
    pub value: Arc<str>,
    pub facets: Vec<Facet>,
    /// The sweep removes it then.
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct DeleteRecord {
    pub key: RecordKey,
    pub expect: Expect,
}

fn check(key: &RecordKey, expect: Expect, found: Option<&Record>) -> Result<(), Refusal> {
    if KINDS.contains(&&*key.kind) {
        return Err(Refusal::Forbidden { why: format!("records of kind {} have commands of their own", key.kind) });
    }
    let is = found.map_or(0, |found| found.version);
    match expect {
        Expect::Anything => Ok(()),
        Expect::Nothing if is == 0 => Ok(()),
        Expect::Nothing => Err(Refusal::Exists { what: "record", name: key.key.to_string() }),
        Expect::Version(expected) if expected == is => Ok(()),
        Expect::Version(expected) => {
            Err(Refusal::VersionMismatch { what: "record", name: key.key.to_string(), expected, is })
        }
    }
}

impl PutRecord {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(self.key.clone(), true);
        if let Some(parent) = self.parent.as_ref().filter(|_| &*self.key.kind == TIED) {
            keys.want_access(key_of::<Worker>(&self.key.namespace, parent), Access::Share);
        }
        if let Some(parent) = self.parent.as_ref().filter(|_| &*self.key.kind == OF_RUN) {
            keys.want_access(key_of::<Run>(&self.key.namespace, parent), Access::Share);
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Record>> {
        let limits = desk.limits();
        check_name("kind", &self.key.kind, &limits)?;
        check_name("key", &self.key.key, &limits)?;
        self.parent.as_ref().map_or(Ok(()), |parent| check_name("parent", parent, &limits))?;
        check_facets(&self.facets, &limits)?;
        check_size("value", self.value.len(), limits.record_bytes_max)?;
        self.check_tied(desk)?;
        let before = desk.record(&self.key, true)?;
        check(&self.key, self.expect, before.as_ref().filter(|before| !before.is_expired(desk.now())))?;
        let record = Record {
            key: self.key.clone(),
            version: before.map_or(1, |before| before.version + 1),
            parent: self.parent.clone(),
            value: self.value.clone(),
            facets: self.facets.clone(),
            due: self.expires_at,
            decoded: Default::default(),
        };
        desk.put_record(record.clone());
        let told = What::RecordPut { kind: self.key.kind.clone(), key: self.key.key.clone() };
        desk.tell(&self.key.namespace, told);
        Ok(Ok(Box::new(record)))
    }
}

impl PutRecord {
    /// What is tied to a worker or a run goes with it, so there has to be one. It is locked, so that it cannot go meanwhile.
    fn check_tied(&self, desk: &mut Desk) -> Result<(), Stop> {
        let what = match &*self.key.kind {
            TIED => "worker",
            OF_RUN => "run",
            _ => return Ok(()),
        };
        let unnamed = || Refusal::invalid("parent", format!("must name a {what}"));
        let (namespace, parent) = (&self.key.namespace, self.parent.as_ref().ok_or_else(unnamed)?);
        let is_there = match what {
            "worker" => desk.share::<Worker>(namespace, parent)?.is_some(),
            _ => desk.share::<Run>(namespace, parent)?.is_some(),
        };
        if is_there { Ok(()) } else { Err(Refusal::not_found(what, parent).into()) }
    }
}

impl DeleteRecord {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(self.key.clone(), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let before = desk.record(&self.key, true)?.filter(|before| !before.is_expired(desk.now()));
        check(&self.key, self.expect, before.as_ref())?;
        if before.is_none() {
            return Err(Refusal::not_found("record", &self.key.key).into());
        }
        desk.delete_record(&self.key)?;
        let told = What::RecordDeleted { kind: self.key.kind.clone(), key: self.key.key.clone() };
        desk.tell(&self.key.namespace, told);
        Ok(Ok(()))
    }
}
