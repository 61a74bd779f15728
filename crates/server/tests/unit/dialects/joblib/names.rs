use windlass_server::dialects::joblib::{
    error::{HttpError, INVALID_ROOM_ID},
    names::{FullName, check_room},
};

#[test]
fn a_full_name_is_split_at_its_first_two_colons() {
    let full = FullName::parse("@global:modifiers:a:b/c").unwrap();
    assert_eq!((&*full.room, &*full.category, &*full.name), ("@global", "modifiers", "a:b/c"));
    assert_eq!(full.to_string(), "@global:modifiers:a:b/c");
    assert!(FullName::parse("r:modifiers").is_none() && FullName::parse("").is_none());
    assert!(FullName::new("r", "c", &"x".repeat(246)).is_ok() && FullName::new("r", "c", &"x".repeat(247)).is_err());
    assert!(FullName::new("r", "c", "a\nb").is_err());
}

#[test]
fn rooms_have_no_signs_but_the_special_ones() {
    for good in ["r1", "@global", "@internal", "a b/c"] {
        assert!(check_room(good).is_ok(), "{good}");
    }
    for bad in ["", "@other", "a:b", "a@b"] {
        assert!(matches!(check_room(bad), Err(HttpError::Problem { kind: INVALID_ROOM_ID, .. })), "{bad}");
    }
    assert!(matches!(check_room(&"r".repeat(201)), Err(HttpError::Invalid(_))));
}
