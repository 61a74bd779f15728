use serde_json::json;
use windlass_worker::silo::missing_tags;

#[test]
fn tags_that_only_the_configuration_names_are_found() {
    let known = [json!("create"), json!("linux")];
    let wanted = ["linux", "gpu", "create", "big"].map(str::to_owned);
    assert_eq!(missing_tags(&wanted, &known), ["gpu", "big"]);
    assert!(missing_tags(&wanted[..1], &known).is_empty());
    assert_eq!(missing_tags(&wanted[..1], &[]), ["linux"]);
}
