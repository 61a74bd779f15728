use windlass_core::WorkerId;
use windlass_server::dialects::joblib::sockets::ties::{Tie, Ties};

#[test]
fn only_a_user_s_own_sockets_count() {
    let (ties, worker) = (Ties::default(), WorkerId::new("w").unwrap());
    let [mine, theirs] = ["mine", "theirs"].map(|user| Tie { user: user.into(), worker: worker.clone() });
    assert!(ties.add(&mine) && !ties.add(&mine) && ties.add(&theirs));
    assert!(!ties.remove(&mine) && ties.remove(&mine), "another user's socket does not keep it");
    assert!(!ties.has(&mine) && ties.has(&theirs) && !ties.remove(&mine));
}
