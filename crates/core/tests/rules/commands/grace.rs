use crate::rules::story::{Story, bound, id, ns, once};
use windlass_core::{JobKey, Millis, State, commands::grace::Grace};

#[test]
fn after_an_outage_a_lease_has_its_full_length_again_but_no_more_than_its_deadline() {
    for (deadline, then) in [(None, State::Claimed), (Some(Millis(10_000)), State::Failed)] {
        let mut story = Story::new();
        let mut job = once(1);
        job.policy.hard_deadline = deadline;
        story.submit_and_claim(job);
        story.wait(1_000_000);
        story.run(Grace { job: JobKey::new(&ns(), id(1)) }).unwrap();
        story.sweep();
        assert_eq!(story.state(1), then);
        story.wait(30_000);
        story.sweep();
        assert_eq!(story.state(1), State::Failed);
    }
}

#[test]
fn what_needs_no_grace_is_left_alone() {
    let mut story = Story::new();
    story.submit_and_claim(bound(1));
    story.submit(once(2));
    let before = story.tables.jobs.clone();
    for number in 1..=3 {
        story.run(Grace { job: JobKey::new(&ns(), id(number)) }).unwrap();
    }
    assert_eq!(story.tables.jobs, before);
}
