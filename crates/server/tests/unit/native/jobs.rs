use windlass_core::JobId;
use windlass_server::native::jobs::id_range;

#[test]
fn a_prefix_is_a_range_of_ids() {
    let range = |prefix: &str| id_range(prefix).unwrap();
    let id = |text: &str| text.parse::<JobId>().unwrap();
    let low = id("0199a000-0000-0000-0000-000000000000");
    assert_eq!(range("0199a"), (low, Some(id("0199b000-0000-0000-0000-000000000000"))));
    assert_eq!(range("0199A000-0"), (low, Some(id("0199a000-1000-0000-0000-000000000000"))));
    assert_eq!(range(&low.to_string()), (low, Some(id("0199a000-0000-0000-0000-000000000001"))));
    assert_eq!(range("ffff").1, None, "nothing lies above");
    assert_eq!(range("0000").0, JobId::from_u128(0));
    for bad in ["", "019", "xyzw", "0199a000-0000-0000-0000-0000000000000"] {
        assert!(id_range(bad).is_err(), "{bad}");
    }
}
