use crate::rules::story::{Story, code, ns};
use std::sync::Arc;
use windlass_core::{
    Command, Millis, Reply, Timestamp,
    commands::{
        all::All,
        principals::{ChangePrincipal, CreatePrincipal, DeletePrincipal, DisablePrincipal, EnablePrincipal},
        tokens::{IssueToken, KeepToken, NeedAdmin, ReplaceToken, RevokeToken, UseToken},
    },
    principal::{ANONYMOUS, LINE_MAX, Role, Token},
    reply::KnownToken,
};

fn create() -> CreatePrincipal {
    CreatePrincipal { namespace: ns(), name: "ann".into(), role: Role::Editor, namespaces: vec![] }
}

fn hash(digit: &str) -> Arc<str> {
    digit.repeat(64).into()
}

fn issue(digit: &str) -> IssueToken {
    IssueToken {
        namespace: ns(),
        principal: "ann".into(),
        hash: hash(digit),
        shown: "wl_1".into(),
        expires_at: None,
        made_by: None,
        session: false,
    }
}

fn used(digit: &str) -> UseToken {
    UseToken { namespace: ns(), hash: hash(digit) }
}

#[test]
fn a_token_stands_for_its_principal_until_it_is_revoked_expires_or_the_principal_goes() {
    let mut story = Story::new();
    assert_eq!(code(&story.run(issue("a"))), "not-found");
    story.run(create()).unwrap();
    assert_eq!(code(&story.run(create())), "exists");
    let expires_at = Some(story.now + Millis(100));
    for command in [issue("a"), issue("b"), issue("c"), IssueToken { expires_at, ..issue("d") }] {
        story.run(command).unwrap();
    }
    assert_eq!(code(&story.run(issue("a"))), "exists");
    assert_eq!(code(&story.run(issue("G"))), "invalid");
    assert!(["a", "b", "c", "d"].iter().all(|digit| code(&story.run(used(digit))) == "ok"));
    story.run(RevokeToken { namespace: ns(), hash: hash("a") }).unwrap();
    assert_eq!(code(&story.run(RevokeToken { namespace: ns(), hash: hash("a") })), "not-found");
    story.wait(100);
    assert_eq!((code(&story.run(used("a"))), code(&story.run(used("d")))), ("not-found", "not-found"));
    let disable = DisablePrincipal { namespace: ns(), name: "ann".into() };
    story.run(disable).unwrap();
    assert_eq!((code(&story.run(used("b"))), code(&story.run(issue("e")))), ("not-found", "forbidden"));
    assert!(story.typed::<Token>(&hash("c")).is_none());
    let enable = |name: &str| EnablePrincipal { namespace: ns(), name: name.into() };
    assert_eq!((code(&story.run(enable("bob"))), code(&story.run(enable("ann")))), ("not-found", "ok"));
    assert_eq!(code(&story.run(used("b"))), "not-found", "its old tokens stay gone");
    assert_eq!((code(&story.run(issue("e"))), code(&story.run(used("e")))), ("ok", "ok"));
}

#[test]
fn use_is_noted_at_most_once_a_minute() {
    let mut story = Story::new();
    story.run(create()).unwrap();
    story.run(issue("a")).unwrap();
    for (wait, noted) in [(0, 1_000_000), (59_999, 1_000_000), (1, 1_060_000)] {
        story.wait(wait);
        story.run(used("a")).unwrap();
        assert_eq!(story.typed::<Token>(&hash("a")).unwrap().last_used, Some(Timestamp(noted)));
    }
}

fn made(digit: &str, by: &str) -> IssueToken {
    IssueToken { made_by: Some(hash(by)), ..issue(digit) }
}

fn revoke(digit: &str) -> RevokeToken {
    RevokeToken { namespace: ns(), hash: hash(digit) }
}

#[test]
fn what_a_token_makes_never_outlives_it_or_its_principal() {
    let mut story = Story::new();
    story.run(create()).unwrap();
    story.run(CreatePrincipal { name: "bob".into(), ..create() }).unwrap();
    let ends = Some(story.now + Millis(100));
    story.run(IssueToken { expires_at: ends, ..issue("a") }).unwrap();
    story.run(made("b", "a")).unwrap();
    let later = Some(story.now + Millis(10_000));
    story.run(IssueToken { expires_at: later, ..made("c", "b") }).unwrap();
    let sooner = Some(story.now + Millis(50));
    story.run(IssueToken { expires_at: sooner, ..made("d", "b") }).unwrap();
    let ends_at = |story: &Story, digit: &str| story.typed::<Token>(&hash(digit)).unwrap().expires_at;
    assert_eq!(["b", "c", "d"].map(|digit| ends_at(&story, digit)), [ends, ends, sooner]);
    assert_eq!(code(&story.run(used("c"))), "ok");
    story.wait(100);
    assert!(["a", "b", "c"].iter().all(|digit| code(&story.run(used(digit))) == "not-found"));
    assert_eq!(code(&story.run(made("e", "b"))), "forbidden", "an expired token makes nothing");
    // By revocation.
    for (digit, by) in [("1", None), ("2", Some("1")), ("3", Some("2")), ("4", Some("3"))] {
        story.run(IssueToken { made_by: by.map(hash), ..issue(digit) }).unwrap();
    }
    story.run(revoke("2")).unwrap();
    let answers = ["1", "2", "3", "4"].map(|digit| code(&story.run(used(digit))));
    assert_eq!(answers, ["ok", "not-found", "not-found", "not-found"]);
    // With its principal, also once that is back.
    story.run(IssueToken { principal: "bob".into(), ..made("5", "1") }).unwrap();
    story.run(DisablePrincipal { namespace: ns(), name: "ann".into() }).unwrap();
    story.run(EnablePrincipal { namespace: ns(), name: "ann".into() }).unwrap();
    assert_eq!(code(&story.run(used("5"))), "not-found");
}

