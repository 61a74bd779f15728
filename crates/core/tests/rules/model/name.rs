use windlass_core::{Lane, Namespace, Tags};

fn tags(list: &[&str]) -> Tags {
    list.iter().copied().collect()
}

#[test]
fn matching_is_the_subset_rule() {
    let table: &[(&[&str], &[&str], bool)] = &[
        (&[], &[], true),
        (&[], &["gpu"], true),
        (&["gpu"], &[], false),
        (&["gpu"], &["gpu", "linux"], true),
        (&["gpu", "linux"], &["gpu"], false),
        (&["GPU"], &["gpu"], false),
        (&["gpu", "gpu"], &["gpu"], true),
    ];
    for (required, offered, fits) in table {
        assert_eq!(tags(required).subset_of(&tags(offered)), *fits, "{required:?} in {offered:?}");
    }
}

#[test]
fn lanes_differ_by_namespace_and_by_tags_but_not_by_order() {
    let a = Namespace::new("a").unwrap();
    let b = Namespace::new("b").unwrap();
    assert_eq!(Lane::of(&a, &tags(&["x", "y"])), Lane::of(&a, &tags(&["y", "x"])));
    assert_ne!(Lane::of(&a, &tags(&[])), Lane::of(&b, &tags(&[])));
    assert_ne!(Lane::of(&a, &tags(&["ab"])), Lane::of(&a, &tags(&["a", "b"])));
}

#[test]
fn namespaces_are_narrow() {
    for bad in ["", "A", "a b", "-a", "é", &"a".repeat(65)] {
        assert!(Namespace::new(bad).is_err(), "{bad:?}");
    }
    assert!(Namespace::new("wfg").is_ok());
}
