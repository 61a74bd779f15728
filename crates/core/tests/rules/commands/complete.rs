use crate::rules::story::{Story, code, failure, ns, once, tries};
use windlass_core::{
    Command, Refusal, Reply, State,
    commands::{complete::Complete, fail::Fail, holder::Holder},
    policy::{CancelPolicy, StartPolicy},
    reply::Ended,
};

#[test]
fn of_many_reports_one_is_accepted() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    let complete = || Complete { holder: Holder::lease(&ns(), lease), result: "1".into() };
    let answers = story.batch(vec![complete().into(), failure(lease).into(), complete().into()]);
    assert!(matches!(&answers[0], Ok(Reply::Ended(Ended { replayed: false, .. }))));
    assert_eq!(answers[1], Err(Refusal::LeaseLost { state: State::Completed }));
    assert!(matches!(&answers[2], Ok(Reply::Ended(Ended { replayed: true, .. }))));
    assert_eq!(story.events(Some(1)), ["submitted", "claimed", "completed"]);
    assert_eq!(story.tables.results.len(), 1);
}

#[test]
fn a_report_that_says_something_else_is_refused_whatever_the_first_one_came_to() {
    let holder = |lease| Holder::lease(&ns(), lease);
    let complete = |lease, result: &str| Command::from(Complete { holder: holder(lease), result: result.into() });
    let fail = |lease, message: &str, retryable| {
        Command::from(Fail { holder: holder(lease), message: message.into(), retryable, result: Default::default() })
    };
    let all = |lease| {
        [
            complete(lease, "1"),
            complete(lease, "2"),
            complete(lease, ""),
            fail(lease, "1", true),
            fail(lease, "1", false),
            fail(lease, "2", true),
        ]
    };
    for first in 0..6 {
        for drains in [false, true] {
            let mut story = Story::new();
            let mut job = tries(1, 2);
            job.policy.cancel = CancelPolicy::Drain;
            let lease = story.submit_and_claim(job);
            if drains {
                story.cancel(1).unwrap();
            }
            story.run(all(lease)[first].clone()).unwrap();
            let (state, events) = (story.state(1), story.tables.events.len());
            for (at, report) in all(lease).into_iter().enumerate() {
                let answer = story.run(report);
                match at == first {
                    true => {
                        assert!(matches!(answer, Ok(Reply::Ended(Ended { replayed: true, .. }))), "{first}, {drains}")
                    }
                    false => assert_eq!(answer, Err(Refusal::LeaseLost { state }), "{first}, then {at}, {drains}"),
                }
            }
            assert_eq!(story.tables.events.len(), events, "none of them changed anything");
        }
    }
}

#[test]
fn on_a_row_of_a_version_that_kept_no_digest_the_same_kind_of_report_is_a_repetition() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    story.complete(lease).unwrap();
    story.tables.jobs.values_mut().for_each(|job| job.live.said = None);
    let another = Complete { holder: Holder::lease(&ns(), lease), result: "2".into() };
    assert!(matches!(story.run(another), Ok(Reply::Ended(Ended { replayed: true, .. }))));
    assert_eq!(code(&story.fail(lease)), "lease-lost");
}

#[test]
fn a_job_that_must_be_started_is_refused_until_it_is() {
    for (drains, expected) in [(false, "not-started"), (true, "ok")] {
        let mut story = Story::new();
        let mut job = once(1);
        job.policy.start = StartPolicy::Required;
        job.policy.cancel = CancelPolicy::Drain;
        let lease = story.submit_and_claim(job);
        if drains {
            story.cancel(1).unwrap();
        }
        assert_eq!(code(&story.complete(lease)), expected, "the report of a cancelled job is its end");
        if !drains {
            story.start(lease).unwrap();
            story.complete(lease).unwrap();
            assert_eq!(story.state(1), State::Completed);
        }
    }
}

#[test]
fn a_result_too_large_leaves_the_job_held() {
    let mut story = Story::new();
    story.tables.limits.payload_bytes_max = 3;
    let lease = story.submit_and_claim(once(1));
    let long = Complete { holder: Holder::lease(&ns(), lease), result: "1234".into() };
    assert_eq!(code(&story.run(long)), "too-large");
    story.complete(lease).unwrap();
}