#[test]
fn a_line_of_tokens_has_an_end_and_counts_for_whoever_began_it() {
    let mut story = Story::new();
    story.run(create()).unwrap();
    let admin = CreatePrincipal { name: "root".into(), role: Role::Admin, ..create() };
    story.run(admin).unwrap();
    let digits = "0123456789abcdef".chars().map(|digit| digit.to_string()).collect::<Vec<_>>();
    story.run(IssueToken { principal: "root".into(), ..issue(&digits[0]) }).unwrap();
    for pair in digits.windows(2) {
        story.run(made(&pair[1], &pair[0])).unwrap();
    }
    let roots = [1, 2, 15].map(|at: usize| story.typed::<Token>(&hash(&digits[at])).unwrap().root);
    assert_eq!(roots, [None, None, None], "all are ann's, whom an admin of everything made");
    story.run(CreatePrincipal { name: "bob".into(), ..create() }).unwrap();
    let long = |end: &str| -> Arc<str> { format!("{}{end}", "9".repeat(63)).into() };
    let bobs = IssueToken { principal: "bob".into(), hash: long("a"), ..made("0", "f") };
    story.run(bobs).unwrap();
    assert_eq!(story.typed::<Token>(&long("a")).unwrap().root.as_deref(), Some("ann"));
    assert_eq!(story.typed::<Token>(&long("a")).unwrap().made_by.len(), LINE_MAX);
    let further = IssueToken { hash: long("b"), made_by: Some(long("a")), ..issue("0") };
    let refused = story.run(further).unwrap_err();
    assert!(refused.to_string().contains("16 times at most"), "{refused}");
}

#[test]
fn a_principals_rights_change_and_a_deleted_name_starts_anew() {
    let mut story = Story::new();
    story.run(create()).unwrap();
    story.run(issue("a")).unwrap();
    story.run(made("b", "a")).unwrap();
    let change = ChangePrincipal { namespace: ns(), name: "ann".into(), role: Some(Role::Viewer), namespaces: None };
    story.run(change).unwrap();
    let Ok(Reply::Token(KnownToken { principal, .. })) = story.run(used("a")) else { panic!("it is valid") };
    assert_eq!(principal.role, Role::Viewer);
    story.run(DeletePrincipal { namespace: ns(), name: "ann".into() }).unwrap();
    story.run(CreatePrincipal { role: Role::Admin, ..create() }).unwrap();
    let answers = ["a", "b"].map(|digit| code(&story.run(used(digit))));
    assert_eq!(answers, ["not-found", "not-found"], "nothing of the old one's comes back");
    assert_eq!(code(&story.run(CreatePrincipal { name: ANONYMOUS.into(), ..create() })), "invalid");
}

#[test]
fn a_kept_token_is_valid_while_it_is_in_its_place_and_a_revoked_one_stays_so() {
    let mut story = Story::new();
    story.run(create()).unwrap();
    let keep = |digit: &str, until: Option<Timestamp>| KeepToken {
        namespace: ns(),
        principal: "ann".into(),
        hash: hash(digit),
        shown: "file".into(),
        until,
    };
    let replace = |digit: &str| ReplaceToken { namespace: ns(), hash: hash(digit) };
    story.run(keep("a", None)).unwrap();
    story.run(made("b", "a")).unwrap();
    story.run(replace("a")).unwrap();
    story.run(keep("c", Some(story.now + Millis(100)))).unwrap();
    let answers = ["a", "b", "c"].map(|digit| code(&story.run(used(digit))));
    assert_eq!(answers, ["not-found", "ok", "ok"], "what a replaced one made lives on");
    story.wait(100);
    assert_eq!(code(&story.run(used("c"))), "not-found", "nobody saw it in its place");
    story.run(keep("c", None)).unwrap();
    assert_eq!(code(&story.run(used("c"))), "ok");
    story.run(revoke("c")).unwrap();
    assert_eq!((code(&story.run(used("c"))), code(&story.run(keep("c", None)))), ("not-found", "forbidden"));
    story.run(revoke("a")).unwrap();
    assert_eq!(code(&story.run(used("b"))), "not-found", "and what a revoked one made does not");
}

#[test]
fn the_last_admin_does_not_go_unnoticed() {
    let mut story = Story::new();
    for name in ["ann", "bob"] {
        story.run(CreatePrincipal { name: name.into(), role: Role::Admin, ..create() }).unwrap();
    }
    story.run(issue("a")).unwrap();
    story.run(IssueToken { principal: "bob".into(), ..issue("b") }).unwrap();
    let need = |digit: &str| NeedAdmin { namespace: ns(), hash: hash(digit) };
    let all = |commands: Vec<Command>| All { commands };
    let disable = |name: &str| DisablePrincipal { namespace: ns(), name: name.into() };
    // Each shows the other one, and both are decided together.
    let answers = story.batch(vec![
        all(vec![disable("ann").into(), need("b").into()]).into(),
        all(vec![disable("bob").into(), need("a").into()]).into(),
    ]);
    assert_eq!((code(&answers[0]), code(&answers[1])), ("ok", "last-admin"));
    assert_eq!(code(&story.run(used("b"))), "ok", "the refused half left nothing behind");
    assert_eq!(code(&story.run(all(vec![revoke("b").into(), need("b").into()]))), "last-admin");
    let demote = ChangePrincipal { namespace: ns(), name: "bob".into(), role: Some(Role::Editor), namespaces: None };
    assert_eq!(code(&story.run(all(vec![demote.into(), need("b").into()]))), "last-admin");
    assert_eq!(code(&story.run(revoke("b"))), "ok");
}
