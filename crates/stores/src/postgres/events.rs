//! The event feed. Batches write their events without a number; whoever reads gives the numbers.
//!
//! One reader at a time numbers what is visible, in the order of ids, and goes on where the last one ended. A batch that
//! commits late gets later numbers, so that no reader ever skips an event and nobody waits for a foreign long transaction.
//! Ids are drawn when a batch holds all its locks: of two batches that touched the same job, the later has the higher id and
//! cannot be visible before the earlier.

use super::{Inner, connection::Lent, failure::Failure, pipe::send, rows::namespace, run::NO_ANSWER, statements::Sql};
use uuid::Uuid;
use windlass_core::{Event, Lane};
use windlass_engine::{
    StoreError,
    store::{EventPage, Trim},
};

/// Pieces numbered by one reader, before it reads what it has.
const PIECES_MAX: usize = 20;

pub struct Bounds {
    last: i64,
    oldest: i64,
    unnumbered: bool,
}

impl Inner {
    pub async fn events_after(&self, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        self.read(async |reader| self.page(&reader, after, limit).await).await
    }

    async fn page(&self, reader: &Lent, after: u64, limit: usize) -> Result<EventPage, Failure> {
        let bounds = self.numbered(reader).await?;
        let (last, oldest) = (bounds.last as u64, bounds.oldest as u64);
        // Numbers have no gaps, so that they tell how many rows can be needed at most.
        let from = after.saturating_add(1).max(oldest);
        let to = from.saturating_add(limit as u64).saturating_sub(1).min(last);
        let mut events = Vec::new();
        if from <= to {
            let rows = reader.query(Sql::ReadEvents, &[&(from as i64), &(to as i64), &(limit as i64)]).await?;
            for row in &rows {
                let first: i64 = row.try_get(0)?;
                let body: Vec<Event> = serde_json::from_str(row.try_get(1)?)?;
                events.extend((first as u64..).zip(body));
            }
            events.retain(|(number, _)| (from..=to).contains(number));
        }
        Ok(EventPage { events, oldest, last })
    }

    /// What there is, after everything that was visible has its number.
    pub async fn numbered(&self, reader: &Lent) -> Result<Bounds, Failure> {
        for _ in 0..PIECES_MAX {
            let bounds = bounds(reader).await?;
            if !bounds.unnumbered {
                return Ok(bounds);
            }
            self.number().await?;
        }
        bounds(reader).await
    }

    /// Gives numbers to what is visible. Runs in a task of its own, since a caller that goes away must not leave the
    /// lock behind.
    async fn number(&self) -> Result<(), Failure> {
        let _one_at_a_time = self.numbering.lock().await;
        let taken = self.readers_for_numbers.take().await.map_err(Failure::Refused)?;
        taken.make_ready(Sql::NumberEvents).await?;
        let lock = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '2s'; \
             SELECT pg_advisory_xact_lock({})",
            self.lock_key("events")
        );
        let answers_within = self.attempt_max;
        let task = tokio::spawn(async move {
            // The lock is taken by a statement of its own, so that the next one sees what its last holder wrote.
            let locked = send(taken.batch(&lock));
            let numbered = send(taken.execute(Sql::NumberEvents, &[]));
            let committed = send(taken.batch("COMMIT"));
            let answers = async { (locked.await, numbered.await, committed.await) };
            let result = match tokio::time::timeout(answers_within, answers).await {
                Err(_) => Err(Failure::Lost(NO_ANSWER.into())),
                Ok((Err(failure), _, _) | (_, Err(failure), _) | (_, _, Err(failure))) => Err(failure),
                Ok((Ok(()), Ok(_), Ok(()))) => Ok(()),
            };
            if !matches!(result, Err(Failure::Lost(_))) {
                taken.give_back();
            }
            result
        });
        match task.await.map_err(|error| Failure::corrupt(error.to_string()))? {
            // Somebody else is at it, for longer than usual: what is numbered so far is still right.
            Err(Failure::Conflict(_)) => Ok(()),
            other => other,
        }
    }

    pub async fn trim(&self, trim: Trim) -> Result<usize, StoreError> {
        self.read(async |reader| self.trim_on(&reader, trim).await).await
    }

    async fn trim_on(&self, reader: &Lent, trim: Trim) -> Result<usize, Failure> {
        self.numbered(reader).await?;
        let limit = trim.limit as i64;
        let rows = reader.query(Sql::TrimEvents, &[&trim.events_before.0, &limit]).await?;
        let events: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        reader.execute(Sql::TrimMarks, &[&trim.events_before.0, &limit]).await?;
        reader.execute(Sql::TrimCounts, &[]).await?;
        let lanes = reader.query(Sql::TrimLanes, &[&limit]).await?;
        let mut gone = 0;
        for row in &lanes {
            if let Some(lane) = row.try_get::<_, Option<Uuid>>(0)? {
                self.lanes.forget(Lane(lane.as_u128()));
                gone += 1;
            }
        }
        if let Some(row) = lanes.first() {
            self.lanes.compare(row.try_get::<_, i64>(1)? as usize);
        }
        Ok(events as usize + gone)
    }

    pub async fn namespaces(&self, reader: &Lent) -> Result<Vec<String>, Failure> {
        let rows = reader.query(Sql::Namespaces, &[]).await?;
        rows.iter().map(|row| Ok(namespace(row.try_get(0)?)?.to_string())).collect()
    }
}

async fn bounds(reader: &Lent) -> Result<Bounds, Failure> {
    let rows = reader.query(Sql::EventBounds, &[]).await?;
    let row = rows.first().ok_or_else(|| Failure::corrupt("the event counter is missing"))?;
    let last = row.try_get::<_, Option<i64>>(0)?.ok_or_else(|| Failure::corrupt("the event counter is missing"))?;
    let oldest = row.try_get::<_, Option<i64>>(1)?.unwrap_or(last + 1);
    Ok(Bounds { last, oldest, unnumbered: row.try_get(2)? })
}
