use crate::rules::story::{Story, code, ns, once};
use std::sync::Arc;
use windlass_core::{
    Command, What,
    commands::{
        all::All,
        audited::Audited,
        definitions::{DeleteDefinition, PutDefinition},
        principals::CreatePrincipal,
        submit::Submit,
        tokens::IssueToken,
    },
    principal::Role,
};

fn noted(story: &Story) -> Vec<String> {
    let note = |what: &What| match what {
        What::Audit { by, act, on } => Some(format!("{by} {act} {on}")),
        _ => None,
    };
    story.tables.events.values().filter_map(|event| note(&event.what)).collect()
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
    story.run(Audited::told(&ann, "job_made", "1", submit)).unwrap();
    assert_eq!(noted(&story).last().unwrap(), "ann job_made 1", "as its author calls it");
}
