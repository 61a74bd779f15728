use std::collections::HashSet;
use windlass_core::digest::digest;

#[test]
fn a_digest_is_the_same_in_every_version() {
    assert_eq!(digest(&[b"completed", b"{\"rows\":42}"]), 0x95D9_A02E_0BC1_A569);
    assert_eq!(digest(&[b""]), 0x7106_CCCE_E187_A13C);
}

#[test]
fn what_differs_in_a_byte_a_length_or_a_border_has_another_digest() {
    let mut seen = HashSet::new();
    for length in 0..40 {
        for at in 0..=length {
            let mut text = vec![b'x'; length];
            text.get_mut(at).into_iter().for_each(|byte| *byte = b'y');
            assert!(seen.insert(digest(&[&text])), "{length} bytes, {at}");
            text.push(0);
            assert!(seen.insert(digest(&[&text])), "{length} bytes, {at}, and a zero");
            text.pop();
            let (left, right) = text.split_at(at);
            assert!(seen.insert(digest(&[left, right])), "{length} bytes, cut at {at}");
        }
    }
}
