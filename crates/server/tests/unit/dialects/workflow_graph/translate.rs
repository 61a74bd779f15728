use windlass_core::Millis;
use windlass_server::dialects::workflow_graph::{
    translate::{ERROR_BYTES_MAX, check, cut, lease_length},
    wire,
};

fn job(id: &str, needs: &[&str]) -> wire::Job {
    let value = serde_json::json!({"id": id, "name": id, "status": "queued", "command": "true", "depends_on": needs});
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_could_never_end_is_refused_with_its_place() {
    assert_eq!(check(&[job("a", &[]), job("b", &["a"])]), Ok(()));
    let table: [(&[wire::Job], &str); 4] = [
        (&[job("a", &[]), job("a", &[])], "jobs[1].id: \"a\" is used twice"),
        (&[job("a", &["z"])], "jobs[0].depends_on: \"a\" depends on \"z\", which does not exist"),
        (&[job("a", &["a"])], "jobs: dependencies form a cycle: a -> a"),
        (
            &[job("a", &[]), job("b", &["d", "a"]), job("c", &["b"]), job("d", &["c"])],
            "jobs: dependencies form a cycle: b -> c -> d -> b",
        ),
    ];
    for (jobs, expected) in table {
        assert_eq!(check(jobs).unwrap_err(), expected);
    }
}

#[test]
fn leases_are_as_long_as_asked_within_reason() {
    for (asked, granted) in [(0, 1), (30, 30), (60, 60), (u64::MAX, 86_400)] {
        assert_eq!(lease_length(asked), Millis::from_secs(granted));
    }
}

#[test]
fn every_member_is_on_the_wire() {
    let text = serde_json::to_string(&job("a", &[])).unwrap();
    let expected = r#"{"id":"a","name":"a","status":"queued","command":"true","duration_secs":null,"started_at":null,"depends_on":[],"output":null,"required_labels":[],"max_retries":0,"attempt":0,"metadata":{},"ports":[],"children":null,"collapsed":false}"#;
    assert_eq!(text, expected);
}

#[test]
fn long_errors_are_cut_between_characters() {
    assert_eq!(cut("short"), "short");
    assert_eq!(cut(&"é".repeat(ERROR_BYTES_MAX)).len(), ERROR_BYTES_MAX);
}
