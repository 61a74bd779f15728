use windlass_api::Uuid;
use windlass_server::path::{FromPath, Named};

fn read<T: FromPath>(names: &[&'static str], parts: &[&str]) -> Result<T, String> {
    T::from_path(Named::new(names.into(), parts.iter().copied()))
}

#[test]
fn parts_are_decoded_and_what_does_not_fit_is_named() {
    assert_eq!(read::<String>(&["name"], &["a%2Fb%20c"]).unwrap(), "a/b c");
    let pair = read::<(String, u32)>(&["name", "version"], &["x", "7"]).unwrap();
    assert_eq!(pair, ("x".to_owned(), 7));
    for (wrong, said) in [
        (read::<String>(&["name"], &["%ff"]).map(drop), "Invalid URL: Invalid UTF-8 in `name`"),
        (
            read::<(String, u32)>(&["name", "version"], &["x", "-1"]).map(drop),
            "Invalid URL: Cannot parse value at index 1 with value `-1` to a `u32`",
        ),
        (
            read::<Uuid>(&["id"], &["x"]).map(drop),
            "Invalid URL: Cannot parse `id` with value `x`: UUID parsing failed: ",
        ),
        (read::<String>(&[], &[]).map(drop), "the path names 0, and its handler takes 1"),
    ] {
        let why = wrong.unwrap_err();
        assert!(why.starts_with(said), "{why}");
    }
}
