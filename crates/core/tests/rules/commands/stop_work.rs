use crate::rules::story::{Story, code, graph, ns};
use windlass_core::{
    Payload, RunId, State,
    commands::{stop_work::StopWork, submit::NewJob},
    policy::ParentPolicy,
    run::{Run, RunState},
};

#[test]
fn work_ends_and_steps_have_their_turn() {
    let mut story = Story::new();
    let shape = |name: &str, job: &mut NewJob| {
        if name == "s" {
            (job.stage.plan, job.payload) = (true, Payload::default());
            job.policy.parents = ParentPolicy::RunAnyway;
        }
    };
    story.run(graph(1, &["a", "b", "s: a b"], shape)).unwrap();
    story.claim("w");
    let stop = |run| StopWork { namespace: ns(), run: RunId::from_u128(run), by: "ann".into() };
    assert_eq!(code(&story.run(stop(7))), "not-found");
    story.run(stop(1)).unwrap();
    assert_eq!(story.states(3), ["cancelled", "cancelled", "blocked"]);
    assert_eq!(story.job(3).live.waiting, 1, "it is its turn");
    let run: Run = story.typed(&RunId::from_u128(1).to_string()).unwrap();
    assert_eq!((run.state(), run.open), (RunState::Running, 1));
    story.run(stop(1)).unwrap();
    assert_eq!(story.state(3), State::Blocked, "nothing is left to end");
}
