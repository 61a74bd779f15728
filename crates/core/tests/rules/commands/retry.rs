use crate::rules::story::{Story, code, graph, id, keyed, ns, once};
use windlass_core::{State, commands::retry::Retry};

#[test]
fn a_finished_job_runs_again_as_another() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(keyed(1, 1));
    let retry = |from, to| Retry { namespace: ns(), job: id(from), id: id(to) };
    assert_eq!(code(&story.run(retry(1, 2))), "invalid", "not while it runs");
    story.complete(lease).unwrap();
    story.submit(keyed(3, 1));
    story.submit(once(4));
    assert_eq!(code(&story.run(retry(1, 4))), "exists");
    assert_eq!(code(&story.run(retry(7, 8))), "not-found");
    story.run(retry(1, 2)).unwrap();
    assert_eq!((story.state(1), story.state(2)), (State::Completed, State::Blocked), "its key is held by another");
    let again = story.job(2);
    assert_eq!((again.spec.retry_of, again.live.attempt), (Some(id(1)), 0));
    story.cancel(3).unwrap();
    let claimed = story.claims("w", 2);
    assert_eq!(claimed.iter().map(|lease| lease.job).collect::<Vec<_>>(), [id(4), id(2)]);
}

#[test]
fn a_step_runs_again_with_its_run_only() {
    let mut story = Story::new();
    story.run(graph(1, &["a:"], |_, _| {})).unwrap();
    let step = story.claims("w", 1).remove(0);
    let job = step.job;
    story.complete(step).unwrap();
    let refused = story.run(Retry { namespace: ns(), job, id: id(9) });
    assert_eq!(code(&refused), "invalid");
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("the step \"a\"") && text.contains("retry the run"), "{text}");
}
