mod graph;
mod locks;
mod world;

use windlass_product::rules::features::NodeKind;

#[test]
fn a_kind_is_any_short_word_and_is_stored_as_that_word() {
    let long = |n| "k".repeat(n);
    for good in ["pad", "depends_on", "weld-2", "3d", &long(64)] {
        let kind = NodeKind::new(good).unwrap();
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{good:?}"));
    }
    for bad in ["", "Pad", "a b", "ä", &long(65)] {
        assert!(NodeKind::new(bad).is_err(), "{bad}");
    }
}
