use crate::rules::story::{Story, code, id, ns, once};
use windlass_core::{
    State,
    commands::{
        ask::{Ask, Both},
        complete::Complete,
        holder::Holder,
        look::Look,
        submit::Submit,
    },
};

fn look(payload: bool) -> Look {
    Look { namespace: ns(), job: id(1), payload }
}

#[test]
fn what_was_just_submitted_or_reported_is_seen_as_it_is_then() {
    let mut story = Story::new();
    let mut job = once(1);
    job.payload = "1".into();
    let submit = Both(Submit { namespace: ns(), job }, look(false));
    let (submitted, seen) = Both::<Submit, Look>::read(story.run(submit).unwrap()).unwrap();
    assert_eq!((submitted.job, seen.job.state), (id(1), State::Pending));
    assert!(seen.payload.is_empty() && seen.worker.is_none());

    let lease = story.claim("x");
    let complete = Complete { holder: Holder::lease(&ns(), lease), result: "2".into() };
    let (ended, seen) = Both::<Complete, Look>::read(story.run(Both(complete, look(true))).unwrap()).unwrap();
    assert_eq!((seen.job.state, &seen.job.live), (State::Completed, &ended.job.live));
    assert_eq!(seen.payload, "1".into());
    assert!(seen.worker.is_some());
}

#[test]
fn nobody_sees_a_job_that_is_not_there() {
    assert_eq!(code(&Story::new().run(look(true))), "not-found");
}
