use reqwest::StatusCode;
use serde_json::{Value, json};
use windlass_worker::silo::calls::{Backoff, Trouble, sort};

#[test]
fn answers_mean_what_a_runner_has_to_do() {
    let name = |status: u16, said: Value| match sort(StatusCode::from_u16(status).unwrap(), &said) {
        Trouble::Denied(_) => "denied",
        Trouble::Lost(_) => "lost",
        Trouble::Refused(..) => "refused",
        Trouble::Later(_) => "later",
    };
    let conflict = json!({"error": "conflict", "message": "m", "status": "cancelled"});
    assert_eq!((name(401, json!({})), name(409, conflict), name(403, json!({}))), ("denied", "lost", "lost"));
    assert_eq!((name(409, json!({"message": "a cycle"})), name(400, json!({}))), ("refused", "refused"));
    assert_eq!((name(404, json!({})), name(413, json!({}))), ("refused", "refused"));
    for status in [302, 408, 429, 500, 502, 503] {
        assert_eq!(name(status, Value::Null), "later", "{status}");
    }
}

#[test]
fn waits_are_from_one_to_sixty_seconds_and_grow() {
    let mut backoff = Backoff::default();
    let waits: Vec<_> = (0..20).map(|_| backoff.wait()).collect();
    assert!(waits.iter().all(|wait| (1_000..=60_000).contains(&wait.as_millis())), "{waits:?}");
    assert!(waits[10..].iter().all(|wait| wait.as_secs() >= 30), "{waits:?}");
}
