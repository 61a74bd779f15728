use std::time::{Duration, Instant};
use windlass_server::owners::{OwnedEntries, oldest_beyond};

const LIFE: Duration = Duration::from_secs(10);

#[test]
fn one_more_takes_the_place_of_its_owners_oldest_and_of_nobody_elses() {
    let (mut entries, now) = (OwnedEntries::new(2, 100, LIFE), Instant::now());
    entries.add("b", 0, "b0", now);
    for at in 1..=5 {
        entries.add("a", at, "a", now);
    }
    let found: Vec<i32> = (0..=5).filter(|at| entries.take(at, now).is_some()).collect();
    assert_eq!(found, [0, 4, 5]);
    assert_eq!(entries.take(&0, now), None, "it is given once");
}

#[test]
fn where_all_together_are_too_many_whoever_has_most_gives_way() {
    let (mut entries, now) = (OwnedEntries::new(3, 5, LIFE), Instant::now());
    for (owner, at) in [("a", 1), ("b", 2), ("b", 3), ("b", 4), ("c", 5)] {
        entries.add(owner, at, owner, now);
    }
    entries.add("d", 6, "d", now);
    let found: Vec<i32> = (1..=6).filter(|at| entries.take(at, now).is_some()).collect();
    assert_eq!(found, [1, 3, 4, 5, 6]);
}

#[test]
fn entries_end_with_their_time_and_make_room() {
    let (mut entries, now) = (OwnedEntries::new(1, 100, LIFE), Instant::now());
    entries.add("a", 1, (), now);
    assert_eq!(entries.take(&1, now + LIFE), None);
    entries.add("a", 2, (), now);
    entries.add("a", 3, (), now + LIFE);
    assert_eq!((entries.take(&2, now), entries.take(&3, now + LIFE)), (None, Some(())));
}

#[test]
fn the_oldest_go_until_so_many_are_left() {
    let entries = || vec![(3, "c"), (1, "a"), (2, "b")];
    for (most, gone) in [(3, &[][..]), (9, &[]), (2, &["a"]), (0, &["a", "b", "c"])] {
        assert_eq!(oldest_beyond(entries(), most), gone, "{most}");
    }
}
