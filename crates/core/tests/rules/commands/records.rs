use crate::rules::story::{Story, code, ns};
use windlass_core::{
    Millis, RecordKey,
    commands::records::{DeleteRecord, Expect, KINDS, PutRecord},
};

fn key(kind: &str) -> RecordKey {
    RecordKey { namespace: ns(), kind: kind.into(), key: "a".into() }
}

fn put(kind: &str, expect: Expect) -> PutRecord {
    PutRecord { key: key(kind), expect, parent: None, value: "1".into(), facets: vec![], expires_at: None }
}

#[test]
fn writes_hold_to_the_version_they_expect() {
    use Expect::*;
    let mut story = Story::new();
    let table = [
        (Version(1), "version-mismatch"),
        (Nothing, "ok"),
        (Nothing, "exists"),
        (Version(1), "ok"),
        (Version(1), "version-mismatch"),
        (Anything, "ok"),
        (Version(3), "ok"),
    ];
    for (expect, expected) in table {
        assert_eq!(code(&story.run(put("lock", expect))), expected, "{expect:?}");
    }
    let delete = |expect| DeleteRecord { key: key("lock"), expect };
    for (expect, expected) in [(Version(3), "version-mismatch"), (Version(4), "ok"), (Anything, "not-found")] {
        assert_eq!(code(&story.run(delete(expect))), expected, "{expect:?}");
    }
}

#[test]
fn what_has_expired_is_gone_before_any_sweep() {
    let mut story = Story::new();
    let expires_at = Some(story.now + Millis(10));
    story.run(PutRecord { expires_at, ..put("lock", Expect::Nothing) }).unwrap();
    assert_eq!(code(&story.run(put("lock", Expect::Nothing))), "exists");
    story.wait(10);
    assert_eq!(code(&story.run(DeleteRecord { key: key("lock"), expect: Expect::Anything })), "not-found");
    assert_eq!(code(&story.run(put("lock", Expect::Version(1)))), "version-mismatch");
    assert_eq!(code(&story.run(put("lock", Expect::Nothing))), "ok");
    story.sweep();
    assert_eq!(story.tables.record(&ns(), "lock", "a").map(|record| record.version), Some(2), "and is no longer due");
}

#[test]
fn kinds_with_rules_of_their_own_cannot_be_written_around() {
    for kind in KINDS {
        assert_eq!(code(&Story::new().run(put(kind, Expect::Anything))), "forbidden", "{kind}");
        let delete = DeleteRecord { key: key(kind), expect: Expect::Anything };
        assert_eq!(code(&Story::new().run(delete)), "forbidden", "{kind}");
    }
    let long = PutRecord { parent: Some("x".repeat(300).into()), ..put("lock", Expect::Anything) };
    assert_eq!(code(&Story::new().run(long)), "too-large");
}
