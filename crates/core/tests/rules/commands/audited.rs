use crate::rules::story::{Story, code, ns, once};
use std::sync::Arc;
use windlass_core::{
    Command, Record, What,
    audit::{AuditCount, AuditEntry, ENTRIES_MAX},
    commands::{
        all::All,
        audited::Audited,
        definitions::{DeleteDefinition, PutDefinition},
        principals::CreatePrincipal,
        submit::Submit,
        tokens::IssueToken,
    },
    principal::Role,
    record::Kind,
};

fn noted(story: &Story) -> Vec<String> {
    let note = |what: &What| match what {
        What::Audit { by, act, on } => Some(format!("{by} {act} {on}")),
        _ => None,
    };
    story.tables.events.values().filter_map(|event| note(&event.what)).collect()
}

fn entered(story: &Story) -> Vec<String> {
    let of = |record: &&Record| &*record.key.kind == AuditEntry::KIND;
    let entries = story.tables.records.values().filter(of).map(|record| serde_json::from_str(&record.value).unwrap());
    // The tables keep keys in order, so newest first.
    let mut told: Vec<String> = entries.map(|AuditEntry { by, act, on, .. }| format!("{by} {act} {on}")).collect();
    told.reverse();
    told
}

#[test]
fn entries_end_with_their_time_and_are_counted() {
    let mut story = Story::new();
    let ann: Arc<str> = "ann".into();
    let put = |name: &str| PutDefinition { namespace: ns(), name: name.into(), body: "{}".into() };
    story.run(Audited::new(&ann, put("a"))).unwrap();
    story.wait(1_000);
    story.run(Audited::new(&ann, put("b"))).unwrap();
    let count = |story: &Story| story.typed::<AuditCount>(AuditCount::KEY).unwrap();
    assert_eq!((count(&story).written, count(&story).kept), (2, 2));
    story.wait(365 * 86_400_000 - 1_000);
    story.sweep();
    assert_eq!((entered(&story), count(&story).kept), (vec!["ann definition_put b".to_owned()], 1));
}

#[test]
fn a_namespace_with_too_many_entries_adds_only_what_is_about_access() {
    let mut story = Story::new();
    let ann: Arc<str> = "ann".into();
    let put = |name: &str| PutDefinition { namespace: ns(), name: name.into(), body: "{}".into() };
    story.run(Audited::new(&ann, put("a"))).unwrap();
    for record in story.tables.records.values_mut().filter(|record| &*record.key.kind == AuditCount::KIND) {
        record.value = format!("{{\"written\":{ENTRIES_MAX},\"kept\":{ENTRIES_MAX}}}").into();
    }
    let create = CreatePrincipal { namespace: ns(), name: "bob".into(), role: Role::Worker, namespaces: Vec::new() };
    story.run(Audited::new(&ann, put("b"))).unwrap();
    story.run(Audited::new(&ann, create)).unwrap();
    assert_eq!(entered(&story), ["ann definition_put a", "ann principal_created bob"]);
    assert_eq!(noted(&story).len(), 3, "the events tell all of it");
}

#[test]
fn an_act_is_noted_with_its_author_and_a_refused_one_is_not() {
    let mut story = Story::new();
    let ann: Arc<str> = "ann".into();
    let put = PutDefinition { namespace: ns(), name: "d".into(), body: "{}".into() };
    let delete = DeleteDefinition { namespace: ns(), name: "ghost".into() };
    let create = CreatePrincipal { namespace: ns(), name: "bob".into(), role: Role::Worker, namespaces: Vec::new() };
    let (principal, shown) = (Arc::from("bob"), Arc::from("wl_work_1"));
    let hash = "a".repeat(64).into();
    let issue = IssueToken { namespace: ns(), principal, hash, shown, expires_at: None, made_by: None, session: false };
    let both = All { commands: vec![create.into(), issue.into()] };
    let submit = Submit { namespace: ns(), job: once(1) };
    let commands: Vec<Command> = vec![put.into(), delete.into(), both.into(), submit.clone().into()];
    let answers = commands.into_iter().map(|command| story.run(Audited::new(&ann, command)));
    assert_eq!(answers.collect::<Vec<_>>().iter().map(code).collect::<Vec<_>>(), ["ok", "not-found", "ok", "invalid"]);
    let token = format!("ann token_created bob {}", "a".repeat(16));
    assert_eq!(noted(&story), ["ann definition_put d", "ann principal_created bob", &token]);
    assert_eq!(entered(&story), noted(&story), "the log and the events say the same");
    story.run(Audited::told(&ann, "job_made", "1", submit)).unwrap();
    assert_eq!(noted(&story).last().unwrap(), "ann job_made 1", "as its author calls it");
}
