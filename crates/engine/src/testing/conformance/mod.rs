//! All that a store must pass.
use super::{Fresh, scenario};

/// Every scenario on a fresh store each. All failures are told together.
pub async fn scenarios(fresh: impl AsyncFn() -> Fresh) {
    let mut wrong = Vec::new();
    for (name, text) in scenario::ALL {
        wrong.extend(scenario::play(fresh().await, name, text).await.err());
    }
    assert!(wrong.is_empty(), "{} of {} scenarios failed:\n{}", wrong.len(), scenario::ALL.len(), wrong.join("\n"));
}
