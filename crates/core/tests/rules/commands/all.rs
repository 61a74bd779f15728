use crate::rules::story::{Story, code, ns, once, tries};
use windlass_core::{
    Command, State,
    commands::{all::All, complete::Complete, holder::Holder, submit::Submit},
};

#[test]
fn the_first_refusal_takes_everything_back_and_touches_no_neighbour() {
    let mut story = Story::new();
    let late = story.submit_and_claim(tries(1, 2));
    story.wait(30_000);
    let submit = |number| Command::from(Submit { namespace: ns(), job: once(number) });
    let complete = || Command::from(Complete { holder: Holder::lease(&ns(), late), result: "1".into() });
    let events = story.tables.events.len();
    let answers = story.batch(vec![
        All { commands: vec![submit(2), complete(), submit(3)] }.into(),
        All { commands: vec![submit(2), submit(2)] }.into(),
        submit(4),
        All { commands: vec![submit(2), submit(3)] }.into(),
    ]);
    assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), ["lease-lost", "exists", "ok", "ok"]);
    assert_eq!(story.state(1), State::Claimed, "what the refusal alone would have written is taken back too");
    assert_eq!((story.tables.jobs.len(), story.tables.events.len()), (4, events + 3));
}

#[test]
fn it_holds_no_claims_and_none_of_itself() {
    let mut story = Story::new();
    let claim = story.claim_command("w", 1);
    for command in [Command::from(claim), All { commands: vec![] }.into()] {
        assert_eq!(code(&story.run(All { commands: vec![command] })), "invalid");
    }
}
