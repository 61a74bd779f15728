use std::sync::Arc;
use windlass_plan::pattern::{KEPT, KEPT_BYTES, Made, Pattern, PatternCache, WRITTEN_MAX, Written, get};

#[test]
fn a_pattern_is_compiled_within_limits_and_kept_whatever_came_of_it() {
    assert!(get("^[a-z]+$").unwrap().is_match("abc"));
    assert!(get("^[a-z]+$").unwrap().price() < get("^[a-z]{1000}$").unwrap().price());
    assert_eq!(get("^[a-z]+$").unwrap().price(), get(r"^\w+\pL*\p{Greek}*$").unwrap().price());
    let table = [
        (r"(\pL{30}){6}[k]".to_owned(), "compiled"),
        ("(((((a{20}){20}){20}){20}){20})".to_owned(), "compiled"),
        (r"\pL".repeat(17), "classes"),
        ("a".repeat(1_001), "1000 bytes"),
        ("(".repeat(400) + &")".repeat(400), "pattern"),
        ("(a".to_owned(), "pattern"),
    ];
    for (text, why) in table {
        for _ in 0..2 {
            let told = get(&text).unwrap_err();
            assert!(told.why.contains(why), "{told}");
        }
    }
    let first = get("kept").unwrap();
    assert!(Arc::ptr_eq(&first, &get("kept").unwrap()), "compiled once");
}

#[test]
fn a_pattern_in_use_is_not_compiled_again_however_many_others_come() {
    let mut kept = PatternCache::default();
    // Twins: the originals lie in the cache that all share.
    let made = |pattern: &Pattern| Ok(Arc::new(pattern.clone()));
    let (small, large) = (get("a").unwrap(), get("[a-z]{700}").unwrap());
    assert_eq!(large.kib(), 64);
    let own: Made = made(&small);
    kept.put("own", own.clone());
    for at in 0..3 * KEPT {
        kept.put(&format!("other{at}"), made(&large));
    }
    assert!(kept.made.get(&"own".to_owned()).is_none());
    assert!(Arc::ptr_eq(&kept.get("own").unwrap().unwrap(), own.as_ref().unwrap()));
    drop(own);
    assert!(kept.get("own").is_none(), "nor is it kept when nobody uses it");
    let others = kept.used.values().filter(|made| made.strong_count() > 0).count();
    let most = 2 * KEPT_BYTES / (64 << 10);
    assert!(others <= most && kept.used.len() <= 4 * most, "{others} of {}", kept.used.len());
}

#[test]
fn a_workflow_has_so_many_patterns_and_no_more() {
    let mut written = Written::default();
    (0..WRITTEN_MAX).for_each(|at| drop(written.get(&format!("({at}"))));
    assert!(written.get("a").unwrap_err().contains("100 patterns"), "those that are wrong cost most");
    let mut written = Written::default();
    let large = (0..WRITTEN_MAX).find_map(|at| written.get(&format!("a{{2000}}{at}")).err());
    assert!(large.unwrap().contains("KiB"));
}
