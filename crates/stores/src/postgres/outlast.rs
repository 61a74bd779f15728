//! Waiting until all batches that are under way have ended, here and on other servers: one that was decided before a token was revoked
//! must not be committed after the revocation is answered.
//!
//! Nothing is asked of the batches: their transactions hold a lock from before they look at anything until they end.

use super::{Inner, failure::Failure, statements::in_schema};
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_postgres::types::Type;
use windlass_engine::StoreError;

const BATCHES: &str = include_str!("sql/batches.sql");
const BATCHES_LEFT: &str = include_str!("sql/batches_left.sql");
const LOOK_EVERY: Duration = Duration::from_millis(2);
const LOOK_EVERY_MAX: Duration = Duration::from_millis(100);
/// The database ends a transaction that stands still before that (`idle_in_transaction_session_timeout`).
const PATIENCE: Duration = Duration::from_secs(90);

impl Inner {
    pub async fn outlast_batches(&self) -> Result<(), StoreError> {
        let (deadline, mut pause) = (Instant::now() + PATIENCE, LOOK_EVERY);
        let batches = self.batches().await?;
        while !batches.is_empty() && self.is_any_left(&batches).await? {
            if Instant::now() >= deadline {
                return Err(StoreError::Unavailable(format!("{} batches are still under way", batches.len())));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_EVERY_MAX);
        }
        Ok(())
    }

    async fn batches(&self) -> Result<Vec<String>, StoreError> {
        let text = in_schema(BATCHES, &self.target.schema);
        self.read(|reader| {
            let text = text.clone();
            async move {
                let rows = reader.client().query_typed(&text, &[]).await?;
                rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_, Failure>>()
            }
        })
        .await
    }

    async fn is_any_left(&self, batches: &[String]) -> Result<bool, StoreError> {
        self.read(|reader| {
            let batches = batches.to_vec();
            async move {
                let rows = reader.client().query_typed(BATCHES_LEFT, &[(&batches, Type::TEXT_ARRAY)]).await?;
                Ok(rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))? > 0)
            }
        })
        .await
    }
}
