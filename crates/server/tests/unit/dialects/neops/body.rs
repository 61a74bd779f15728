use windlass_server::dialects::neops::body::Whole;

#[test]
fn whole_numbers_may_be_written_as_floats_and_nothing_else() {
    let read = |text: &str| serde_json::from_str::<Whole>(text).ok().map(|whole| whole.0);
    assert_eq!([read("3"), read("3.0"), read("0")], [Some(3), Some(3), Some(0)]);
    for junk in ["-1", "1.5", "\"1\"", "true", "null", "1e300"] {
        assert_eq!(read(junk), None, "{junk}");
    }
}
