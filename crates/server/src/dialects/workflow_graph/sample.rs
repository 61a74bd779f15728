//! The workflow behind the web page's button.

use super::{status::Stored, wire};
use serde_json::json;

pub const ID: &str = "ci-1";

/// Name, command, what it waits for.
const JOBS: [(&str, &str, &str, &[&str]); 8] = [
    ("unit-tests", "Unit Tests", "echo running unit tests && sleep 2", &[]),
    ("lint", "Lint", "echo linting && sleep 1", &[]),
    ("typecheck", "Typecheck", "echo checking types && sleep 1", &[]),
    ("build", "Build", "echo building && sleep 2", &["unit-tests", "lint", "typecheck"]),
    ("deploy-db", "Deploy DB", "echo migrating the database && sleep 1", &["build"]),
    ("e2e-tests", "E2E Tests", "echo running end-to-end tests && sleep 2", &["build"]),
    ("deploy-preview", "Deploy Preview", "echo deploying a preview && sleep 1", &["build"]),
    ("deploy-web", "Deploy Web", "echo deploying the site && sleep 1", &["deploy-db"]),
];

pub fn workflow(version: u64) -> Stored {
    let job = |(id, name, command, needs): &(&str, &str, &str, &[&str])| {
        let value = json!({"id": id, "name": name, "status": "queued", "command": command, "depends_on": needs});
        serde_json::from_value::<wire::Job>(value).expect("the sample has the wire's shape")
    };
    Stored {
        id: ID.into(),
        name: "ci.yml".into(),
        trigger: "on: push".into(),
        run: None,
        jobs: JOBS.iter().map(job).collect(),
        version,
        parts: 0,
    }
}
