use crate::rules::story::{Story, code, graph, id, ns, once};
use windlass_core::{
    Command, JobKey, Limits, Payload, RunId, State,
    commands::{
        advance::{Advance, Move},
        all::All,
        cancel_run::CancelRun,
        complete::Complete,
        holder::Holder,
        submit_run::{RunNode, SubmitRun},
    },
    record::Kind,
    stage::{self, Hold, Turn},
};

fn staged(lines: &[&str]) -> SubmitRun {
    graph(1, lines, |name, job| {
        if name.starts_with('s') {
            job.stage.plan = true;
            job.payload = Payload::default();
        }
    })
}

fn advance(job: u128, wanted: Move) -> Advance {
    gather(job, Hold::Plan, wanted)
}

fn gather(job: u128, hold: Hold, wanted: Move) -> Advance {
    Advance {
        namespace: ns(),
        run: RunId::from_u128(1),
        moves: vec![(id(job), hold, wanted)],
        undo: None,
        strict: false,
    }
}

fn turns(story: &Story) -> usize {
    story.tables.records.keys().filter(|key| &*key.kind == Turn::KIND).count()
}

fn members(first: u128, count: u128) -> Vec<RunNode> {
    let member = |at: u128| RunNode { name: format!("s[{at}]").into(), needs: Vec::new(), job: once(first + at) };
    (0..count).map(member).collect()
}

#[test]
fn a_turn_is_told_with_the_end_that_brings_it_and_taken_once() {
    let mut story = Story::new();
    story.run(staged(&["a", "s: a", "b: s"])).unwrap();
    assert_eq!(turns(&story), 0, "its parent is open");
    story.run(advance(2, Move::Go { payload: "1".into() })).unwrap();
    assert_eq!(story.state(2), State::Blocked, "out of turn nothing happens");
    let lease = story.claim("w");
    story.complete(lease).unwrap();
    assert_eq!(turns(&story), 1, "by the very transaction");
    assert!(story.tables.wakes.iter().any(|wake| wake.namespace == stage::system_namespace()), "and somebody is woken");
    story.run(advance(2, Move::Go { payload: "1".into() })).unwrap();
    story.run(advance(2, Move::Fail { why: "late".into() })).unwrap();
    assert_eq!((story.state(2), turns(&story)), (State::Pending, 0));
    assert_eq!(story.tables.payloads[&JobKey::new(&ns(), id(2))], Payload::from("1"));
}

#[test]
fn members_are_waited_for_whatever_becomes_of_them() {
    let mut story = Story::new();
    story.run(staged(&["s", "b: s"])).unwrap();
    story.run(advance(1, Move::Expand { nodes: members(10, 3), payload: "{}".into() })).unwrap();
    let leases = story.claims("w", 5);
    assert_eq!((leases.len(), turns(&story)), (3, 0));
    story.fail(leases[0]).unwrap();
    story.cancel(11).unwrap();
    assert_eq!((story.state(1), turns(&story)), (State::Blocked, 0));
    story.complete(leases[2]).unwrap();
    assert_eq!((story.state(1), turns(&story)), (State::Blocked, 1));
    story.run(advance(1, Move::Fail { why: "an answer to the first turn".into() })).unwrap();
    assert_eq!((story.state(1), turns(&story)), (State::Blocked, 1), "comes too late");
    assert_eq!(code(&story.run(gather(1, Hold::Members, Move::Go { payload: "1".into() }))), "invalid");
    story.run(gather(1, Hold::Members, Move::Complete { result: "[]".into() })).unwrap();
    assert_eq!((story.state(1), story.state(2), turns(&story)), (State::Completed, State::Pending, 0));
}

#[test]
fn what_is_decided_ahead_goes_with_the_report_that_brings_the_turn_or_not_at_all() {
    let mut story = Story::new();
    story.run(staged(&["a", "s: a", "b: s"])).unwrap();
    let ahead = || Command::from(Advance { strict: true, ..advance(2, Move::Go { payload: "1".into() }) });
    let lease = story.claim("w");
    let report = || Command::from(Complete { holder: Holder::lease(&ns(), lease), result: "1".into() });
    assert_eq!(code(&story.run(All { commands: vec![ahead(), report()] })), "not-found", "its parent is open");
    assert_eq!((story.state(1), story.state(2)), (State::Claimed, State::Blocked), "nothing of it was done");
    let woken = story.tables.wakes.len();
    story.run(All { commands: vec![report(), ahead()] }).unwrap();
    assert_eq!((story.state(2), turns(&story)), (State::Pending, 0));
    let system = stage::system_namespace();
    assert!(story.tables.wakes[woken..].iter().all(|wake| wake.namespace != system), "planners have nothing to do");
    assert_eq!(code(&story.run(All { commands: vec![report(), ahead()] })), "not-found", "the turn is over");
}

#[test]
fn what_is_too_much_is_refused_whole() {
    let mut story = Story::new();
    story.tables.limits = Limits { nodes_max: 4, payload_bytes_max: 8, ..Limits::default() };
    story.run(staged(&["s", "b: s"])).unwrap();
    let table = [
        (Move::Expand { nodes: members(10, 3), payload: "{}".into() }, "too-large"),
        (Move::Expand { nodes: Vec::new(), payload: "{}".into() }, "invalid"),
        (Move::Expand { nodes: members(1, 1), payload: "{}".into() }, "exists"),
        (Move::Go { payload: "123456789".into() }, "too-large"),
        (Move::Complete { result: "123456789".into() }, "too-large"),
    ];
    for (wanted, expected) in table {
        assert_eq!(code(&story.run(advance(1, wanted.clone()))), expected, "{wanted:?}");
        assert_eq!((story.state(1), turns(&story), story.tables.jobs.len()), (State::Blocked, 1, 2));
    }
}

#[test]
fn what_is_gone_with_its_run_needs_nobody() {
    let mut story = Story::new();
    story.run(staged(&["s"])).unwrap();
    story.run(CancelRun { namespace: ns(), run: RunId::from_u128(1), by: "ann".into() }).unwrap();
    story.run(advance(1, Move::Go { payload: "1".into() })).unwrap();
    assert_eq!((story.state(1), turns(&story)), (State::Cancelled, 0));
    story.wait(604_800_000);
    story.sweep();
    assert!(story.tables.records.is_empty() && story.tables.jobs.is_empty(), "{:?}", story.tables.records);
}
