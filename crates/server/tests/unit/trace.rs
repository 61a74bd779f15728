use windlass_server::trace::{TraceParent, of_extra};

#[test]
fn a_trace_survives_its_text_form_and_nonsense_is_none() {
    let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let parent = TraceParent::parse(text).unwrap();
    assert_eq!(parent.to_string(), text);
    assert_eq!(of_extra(Some(&format!(r#"{{"a":1,"traceparent":"{text}"}}"#))), Some(parent));
    for odd in [
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
    ] {
        assert_eq!(TraceParent::parse(odd), None, "{odd}");
    }
    assert!(TraceParent::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
    assert_eq!(of_extra(Some(r#"{"traceparent": 3}"#)), None);
}
