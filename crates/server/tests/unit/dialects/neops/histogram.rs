use serde_json::json;
use windlass_core::Timestamp;
use windlass_server::dialects::neops::histogram::{MINUTE, of};

#[test]
fn buckets_are_as_narrow_as_they_can_be_and_none_is_left_out() {
    let hour = 60 * MINUTE;
    let found = of(vec![
        (Timestamp(10 * hour), "failed"),
        (Timestamp(12 * hour), "success"),
        (Timestamp(12 * hour), "success"),
    ]);
    assert_eq!((&found["interval"], found["buckets"].as_array().unwrap().len()), (&json!("5m"), 25));
    assert_eq!(found["buckets"][24]["counts"], json!({"success": 2}));
    assert_eq!(found["buckets"][1]["counts"], json!({}));
    let long = of(vec![(Timestamp(0), "a"), (Timestamp(100_000 * hour), "b")]);
    assert!(long["buckets"].as_array().unwrap().len() <= 61);
    assert_eq!(of(vec![])["buckets"], json!([]));
}
