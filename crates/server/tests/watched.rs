//! A run as somebody sees it who watches it.

use crate::workflows::Flow;
use serde_json::json;

/// Whoever watches a run hears of its last steps by the answer that says that it has ended, and asks no more.
#[tokio::test]
async fn a_run_that_has_ended_is_never_shown_with_a_step_that_has_not() {
    let Flow { server, .. } = &Flow::start().await;
    for _ in 0..100 {
        let source = "defaults: {tags: [any]}\nsteps:\n  a: {payload: 1}\n";
        let started = server.post("/api/v1/runs", json!({"source": source})).await.expect(201);
        let path = format!("/api/v1/runs/{}", started["id"].as_str().unwrap());
        let claim = json!({"worker": "w", "tags": ["any"], "wait_ms": 5_000});
        let claimed = server.work("/api/v1/leases/claim", claim).await.expect(200);
        let watch = async {
            loop {
                let shown = server.get(&path).await.expect(200);
                if shown["state"] != "running" {
                    return shown;
                }
            }
        };
        let done = server.work("/api/v1/leases/complete", json!({"lease": claimed["leases"][0]["lease"]}));
        let (shown, done) = tokio::join!(watch, done);
        done.expect(200);
        assert_eq!((&shown["state"], &shown["steps"][0]["state"]), (&json!("completed"), &json!("completed")));
    }
}
