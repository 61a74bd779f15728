use windlass_server::dialects::neops::board::result::{MESSAGE_MAX, cut};

#[test]
fn messages_are_cut_between_characters() {
    assert_eq!(cut("short"), "short");
    let long = "é".repeat(MESSAGE_MAX + 5);
    assert_eq!(cut(&long).chars().count(), MESSAGE_MAX);
}
