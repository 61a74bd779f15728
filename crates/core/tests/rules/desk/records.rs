use crate::rules::story::{Story, code, ns, once, worker};
use windlass_core::{commands::workers::DrainWorker, policy::WorkerPolicy};

#[test]
fn a_damaged_record_is_refused_to_those_who_need_it_and_to_nobody_else() {
    let mut story = Story::new();
    story.register("w", WorkerPolicy::default()).unwrap();
    story.submit(once(1));
    let record = story.tables.records.values_mut().next().unwrap();
    record.value = "{".into();
    let (needs, other) = (story.claim_command("w", 1), story.claim_command("x", 1));
    let answers = story.batch(vec![needs.into(), other.into()]);
    assert_eq!((code(&answers[0]), code(&answers[1])), ("damaged", "ok"));
    assert_eq!(story.job(1).holder(), Some(&worker("x")));
}

#[test]
fn a_worker_is_read_again_once_it_was_written() {
    let mut story = Story::new();
    story.register("w", WorkerPolicy::default()).unwrap();
    for number in 1..=2 {
        story.submit(once(number));
    }
    assert_eq!(story.claims("w", 1).len(), 1, "and now its record is read");
    story.run(DrainWorker { namespace: ns(), worker: worker("w"), draining: true, principal: None }).unwrap();
    let claim = story.claim_command("w", 1);
    assert_eq!(code(&story.run(claim)), "worker-draining");
}
