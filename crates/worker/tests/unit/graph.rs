use std::collections::BTreeMap;
use windlass_worker::graph::{Job, Outputs, variables};

#[test]
fn what_was_handed_on_has_names_a_shell_can_say() {
    let outputs = |list: &[(&str, &str)]| -> Outputs {
        list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    };
    let upstream = BTreeMap::from([
        ("unit-tests".to_owned(), outputs(&[("coverage", "94%"), ("artifact.url", "s3://b"), ("bad", "a\0b")])),
        ("unit.tests".to_owned(), outputs(&[("coverage", "1%")])),
    ]);
    let expected =
        [("WINDLASS_UPSTREAM_UNIT_TESTS_ARTIFACT_URL", "s3://b"), ("WINDLASS_UPSTREAM_UNIT_TESTS_COVERAGE", "94%")];
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    assert_eq!(variables(&upstream), expected);
}

#[test]
fn a_description_that_is_none_is_refused_for_good() {
    for junk in ["null", "{}", r#"{"job_id":"a","workflow_id":"w","command":"a\u0000"}"#] {
        assert!(Job::parse(junk).unwrap_err().permanent, "{junk}");
    }
}
