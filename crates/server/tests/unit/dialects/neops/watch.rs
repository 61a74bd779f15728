use windlass_core::Timestamp;
use windlass_server::dialects::neops::watch::{DEPTH_MAX, Demand, HOUR, RETURNS_KEPT, Returns, demand, returns};

#[test]
fn what_waits_says_whether_workers_or_the_network_are_wanted() {
    let table = [
        ((5, 1, 0), "5 jobs wait for p/b:1.0.0, which 1 online worker serves", ""),
        ((11, 1, 0), "11 jobs", "Add workers"),
        ((20, 2, 5), "20 jobs", ""),
        ((1, 0, 0), "which 0 online", "Start neops_worker with the function block p/b:1.0.0"),
        ((1, 0, 2), "which 0 online", "2 workers serve it and are not heard: look at the network"),
        ((DEPTH_MAX, 1, 0), "at least 10000 jobs", "Add workers"),
    ];
    for ((waiting, online, quiet), text, advice) in table {
        let sign = demand(&Demand { block: "p/b:1.0.0".into(), waiting, online, quiet });
        assert!(sign.text.contains(text), "{sign:?}");
        assert_eq!(sign.advice.is_some(), !advice.is_empty(), "{sign:?}");
        assert!(sign.advice.unwrap_or_default().contains(advice));
    }
}

#[test]
fn workers_that_keep_coming_back_point_to_the_network() {
    let mut seen = Returns::default();
    for at in [0, 1, 2, 3] {
        seen.note(Timestamp(at), "w");
    }
    let sign = returns(&mut seen, Timestamp(HOUR.0)).unwrap();
    assert!(sign.text.contains("4 times") && sign.advice.unwrap().contains("network"), "{}", sign.text);
    assert_eq!(returns(&mut seen, Timestamp(HOUR.0 + 1)), None, "three in an hour are no sign");
    for at in 0..2 * RETURNS_KEPT as i64 {
        seen.note(Timestamp(at), "w");
    }
    assert_eq!(seen.since(Timestamp(0)), RETURNS_KEPT);
}
