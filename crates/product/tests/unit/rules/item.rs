use windlass_product::rules::item::{
    check_category, check_item_type, check_part_number, check_project_code, is_tag, numbered,
};

#[test]
fn names_are_held_to_their_patterns() {
    let long = |n| "a".repeat(n);
    for good in ["F01-0001", "A.b_c-1", "7", &long(64)] {
        assert!(check_part_number(good).is_ok(), "{good}");
    }
    for bad in ["", "-1", ".a", "a b", "ä", "a/b", &long(65), "flat", "by-uuid"] {
        assert!(check_part_number(bad).is_err(), "{bad}");
    }
    for (good, bad) in [("part", "Part"), ("a_1-x", "1a"), ("x", "")] {
        assert!(check_item_type(good).is_ok() && check_item_type(bad).is_err());
    }
    assert!(check_category("F01").is_ok() && check_category("f01").is_err() && check_category("").is_err());
    assert!(check_project_code("P-1").is_ok() && check_project_code("-P").is_err());
    assert!(is_tag("os:linux") && !is_tag(":linux") && !is_tag(&long(65)));
    assert_eq!((numbered("F01", 7), numbered("A", 12_345)), ("F01-0007".into(), "A-12345".into()));
}
