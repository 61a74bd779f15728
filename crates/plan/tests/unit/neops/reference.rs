use windlass_plan::neops::reference::{ID_BYTES_MAX, Reference, Version, is_label};

#[test]
fn references_name_a_major_and_at_most_three_numbers() {
    for good in ["p/n:1", "wf.x/a b:1.2", "p/n:1.20.3"] {
        assert_eq!(Reference::parse(good).map(|found| found.to_string()).as_deref(), Some(good));
    }
    let bad = ["p/n", "p/n:", "p/n:v1", "p/n:1.", "p/n:1.2.3.4", "/n:1", "p/:1", "p:1", "a/b/c:1", "p/n:1:2"];
    for bad in bad.into_iter().chain(["p/n:+1", "p/n:1.-2", "p/n:99999999999"]) {
        assert_eq!(Reference::parse(bad), None, "{bad}");
    }
    assert_eq!(Reference::parse(&format!("p/{}:1", "x".repeat(ID_BYTES_MAX))), None, "too long");
}

#[test]
fn a_reference_stands_for_the_newest_version_that_fits_and_never_for_another_major() {
    let there = [(1, 0, 0), (1, 2, 0), (1, 2, 9), (1, 10, 1), (2, 0, 0)];
    let there = there.map(|(major, minor, patch)| Version::new(major, minor, patch));
    let table = [
        ("p/n:1", Some("1.10.1")),
        ("p/n:1.2", Some("1.2.9")),
        ("p/n:1.2.0", Some("1.2.0")),
        ("p/n:1.2.1", None),
        ("p/n:2", Some("2.0.0")),
        ("p/n:3", None),
    ];
    for (asked, expected) in table {
        let found = Reference::parse(asked).unwrap().newest(there).map(|version| version.to_string());
        assert_eq!(found.as_deref(), expected, "{asked}");
    }
}

#[test]
fn labels_are_names_that_expressions_do_not_know_yet() {
    for good in ["a", "_a1", "Parameters", "step_2"] {
        assert!(is_label(good), "{good}");
    }
    for bad in ["", "1a", "a-b", "a b", "parameters", "context", "steps", "ä"] {
        assert!(!is_label(bad), "{bad}");
    }
}
