//! A runner of Silo's protocol that does nothing: claims, reports progress, completes, until there is nothing left for it.
//! Prints the ids of its jobs. `silo-loop ADDRESS`, its token in SILO_RUNNER_TOKEN; `silo-loop ADDRESS claim` only claims.
#![forbid(unsafe_code)]

use serde_json::{Value, json};
use windlass_e2e::Plain;

fn main() {
    let address = std::env::args().nth(1).expect("silo-loop ADDRESS");
    let only_claim = std::env::args().nth(2).as_deref() == Some("claim");
    let token = std::env::var("SILO_RUNNER_TOKEN").expect("SILO_RUNNER_TOKEN");
    let mut server = Plain::connect(&address, &token);
    assert_eq!(server.call("POST", "/api/runner/heartbeat", &Value::Null).0, 200);
    loop {
        let (status, claimed) = server.call("POST", "/api/runner/claim", &Value::Null);
        if status == 204 {
            return;
        }
        let id = claimed["job"]["id"].as_str().unwrap_or_else(|| panic!("{status} {claimed}"));
        if only_claim {
            println!("{id}");
            continue;
        }
        let progress = server.call("PUT", &format!("/api/runner/jobs/{id}/progress"), &json!({"progress": 50}));
        assert_eq!(progress.0, 200, "{}", progress.1);
        let done = server.call("POST", &format!("/api/runner/jobs/{id}/complete"), &json!({"result": {"n": 1}}));
        assert_eq!(done.0, 200, "{}", done.1);
        println!("{id}");
    }
}
