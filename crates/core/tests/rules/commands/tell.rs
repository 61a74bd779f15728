use crate::rules::story::{Story, code, ns};
use windlass_core::{
    RecordKey,
    commands::{
        all::All,
        records::{DeleteRecord, Expect},
        tell::Tell,
    },
};

#[test]
fn it_is_told_only_if_what_it_is_about_was_done() {
    let mut story = Story::new();
    let tell = |topic: &str, size| Tell { namespace: ns(), topic: topic.into(), data: "x".repeat(size).into() };
    assert_eq!(code(&story.run(tell("item.created", 2))), "ok");
    let key = RecordKey { namespace: ns(), kind: "item".into(), key: "ghost".into() };
    let delete = DeleteRecord { key, expect: Expect::Anything };
    let both = All { commands: vec![tell("item.deleted", 2).into(), delete.into()] };
    assert_eq!(code(&story.run(both)), "not-found");
    assert_eq!(story.events(None), ["told"]);
    assert_eq!(code(&story.run(tell("", 2))), "invalid");
    assert_eq!(code(&story.run(tell("item.created", 70_000))), "too-large");
}
