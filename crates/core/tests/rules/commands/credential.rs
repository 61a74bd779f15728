use crate::rules::story::{Story, code, ns};
use std::sync::Arc;
use windlass_core::{
    Command, JobId, Millis, Namespace, RecordKey, Timestamp,
    commands::{
        principals::{ChangePrincipal, CreatePrincipal, DeletePrincipal, DisablePrincipal},
        records::{DeleteRecord, Expect, PutRecord},
        submit::{NewJob, Submit},
        tokens::{IssueToken, KeepToken, ReplaceToken, RevokeToken, UseToken},
    },
    credential::Credential,
    principal::{Principal, Role, Token},
};

fn hash(digit: &str) -> Arc<str> {
    digit.repeat(64).into()
}

fn issue(digit: &str, principal: &str, made_by: Option<Arc<str>>, expires_at: Option<Timestamp>) -> IssueToken {
    let (namespace, principal, hash) = (ns(), principal.into(), hash(digit));
    IssueToken { namespace, principal, hash, shown: "wl_1".into(), expires_at, made_by, session: false }
}

fn submit(id: u128) -> Submit {
    Submit { namespace: ns(), job: NewJob::new(JobId::from_u128(id)) }
}

fn create(name: &str) -> CreatePrincipal {
    CreatePrincipal { namespace: ns(), name: name.into(), role: Role::Admin, namespaces: vec![] }
}

/// Of a token as it is now.
fn credential(story: &mut Story, digit: &str) -> Arc<Credential> {
    let known = story.run(UseToken { namespace: ns(), hash: hash(digit) }).unwrap();
    let known: windlass_core::reply::KnownToken = known.try_into().unwrap();
    let (token, principal): (&Token, &Principal) = (&known.token, &known.principal);
    Arc::new(Credential::token(&ns(), &hash(digit), token, principal))
}

/// The token `b` was made with `a`, and `c` is of the same principal as `b`.
fn world() -> (Story, Arc<Credential>, Arc<Credential>) {
    let mut story = Story::new();
    story.run(create("ann")).unwrap();
    story.run(create("bob")).unwrap();
    story.run(issue("a", "ann", None, None)).unwrap();
    let ends = Some(story.now + Millis::from_secs(1_000));
    story.run(issue("b", "bob", Some(hash("a")), ends)).unwrap();
    story.run(issue("c", "bob", None, None)).unwrap();
    let (made, other) = (credential(&mut story, "b"), credential(&mut story, "c"));
    (story, made, other)
}

#[test]
fn a_command_is_refused_once_what_it_was_sent_with_stands_for_less() {
    let revoke = |digit: &str| RevokeToken { namespace: ns(), hash: hash(digit) };
    let bob: Arc<str> = "bob".into();
    let keep =
        KeepToken { namespace: ns(), principal: bob.clone(), hash: hash("c"), shown: "a file".into(), until: None };
    // What happens, and whether `b` and `c` still stand for what they did.
    let cases: Vec<(&str, Vec<Command>, bool, bool)> = vec![
        ("nothing", vec![], true, true),
        ("revoked", vec![revoke("b").into()], false, true),
        ("its maker revoked", vec![revoke("a").into()], false, true),
        ("another one revoked", vec![revoke("c").into()], true, false),
        ("disabled", vec![DisablePrincipal { namespace: ns(), name: bob.clone() }.into()], false, false),
        ("deleted", vec![DeletePrincipal { namespace: ns(), name: bob.clone() }.into()], false, false),
        (
            "its maker's principal disabled",
            vec![DisablePrincipal { namespace: ns(), name: "ann".into() }.into()],
            false,
            true,
        ),
        ("used again", vec![UseToken { namespace: ns(), hash: hash("b") }.into()], true, true),
        ("kept and replaced", vec![keep.into(), ReplaceToken { namespace: ns(), hash: hash("c") }.into()], true, false),
    ];
    for (what, commands, made_stands, other_stands) in cases {
        let (mut story, made, other) = world();
        story.wait(70_000);
        for command in commands {
            story.run(command).unwrap();
        }
        for (id, by, stands) in [(1, &made, made_stands), (2, &other, other_stands)] {
            let answer = story.run_by(by, submit(id));
            assert_eq!(answer.is_ok(), stands, "{what}: {answer:?}");
            if !stands {
                assert_eq!(code(&answer), "unauthorized", "{what}");
            }
        }
    }
}

