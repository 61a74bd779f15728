use crate::rules::story::{Story, bound, code, id, leases, ns, registration, worker};
use std::sync::Arc;
use windlass_core::{
    Millis, Reason, RecordKey, Reply,
    commands::{
        all::All,
        cancel::Cancel,
        claim::Offer,
        definitions::{DeleteDefinition, PutDefinition},
        link::Link,
        records::{Expect, PutRecord},
        submit::{NewJob, Submit},
        workers::{Heartbeat, RegisterWorker},
    },
    definition::{Definition, DefinitionHead, version_key},
    job::DefinitionRef,
    link::{TIED, tags_of},
    policy::{AliveBy, Unregister, WorkerPolicy},
    record::Kind,
};

const MINUTE: Millis = Millis::from_secs(60);

fn policy() -> WorkerPolicy {
    WorkerPolicy {
        alive_by: AliveBy::Heartbeat,
        unregister: Unregister::Fail,
        offline_after: MINUTE,
        delete_after: Some(MINUTE),
        ..WorkerPolicy::default()
    }
}

fn link(name: &str, definition: &str, body: &str) -> Link {
    Link {
        namespace: ns(),
        definition: definition.into(),
        body: body.into(),
        print: body.to_uppercase().as_str().into(),
        retires: true,
        worker: worker(name),
        principal: None,
    }
}

fn served(number: u128, definition: &str) -> NewJob {
    let mut job = bound(number);
    job.tags = tags_of(definition);
    job.definition = Some(DefinitionRef { name: definition.into(), version: 1 });
    job
}

fn head(story: &Story, name: &str) -> DefinitionHead {
    story.typed(name).unwrap()
}

#[test]
fn a_refused_link_leaves_nothing_behind() {
    let mut story = Story::new();
    story.run(RegisterWorker { owner: Some("ann".into()), ..registration("w", policy()) }).unwrap();
    let table = [
        (link("ghost", "d", "a"), "not-found"),
        (Link { principal: Some("bob".into()), ..link("w", "d", "a") }, "forbidden"),
        (link("w", "", "a"), "invalid"),
        (link("w", "d", &"x".repeat((1 << 20) + 1)), "too-large"),
    ];
    for (command, expected) in table {
        assert_eq!(code(&story.run(command)), expected);
    }
    assert!(story.typed::<DefinitionHead>("d").is_none());
    assert_eq!(story.events(None), ["worker_registered"]);
}

#[test]
fn bodies_with_the_same_print_are_the_same() {
    let mut story = Story::new();
    story.register("w", policy()).unwrap();
    for (body, expected) in [("a", "ok"), ("A", "ok"), ("b", "exists"), ("a", "ok")] {
        assert_eq!(code(&story.run(link("w", "d", body))), expected, "{body}");
    }
    assert_eq!((head(&story, "d").links, head(&story, "d").latest), (1, 1));
}

#[test]
fn a_worker_with_many_links_and_jobs_goes_in_few_loads_and_takes_its_definitions_along() {
    let mut story = Story::new();
    story.register("w", policy()).unwrap();
    for number in 0..300 {
        story.run(link("w", &format!("d{number}"), "{}")).unwrap();
    }
    for number in 0..100 {
        story.submit(served(number + 1, &format!("d{number}")));
    }
    let mut claim = story.claim_command("w", 60);
    claim.offer = Offer::Registered;
    assert_eq!(leases(&story.run(claim)).len(), 60);
    let key = RecordKey { namespace: ns(), kind: TIED.into(), key: "files".into() };
    let parent = Some("w".into());
    let tie = PutRecord { key, expect: Expect::Anything, parent, value: "1".into(), facets: vec![], expires_at: None };
    story.run(tie).unwrap();
    let before = story.tables.loads;
    story.unregister("w", Unregister::Fail).unwrap();
    assert!(story.tables.loads - before <= 5, "{} loads", story.tables.loads - before);
    assert_eq!(story.reason(1), Some(Reason::WorkerRemoved));
    let kept = (0..300).filter(|number| head(&story, &format!("d{number}")).deleted_at.is_none()).count();
    assert_eq!(kept, 40, "those whose jobs still wait");
    assert!(story.tables.record(&ns(), TIED, "files").is_none());
    let told = story.events(None);
    let count = |name: &str| told.iter().filter(|told| **told == name).count();
    assert_eq!((count("unlinked"), count("definition_deleted"), count("record_deleted")), (300, 260, 1));
}

#[test]
fn many_links_at_once_are_decided_in_few_loads() {
    let mut story = Story::new();
    story.register("w", policy()).unwrap();
    let before = story.tables.loads;
    let commands = (0..300).map(|number| link("w", &format!("d{number}"), "{}").into()).collect();
    story.run(All { commands }).unwrap();
    assert!(story.tables.loads - before <= 3, "{} loads", story.tables.loads - before);
}

#[test]
fn what_retired_is_forgotten_after_its_time_unless_it_came_back() {
    let mut story = Story::new();
    let retention = story.tables.limits.retention.0;
    for name in ["gone", "back"] {
        story.register("w", policy()).unwrap();
        story.run(link("w", name, "{}")).unwrap();
        story.unregister("w", Unregister::Fail).unwrap();
    }
    story.register("w", policy()).unwrap();
    story.run(link("w", "back", "other")).unwrap();
    story.wait(retention);
    story.run(Heartbeat { namespace: ns(), worker: worker("w"), principal: None }).unwrap();
    story.sweep();
    assert!(story.typed::<DefinitionHead>("gone").is_none());
    assert_eq!(head(&story, "back").latest, 2);
    let versions = story.tables.records.keys().filter(|key| &*key.kind == Definition::KIND);
    let versions: Vec<_> = versions.map(|key| key.key.to_string()).collect();
    assert_eq!(versions, [version_key("back", 2)], "an older version goes with the body that replaced it");
}

#[test]
fn a_version_that_was_put_by_hand_outlives_the_link_that_replaces_it() {
    let mut story = Story::new();
    let (namespace, name) = (ns(), Arc::<str>::from("d"));
    story.run(PutDefinition { namespace: namespace.clone(), name: name.clone(), body: "a".into() }).unwrap();
    story.run(DeleteDefinition { namespace, name }).unwrap();
    story.register("w", policy()).unwrap();
    story.run(link("w", "d", "b")).unwrap();
    assert_eq!(head(&story, "d").latest, 2);
    assert!(story.typed::<Definition>(&version_key("d", 1)).is_some());
}

#[test]
fn the_last_two_jobs_end_in_one_batch_and_so_does_the_definition() {
    let mut story = Story::new();
    story.register("w", policy()).unwrap();
    story.run(link("w", "d", "{}")).unwrap();
    for number in 1..=3 {
        story.submit(served(number, "d"));
    }
    story.unregister("w", Unregister::Fail).unwrap();
    let cancel = |number| {
        let (namespace, job) = (ns(), id(number));
        Cancel { namespace, job, by: "ann".into(), mode: None, message: "".into() }.into()
    };
    story.batch(vec![cancel(1), cancel(2)]);
    assert_eq!(head(&story, "d").deleted_at, None);
    let submit = Submit { namespace: ns(), job: served(4, "d") };
    let answers = story.batch(vec![cancel(3), submit.into()]);
    assert_eq!(code(&answers[1]), "not-found", "it came after the end");
    assert!(head(&story, "d").deleted_at.is_some());
    story.register("w", policy()).unwrap();
    match story.run(link("w", "d", "{}")) {
        Ok(Reply::Linked(linked)) => assert!(linked.created),
        other => panic!("{other:?}"),
    }
}
