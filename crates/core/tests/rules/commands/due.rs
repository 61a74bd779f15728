use crate::rules::story::{Story, code, graph, keyed, once};
use windlass_core::{Millis, State, commands::due::PUT_OFF, policy::WorkerPolicy, record::Kind, run::Run};

#[test]
fn a_final_job_is_kept_for_its_time_and_then_removed() {
    for (own, kept) in [(None, 604_800_000), (Some(Millis(50)), 50)] {
        let mut story = Story::new();
        let mut job = once(1);
        job.policy.retention = own;
        let lease = story.submit_and_claim(job);
        story.complete(lease).unwrap();
        story.wait(kept - 1);
        story.sweep();
        assert_eq!(story.state(1), State::Completed);
        story.wait(1);
        story.sweep();
        assert!(story.tables.jobs.is_empty());
    }
}

#[test]
fn results_are_kept_for_as_long_as_their_run_goes_on() {
    let mut story = Story::new();
    story.run(graph(1, &["a", "b: a"], |_, _| {})).unwrap();
    let first = story.claim("w");
    story.complete(first).unwrap();
    let week = story.tables.limits.retention.0;
    for _ in 0..3 {
        story.wait(week);
        story.sweep();
        assert_eq!(story.state(1), State::Completed);
    }
    let last = story.claim("w");
    story.complete(last).unwrap();
    story.wait(2 * week);
    story.sweep();
    assert!(story.tables.jobs.is_empty() && story.tables.records.values().all(|record| &*record.key.kind != Run::KIND));
}

#[test]
fn what_is_no_longer_due_is_left_alone() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    story.wait(20_000);
    story.renew(lease).unwrap();
    story.wait(10_000);
    let due = story.tables.due(story.now);
    assert_eq!(due.len(), 1, "the index is behind");
    story.sweep();
    assert_eq!((story.state(1), story.job(1).due), (State::Claimed, Some(story.now + Millis(20_000))));
    story.run(due[0].clone()).unwrap();
    assert_eq!(story.state(1), State::Claimed);
}

#[test]
fn what_cannot_be_done_is_put_off_and_holds_nobody_else_up() {
    let mut story = Story::new();
    story.register("v", WorkerPolicy::default()).unwrap();
    story.submit_and_claim(keyed(1, 1));
    for record in story.tables.records.values_mut().filter(|record| &*record.key.key != "w") {
        record.value = "{".into();
    }
    story.wait(90_000);
    let due = story.tables.due(story.now);
    assert_eq!(due.len(), 3, "the job, and two workers");
    let commands = due.into_iter().map(Into::into).collect();
    let answers = story.tables.run(story.now, commands);
    let damaged = answers.iter().filter(|answer| code(answer) == "damaged").count();
    assert_eq!((damaged, story.state(1)), (2, State::Claimed), "nothing is half done");
    assert!(story.tables.due(story.now).is_empty(), "or the sweep would never rest");
    assert_eq!(story.tables.due(story.now + PUT_OFF).len(), 2);
}
