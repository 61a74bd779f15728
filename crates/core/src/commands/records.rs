//! Write and delete records of kinds the rules do not know.

use super::{Decided, claim::Asked, submit::check_size};
use crate::{
    concurrency::KeyUse,
    definition::{Definition, DefinitionHead},
    desk::Desk,
    event::What,
    keys::{Keys, RecordKey},
    name::{Facet, check_facets, check_name},
    principal::{Principal, Token},
    record::{Kind, Record},
    refusal::Refusal,
    reply::Reply,
    run::Run,
    schedule::Schedule,
    time::Timestamp,
    unique::Taken,
    worker::Worker,
};
use std::sync::Arc;

/// Kinds that have commands of their own, which nobody may go around.
const RESERVED: [&str; 10] = [
    Worker::KIND,
    Run::KIND,
    DefinitionHead::KIND,
    Definition::KIND,
    KeyUse::KIND,
    Taken::KIND,
    Asked::KIND,
    Principal::KIND,
    Token::KIND,
    Schedule::KIND,
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
    if RESERVED.contains(&&*key.kind) {
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

/// What has expired is gone, even if no sweep ran yet: a lock whose holder vanished can be taken at once.
fn expired(desk: &Desk, record: &Record) -> bool {
    record.due.is_some_and(|due| due <= desk.now())
}

impl PutRecord {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(self.key.clone(), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let limits = desk.limits();
        check_name("kind", &self.key.kind, &limits)?;
        check_name("key", &self.key.key, &limits)?;
        self.parent.as_ref().map_or(Ok(()), |parent| check_name("parent", parent, &limits))?;
        check_facets(&self.facets, &limits)?;
        check_size("value", self.value.len(), limits.record_bytes_max)?;
        let before = desk.record(&self.key, true)?;
        check(&self.key, self.expect, before.as_ref().filter(|before| !expired(desk, before)))?;
        let record = Record {
            key: self.key.clone(),
            version: before.map_or(1, |before| before.version + 1),
            parent: self.parent.clone(),
            value: self.value.clone(),
            facets: self.facets.clone(),
            due: self.expires_at,
        };
        desk.put_record(record.clone());
        let told = What::RecordPut { kind: self.key.kind.clone(), key: self.key.key.clone() };
        desk.tell(&self.key.namespace, told);
        Ok(Ok(Reply::Record(Box::new(record))))
    }
}

impl DeleteRecord {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(self.key.clone(), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let before = desk.record(&self.key, true)?.filter(|before| !expired(desk, before));
        check(&self.key, self.expect, before.as_ref())?;
        if before.is_none() {
            return Err(Refusal::not_found("record", &self.key.key).into());
        }
        desk.delete_record(&self.key)?;
        let told = What::RecordDeleted { kind: self.key.kind.clone(), key: self.key.key.clone() };
        desk.tell(&self.key.namespace, told);
        Ok(Ok(Reply::Done))
    }
}
