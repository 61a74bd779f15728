use crate::rules::story::{id, ns};
use windlass_core::{
    Command, JobId, JobKey, LeaseId, RecordKey,
    commands::{
        all::All,
        audited::Audited,
        cancel::Cancel,
        complete::Complete,
        due::Due,
        holder::Holder,
        records::{DeleteRecord, Expect, PutRecord},
        renew::Renew,
        storage::Storage,
        submit::{NewJob, Submit},
        tokens::RevokeToken,
    },
};

fn holder() -> Holder {
    Holder::lease(&ns(), LeaseId::new(id(1), Default::default()))
}

fn submit() -> Command {
    Submit { namespace: ns(), job: NewJob::new(JobId::from_u128(1)) }.into()
}

fn report(bytes: usize) -> Command {
    Complete { holder: holder(), result: "x".repeat(bytes).as_str().into() }.into()
}

fn key() -> RecordKey {
    RecordKey { namespace: ns(), kind: "k".into(), key: "r".into() }
}

fn put() -> Command {
    let (expect, value) = (Expect::Anything, "{}".into());
    PutRecord { key: key(), expect, parent: None, value, facets: Vec::new(), expires_at: None }.into()
}

fn delete() -> Command {
    DeleteRecord { key: key(), expect: Expect::Anything }.into()
}

fn all(commands: Vec<Command>) -> Command {
    All { commands }.into()
}

#[test]
fn what_ends_and_removes_may_use_the_reserve_and_what_brings_more_may_not() {
    let renew = || Command::from(Renew { holder: holder(), length: None });
    let cancel = Cancel { namespace: ns(), job: id(1), by: "ann".into(), mode: None, message: "".into() };
    let revoke = RevokeToken { namespace: ns(), hash: "h".into() };
    let due = |what| Command::Due(what);
    let table = [
        (submit(), Storage::Stores),
        (put(), Storage::Stores),
        (report(1), Storage::Frees),
        (cancel.into(), Storage::Frees),
        (Audited::new(&"ann".into(), revoke).into(), Storage::Frees),
        (renew(), Storage::Neutral),
        (delete(), Storage::Neutral),
        (due(Due::Job(JobKey::new(&ns(), id(1)))), Storage::Neutral),
        (due(Due::Later(key())), Storage::Neutral),
        // A report takes along what is written beside it; a check and a delete do not.
        (all(vec![put(), report(1)]), Storage::Frees),
        (all(vec![renew(), put()]), Storage::Stores),
        (all(vec![delete(), put()]), Storage::Stores),
        (all(vec![renew(), delete()]), Storage::Neutral),
        (all(Vec::new()), Storage::Neutral),
    ];
    for (command, expected) in table {
        assert_eq!(command.storage(), expected, "{command:?}");
        assert_eq!(command.may_use_reserve(), expected <= Storage::Neutral, "{command:?}");
    }
}

#[test]
fn reports_are_measured_by_what_they_leave_behind() {
    let audited = Audited::new(&"ann".into(), Complete { holder: holder(), result: "xxxxx".into() }).into();
    let table = [(report(7), 7), (all(vec![report(1), report(2)]), 3), (audited, 5), (submit(), 0)];
    for (command, bytes) in table {
        assert_eq!(Command::reported_bytes(&command), bytes, "{command:?}");
    }
}
