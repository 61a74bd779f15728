use std::sync::Arc;
use windlass_core::cache::Cache;

/// How many entries a cache holds whose values all have a clone of this.
fn held(mark: &Arc<()>) -> usize {
    Arc::strong_count(mark) - 1
}

#[test]
fn large_values_are_remembered_by_what_they_take_not_by_their_number() {
    let (mut cache, mark) = (Cache::new(1_000, 100), Arc::new(()));
    for n in 0..1_000 {
        cache.put(n, (n, mark.clone()), 30);
        // Three in each generation: the young one fills up beside an old one that is full.
        assert_eq!(held(&mark), if n < 3 { n + 1 } else { 3 + n % 3 + 1 }, "{n}");
    }
    assert!(cache.get(&999).is_some());
    cache.put(1_000, (0, mark.clone()), 500);
    let newest = cache.get(&1_000).map(|(value, _)| value);
    assert_eq!(
        (newest, held(&mark)),
        (Some(0), 2),
        "the newest stays, however large it is, and alone in its generation"
    );
}

#[test]
fn what_is_used_stays_and_the_rest_goes() {
    let (mut cache, mark) = (Cache::new(2, 1_000), Arc::new(()));
    cache.put("kept", (0_usize, mark.clone()), 1);
    for n in 1..10 {
        cache.put(["a", "b", "c"][n % 3], (n, mark.clone()), 1);
        assert_eq!(cache.get(&"kept").map(|(value, _)| value), Some(0));
        // The newest two, and one from before.
        assert_eq!(held(&mark), 3.min(n + 1), "{n}");
    }
    cache.put("once", (1, mark.clone()), 1);
    for n in 0..8 {
        cache.put(["a", "b", "c", "d"][n % 4], (n, mark.clone()), 1);
    }
    assert!(cache.get(&"once").is_none());
}

#[test]
fn a_newer_value_hides_an_older_one_until_it_is_forgotten() {
    let mut cache = Cache::new(2, 1_000);
    for key in ["a", "b", "c"] {
        cache.put(key, 1_usize, 1);
    }
    cache.put("a", 2, 1);
    assert_eq!(cache.get(&"a"), Some(2));
    cache.forget(&"a");
    assert_eq!(cache.get(&"a"), None);
}
