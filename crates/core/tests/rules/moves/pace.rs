use crate::rules::story::{Story, leases, tags, tries};
use windlass_core::{
    Millis, State, Timestamp,
    commands::{claim::Offer, submit::NewJob},
    pace::{BURST, Pace, step},
    record::Kind,
};

fn fail_all(story: &mut Story, jobs: usize) {
    for lease in story.claims("w", jobs) {
        story.fail(lease).unwrap();
    }
}

#[test]
fn jobs_that_fail_together_come_back_at_the_rate() {
    let mut story = Story::new();
    story.tables.limits.retries_per_second = 10;
    for number in 1..=40 {
        story.submit(tries(number, 2));
    }
    fail_all(&mut story, 40);
    let ready = |story: &mut Story| (1..=40).filter(|&n| story.state(n) == State::Pending).count();
    assert_eq!(ready(&mut story), 11, "a second's worth comes back at once");
    for second in 1..=2 {
        story.wait(1_000);
        story.sweep();
        assert_eq!(ready(&mut story), 11 + 10 * second);
    }
    story.wait(1_000);
    story.sweep();
    assert_eq!(ready(&mut story), 40);
    story.wait(1_001);
    story.sweep();
    assert!(!story.tables.records.keys().any(|key| &*key.kind == Pace::KIND), "a line that passed is forgotten");
}

#[test]
fn other_kinds_do_not_wait_and_the_lost_do_not_either() {
    let mut story = Story::new();
    story.tables.limits.retries_per_second = 1;
    for number in 1..=5 {
        story.submit(tries(number, 2));
    }
    fail_all(&mut story, 5);
    story.submit(NewJob { tags: tags(&["other"]), priority: 1, ..tries(6, 2) });
    let mut claim = story.claim_command("x", 1);
    claim.offer = Offer::Tags(tags(&["other"]));
    let other = leases(&story.run(claim))[0].lease;
    story.fail(other).unwrap();
    assert_eq!(story.state(6), State::Pending);
    story.submit(tries(7, 2));
    let lost = story.claims("w", 9).len();
    assert_eq!(lost, 3, "the first two, and the new one");
    story.wait(30_000);
    story.sweep();
    assert_eq!(story.state(7), State::Pending);
}

#[test]
fn a_rate_is_kept_however_high_it_is() {
    for (rate, retries) in [(1, 20), (3, 60), (7_000, 140_000)] {
        let mut line = None;
        let mut last = Millis(0);
        for _ in 0..=retries {
            let (wait, next) = step(line, Timestamp(5), rate);
            (last, line) = (wait, Some(next));
        }
        assert!(last.0.abs_diff(20_000 - BURST.0) < 200, "{rate}: {last:?}");
    }
}
