use windlass_core::{Refusal, State};
use windlass_server::problem::Problem;

#[test]
fn every_refusal_has_a_kind_of_its_own() {
    let refusals = [
        Refusal::not_found("job", 1),
        Refusal::LeaseLost { state: State::Pending },
        Refusal::NotHeld { state: State::Pending },
        Refusal::NotHolder,
        Refusal::Final { state: State::Failed },
        Refusal::NotStarted,
        Refusal::AlreadyStarted,
        Refusal::invalid("f", "no".into()),
        Refusal::too_large("f", 2, 1),
        Refusal::TooMany { what: "workers", namespace: "n".into(), max: 1, setting: "s" },
        Refusal::KeyReused { key: "k".into() },
        Refusal::Exists { what: "job", name: "1".into() },
        Refusal::VersionMismatch { what: "record", name: "r".into(), expected: 1, is: 2 },
        Refusal::WorkerNotOnline { worker: "w".into(), liveness: "offline" },
        Refusal::WorkerDraining { worker: "w".into() },
        Refusal::Cycle { path: vec![] },
        Refusal::LastAdmin,
        Refusal::AccessEnded,
        Refusal::AccessChanged,
        Refusal::Forbidden { why: "no".into() },
        Refusal::Damaged { what: "record", name: "r".into(), why: "bits".into() },
    ];
    for refusal in refusals {
        let code = refusal.code();
        assert_eq!(Problem::from(refusal).0.code(), code);
    }
}
