//! Finds out whether a pooler is between us and the database that gives every transaction another session. What is prepared or set in
//! one is not there in the next, and stays behind for others.
//!
//! A database gives every connection a session of its own for good. So two connections that meet in one session, or one that meets
//! two, are proof of a pooler. That is looked for before anything is set or prepared.

use super::{connection::Target, failure::describe};
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, Error};

/// A pooler that is busy with others may keep two of ours apart for a while.
const LOOKS: usize = 5;
/// Until then a pooler that has no session to give is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// False where it cannot be told.
pub async fn is_between(target: &Target) -> bool {
    let failed = |why: &str| tracing::debug!(why, "it was not found out whether there is a pooler");
    match timeout(PATIENCE, sessions_change(target)).await {
        Ok(Ok(changed)) => return changed,
        Ok(Err(error)) => failed(&describe(&error)),
        Err(_) => failed("no answer"),
    }
    false
}

async fn sessions_change(target: &Target) -> Result<bool, Error> {
    let (one, other) = (target.open().await?, target.open().await?);
    let (first, second) = (session(&one).await?, session(&other).await?);
    for _ in 0..LOOKS {
        // Whether a pooler takes the session that was used last or the one that was not used for longest, one of these changes.
        let seen = [session(&other).await?, session(&one).await?, session(&one).await?];
        if first == second || seen != [second, first, first] {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn session(client: &Client) -> Result<i32, Error> {
    client.query_typed("SELECT pg_backend_pid()", &[]).await?[0].try_get(0)
}
