use std::sync::Arc;
use windlass_core::{
    Decision, Job, JobChange, JobId, JobKey, Lane, Namespace, Spec,
    State::{self, *},
    counts::{self, Counted},
    job::DefinitionRef,
};

fn job(namespace: &str, definition: Option<&str>, state: State) -> Job {
    let namespace = Namespace::new(namespace).unwrap();
    let definition = definition.map(|name| DefinitionRef { name: name.into(), version: 1 });
    let spec = Spec { definition, ..Spec::default() };
    let key = JobKey::new(&namespace, JobId::from_u128(1));
    Job { key, lane: Lane(0), priority: 0, seq: 1, state, due: None, spec: Arc::new(spec), live: Default::default() }
}

#[test]
fn a_batch_is_summed_by_namespace_definition_and_state() {
    let changes = [
        JobChange { old: None, new: Some(job("a", Some("d"), Pending)) },
        JobChange { old: None, new: Some(job("a", None, Pending)) },
        JobChange { old: Some(job("a", Some("d"), Running)), new: Some(job("a", Some("d"), Completed)) },
        JobChange { old: Some(job("b", None, Completed)), new: None },
        // These come to nothing.
        JobChange { old: Some(job("b", None, Pending)), new: Some(job("b", None, Pending)) },
        JobChange { old: Some(job("b", Some("d"), Pending)), new: Some(job("b", Some("d"), Claimed)) },
        JobChange { old: Some(job("b", Some("d"), Claimed)), new: Some(job("b", Some("d"), Pending)) },
    ];
    let decision = Decision { jobs: changes.into(), ..Decision::default() };
    let told = counts::changes(&decision);
    let told: Vec<_> = told.iter().map(|one| (one.namespace.as_str(), one.definition, one.counted, one.by)).collect();
    let wanted = [
        ("a", "", Pending, 2),
        ("a", "", Running, -1),
        ("a", "", Completed, 1),
        ("a", "d", Pending, 1),
        ("a", "d", Running, -1),
        ("a", "d", Completed, 1),
        ("b", "", Completed, -1),
    ];
    assert_eq!(
        told,
        wanted.map(|(namespace, definition, state, by)| (namespace, definition, Counted::Jobs(state), by))
    );
}
