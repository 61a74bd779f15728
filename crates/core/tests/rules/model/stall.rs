use windlass_core::{
    Lease, Millis, Timestamp, WorkerId,
    stall::{Stall, Stalls},
};

const NOW: Timestamp = Timestamp(100_000);

fn lease(until: Option<i64>) -> Lease {
    Lease {
        secret: Default::default(),
        worker: WorkerId::new("w").unwrap(),
        principal: None,
        length: Millis(5_000),
        until: until.map(Timestamp),
        deadline: Some(Timestamp(1)),
    }
}

fn stalls(list: &[(i64, i64)]) -> Stalls {
    let mut stalls = Stalls::default();
    for &(began, ended) in list {
        stalls.add(Stall { began: Millis(NOW.0 - began), ended: Millis(NOW.0 - ended) });
    }
    stalls
}

#[test]
fn a_lease_that_was_valid_when_a_stall_began_has_its_full_length_after_it() {
    type Case<'a> = (&'a [(i64, i64)], Option<i64>, Option<i64>);
    let cases: [Case; 9] = [
        (&[], Some(90_000), None),
        (&[(60_000, 98_000)], Some(60_001), Some(103_000)),
        (&[(60_000, 98_000)], Some(60_000), None),
        (&[(60_000, 98_000)], Some(103_000), None),
        (&[(60_000, 98_000)], Some(140_000), None),
        (&[(60_000, 98_000)], None, None),
        (&[(60_000, 70_000), (80_000, 90_000)], Some(70_000), Some(75_000)),
        (&[(60_000, 70_000), (74_000, 90_000)], Some(75_000), Some(95_000)),
        (&[(74_000, 90_000), (60_000, 70_000)], Some(75_000), Some(95_000)),
    ];
    for (stalled, until, expected) in cases {
        let extended = stalls(stalled).extend(&lease(until), NOW);
        assert_eq!(extended, expected.map(Timestamp), "{until:?} with stalls {stalled:?}");
        if let Some(Timestamp(until)) = extended {
            assert_eq!(stalls(stalled).extend(&lease(Some(until)), NOW), None, "looked at twice, it is not longer");
        }
    }
}

#[test]
fn the_latest_four_stalls_count_and_a_worker_was_last_seen_when_they_ended() {
    let many: Vec<(i64, i64)> = (1..=6).map(|at| (at * 10_000, at * 10_000 + 2_000)).collect();
    assert_eq!(stalls(&many).extend(&lease(Some(20_001)), NOW), None);
    assert_eq!(stalls(&many).extend(&lease(Some(30_001)), NOW), Some(Timestamp(37_000)));
    assert_eq!(stalls(&many).last_seen(Timestamp(5_000), NOW), Timestamp(62_000));
    assert_eq!(stalls(&many).last_seen(Timestamp(70_000), NOW), Timestamp(70_000));
    assert_eq!(Stalls::default().last_seen(Timestamp(5), NOW), Timestamp(5));
}