#[test]
fn a_command_is_to_be_sent_again_once_its_principal_may_less_and_goes_on_if_it_may_more() {
    let names = |names: &[&str]| names.iter().map(|name| Namespace::new(name).unwrap()).collect::<Vec<_>>();
    let change = |role, namespaces: &[&str]| ChangePrincipal {
        namespace: ns(),
        name: "bob".into(),
        role: Some(role),
        namespaces: Some(names(namespaces)),
    };
    for (before, after, stands) in [
        ((Role::Editor, &["a", "b"][..]), (Role::Editor, &["a", "b"][..]), true),
        ((Role::Editor, &["a", "b"]), (Role::Admin, &["b", "c", "a"]), true),
        ((Role::Editor, &["a", "b"]), (Role::Editor, &[]), true),
        ((Role::Editor, &["a", "b"]), (Role::Editor, &["a"]), false),
        ((Role::Editor, &[]), (Role::Editor, &["a"]), false),
        ((Role::Editor, &["a"]), (Role::Viewer, &["a"]), false),
        ((Role::Worker, &["a"]), (Role::Admin, &["a"]), false),
        ((Role::Admin, &[]), (Role::Worker, &[]), false),
    ] {
        let (mut story, ..) = world();
        story.run(change(before.0, before.1)).unwrap();
        let by = credential(&mut story, "c");
        story.run(change(after.0, after.1)).unwrap();
        let answer = story.run_by(&by, submit(1));
        assert_eq!(answer.is_ok(), stands, "{before:?} {after:?}");
        assert!(stands || code(&answer) == "unavailable", "{before:?} {after:?}: {answer:?}");
    }
}

#[test]
fn a_command_is_refused_once_its_token_has_expired() {
    let (mut story, made, other) = world();
    story.wait(999_999);
    story.run_by(&made, submit(1)).unwrap();
    story.wait(1);
    assert_eq!(code(&story.run_by(&made, submit(2))), "unauthorized");
    story.run_by(&other, submit(3)).unwrap();
}

#[test]
fn in_one_batch_what_comes_before_the_end_is_done_and_what_comes_after_it_is_not() {
    let (mut story, made, _) = world();
    let revoke = RevokeToken { namespace: ns(), hash: hash("b") };
    let by = Some(made);
    let answers =
        story.batch_by(vec![(by.clone(), submit(1).into()), (by.clone(), revoke.into()), (by, submit(2).into())]);
    assert!(answers[0].is_ok() && answers[1].is_ok(), "a token may revoke itself: {answers:?}");
    assert_eq!(code(&answers[2]), "unauthorized");
}

#[test]
fn what_a_dialects_user_sends_is_refused_once_the_user_was_changed_deleted_or_has_expired() {
    let key = RecordKey { namespace: ns(), kind: "user".into(), key: "u".into() };
    let put = |value: &str, expires_at| PutRecord {
        key: key.clone(),
        expect: Expect::Anything,
        parent: None,
        value: value.into(),
        facets: vec![],
        expires_at,
    };
    let by = Arc::new(Credential::record(key.clone(), 1));
    let delete = Command::from(DeleteRecord { key: key.clone(), expect: Expect::Anything });
    for (end, expected) in [(put("2", None).into(), "unavailable"), (delete, "unauthorized")] {
        let mut story = Story::new();
        assert_eq!(code(&story.run_by(&by, submit(1))), "unauthorized");
        story.run(put("1", None)).unwrap();
        story.run_by(&by, submit(1)).unwrap();
        story.run(end).unwrap();
        assert_eq!(code(&story.run_by(&by, submit(2))), expected);
    }
    let mut story = Story::new();
    let ends = story.now + Millis(10);
    story.run(put("1", Some(ends))).unwrap();
    story.run_by(&by, submit(1)).unwrap();
    story.wait(10);
    assert_eq!(code(&story.run_by(&by, submit(2))), "unauthorized");
}

#[test]
fn what_a_credential_rests_on_comes_with_the_first_load() {
    let (mut story, made, _) = world();
    let loads = story.tables.loads;
    story.run_by(&made, submit(1)).unwrap();
    assert_eq!(story.tables.loads - loads, 1);
}
