use windlass_server::last_token::{KEPT_BYTES_MAX, LastToken, hash};

#[test]
fn every_token_has_its_own_hash_whichever_came_before() {
    let last = LastToken::default();
    let (long, longer) = ("x".repeat(KEPT_BYTES_MAX), "x".repeat(KEPT_BYTES_MAX + 1));
    for token in ["a", "a", "b", "ab", "a", "", "", &long, &longer, &long, "a"] {
        assert_eq!(last.hash(token), hash(token), "{token}");
    }
}

#[test]
fn nothing_long_is_kept() {
    let last = LastToken::default();
    last.hash(&"x".repeat(KEPT_BYTES_MAX + 1));
    assert!(last.kept().is_none());
    last.hash("a");
    assert!(last.kept().is_some_and(|token| token.is("a")));
}
