//! The licence, for pages that show one: nothing is limited.

use super::{
    Own,
    body::{Json, ok},
};
use crate::{
    dialect::Mount,
    route::{Access, Route},
};
use serde_json::{Map, Value, json};

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![on.get("/license", Access::Open, license).says("What is limited: nothing")]
}

const LIMITS: [&str; 6] = [
    "maxWorkflowDefinitions",
    "maxLifetimeExecutions",
    "maxExecutionsPer24h",
    "maxConcurrentExecutions",
    "maxWorkers",
    "maxFunctionBlocks",
];

async fn license() -> Json<Value> {
    let limits: Map<String, Value> = LIMITS.into_iter().map(|limit| (limit.into(), json!("unlimited"))).collect();
    ok(json!({
        "flavor": "enterprise",
        "displayName": "Windlass",
        "productionUse": true,
        "brandingBadge": null,
        "limits": limits,
        "usage": {},
        "quotas": [],
        "features": {"scheduling": true, "bulkImportExport": true},
        "countingRules": {},
    }))
}
