use windlass_core::{Spec, State, Timestamp, job::Live};

#[test]
fn state_codes_are_stable() {
    for (code, state) in State::ALL.into_iter().enumerate() {
        assert_eq!(state.code() as usize, code);
        assert_eq!(State::from_code(code as i16), Some(state));
    }
    assert_eq!(State::from_code(9), None);
    assert_eq!(State::from_code(-1), None);
}

#[test]
fn a_plain_job_is_stored_short() {
    let spec = Spec { created_at: Timestamp(5), ..Spec::default() };
    assert_eq!(serde_json::to_string(&spec).unwrap(), r#"{"created_at":5}"#);
    assert_eq!(serde_json::to_string(&Live::default()).unwrap(), "{}");
    let old: Spec = serde_json::from_str(r#"{"created_at":5,"facets":[]}"#).unwrap();
    assert_eq!((old.name.clone(), old.index().count()), (None, 0), "jobs of before there were names have none");
}
