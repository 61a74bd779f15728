use serde_json::json;
use windlass_plan::neops::reference::Version;
use windlass_server::dialects::neops::blocks::{
    Body,
    compat::{There, conflict},
};

fn body(required: &[&str], results: &[&str], run_on: &str) -> Body {
    let properties: serde_json::Map<_, _> = results.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    Body {
        run_on: run_on.into(),
        fb_type: "check".into(),
        parameter_json_schema: json!({"required": required}),
        result_data_json_schema: json!({"properties": properties}),
        ..Body::default()
    }
}

#[test]
fn later_versions_ask_for_no_more_and_give_no_less() {
    let (first, second) = (body(&["a", "b"], &["x"], "device"), body(&["a"], &["x", "y"], "device"));
    let there = [
        There { version: Version::new(1, 0, 0), body: &first },
        There { version: Version::new(1, 1, 0), body: &second },
    ];
    let table = [
        ((1, 0, 0), body(&["a", "b"], &["x"], "device"), None),
        ((1, 0, 0), body(&["a", "b", "c"], &["x", "y"], "device"), Some("\"c\" is required")),
        ((1, 0, 1), body(&["a", "b"], &["x", "y"], "device"), Some("unlike version 1.1.0")),
        ((1, 1, 1), body(&["a"], &["x"], "device"), Some("\"y\" is missing")),
        ((1, 2, 0), body(&[], &["x", "y", "z"], "device"), None),
        ((1, 2, 0), body(&[], &["x", "y"], "global"), Some("runOn")),
        ((2, 0, 0), body(&["q"], &[], "global"), None),
    ];
    for ((major, minor, patch), new, expected) in table {
        let found = conflict(Version::new(major, minor, patch), &new, &there);
        assert_eq!(found.is_some(), expected.is_some(), "{major}.{minor}.{patch}: {found:?}");
        let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
        assert!(found.contains(expected), "{found:?} does not say {expected:?}");
    }
}
