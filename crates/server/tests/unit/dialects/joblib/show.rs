use windlass_core::State;
use windlass_server::dialects::joblib::show::{STATUSES, result_of, states, words};

#[test]
fn every_status_has_its_states() {
    for wanted in STATUSES {
        assert!(!states(wanted).is_empty(), "{wanted}");
    }
    assert_eq!(STATUSES.map(states).concat().len(), State::ALL.len());
}

#[test]
fn words_of_a_completion_come_back() {
    assert_eq!(words(&result_of("a \"warning\"")).as_deref(), Some("a \"warning\""));
    assert!(result_of("").is_empty());
    assert_eq!(words(&"1".into()), None);
}
