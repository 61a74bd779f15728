use crate::rules::story::{Story, after, code, graph, id, keyed, ns, once};
use windlass_core::{Refusal, State, commands::retry::Retry};

#[test]
fn a_finished_job_runs_again_as_another() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(keyed(1, 1));
    let retry = |from, to| Retry { namespace: ns(), job: id(from), id: id(to), again: false };
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
    let refused = story.run(Retry { namespace: ns(), job, id: id(9), again: false });
    assert_eq!(code(&refused), "invalid");
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("the step \"a\"") && text.contains("retry the run"), "{text}");
}

#[test]
fn a_second_retry_has_to_be_asked_for_and_the_job_names_its_last_one() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    story.complete(lease).unwrap();
    let due = story.job(1).due;
    let retry = |to, again| Retry { namespace: ns(), job: id(1), id: id(to), again };
    // Two that race: in one batch, in either order, one is made.
    let answers = story.batch(vec![retry(2, false).into(), retry(3, false).into()]);
    assert!(answers[0].is_ok());
    let Err(Refusal::Invalid { field: "again", why }) = &answers[1] else { panic!("{answers:?}") };
    assert!(why.contains(&id(1).to_string()) && why.contains(&id(2).to_string()), "{why}");
    assert_eq!(story.tables.jobs.len(), 2);
    let old = story.job(1);
    assert_eq!((old.live.retried_by, old.state, old.due), (Some(id(2)), State::Completed, due));
    story.run(retry(4, true)).unwrap();
    assert_eq!(story.job(1).live.retried_by, Some(id(4)));
    assert_eq!(code(&story.run(retry(5, false))), "invalid");
    // What waits for the job still waits for the job.
    story.submit(after(6, &[1]));
    assert_eq!(story.state(6), State::Pending);
}
