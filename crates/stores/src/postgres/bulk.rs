//! Everything at once: rows that were decided elsewhere. See [`windlass_engine::bulk`].

use super::{
    Inner,
    connection::Lent,
    failure::Failure,
    rows::Names,
    spot::Spots,
    statements::in_schema,
    write::{self, Writes},
};
use std::collections::HashMap;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;
use windlass_core::{Event, Record, RecordKey};
use windlass_engine::{StoreError, bulk};

const TEXT: Type = Type::TEXT;
const RECORDS: &str = include_str!("sql/bulk_records.sql");
const EVENTS: &str = include_str!("sql/bulk_events.sql");
const MARKS: &str = include_str!("sql/bulk_marks.sql");
const LAST_EVENT: &str = include_str!("sql/bulk_last_event.sql");

impl Inner {
    pub async fn all_records(&self, after: Option<&RecordKey>, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.read(async |reader| {
            let text = in_schema(RECORDS, &self.target.schema);
            let (namespace, kind, key) =
                after.map_or(("", "", ""), |after| (after.namespace.as_str(), &*after.kind, &*after.key));
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = reader
                .client()
                .query_typed(&text, &[(&namespace, TEXT), (&kind, TEXT), (&key, TEXT), (&limit, Type::INT8)])
                .await?;
            let mut names = Names::default();
            rows.iter().map(|row| names.record(row)).collect()
        })
        .await
    }

    /// In one transaction. A failure drops the connection, and the transaction with it.
    pub async fn insert(&self, mut rows: bulk::Rows) -> Result<(), StoreError> {
        let taken = self.writers.take().await?;
        let decision = rows.take_decision();
        let written = async {
            taken.begin(true).await?;
            let writes = Writes::of(&decision, &HashMap::new(), &Spots::default(), &self.lanes);
            for write in writes.into_iter().chain(write::counts(&decision)) {
                write.send(&taken).await?;
            }
            self.insert_events(&taken, &rows).await?;
            let last_place = decision.jobs.iter().filter_map(|change| change.new.as_ref()).map(|job| job.seq).max();
            let marks = in_schema(MARKS, &self.target.schema);
            taken.client().execute_typed(&marks, &[(&last_place.unwrap_or(0), Type::INT8)]).await?;
            taken.batch("COMMIT").await
        };
        written.await.map_err(Failure::into_store_error)?;
        taken.give_back();
        let lanes = decision.wakes.iter().map(|wake| (wake.namespace.clone(), wake.lane, wake.tags.clone()));
        self.lanes.confirmed(lanes);
        self.lanes.saw_work(&decision.wakes);
        Ok(())
    }

    async fn insert_events(&self, connection: &Lent, rows: &bulk::Rows) -> Result<(), Failure> {
        let batches: Vec<(u64, Vec<Event>)> = bulk::batches_of(&rows.events).collect();
        let numbers: Vec<i64> = batches.iter().map(|(first_no, _)| *first_no as i64).collect();
        let times: Vec<i64> = batches.iter().map(|(_, events)| events[0].at.0).collect();
        let counts: Vec<i32> = batches.iter().map(|(_, events)| events.len() as i32).collect();
        let ids: Vec<Uuid> = batches.iter().map(|_| Uuid::new_v4()).collect();
        let bodies = batches.iter().map(|(_, events)| serde_json::to_string(events));
        let bodies: Vec<String> = bodies.collect::<Result<_, _>>()?;
        if !batches.is_empty() {
            let text = in_schema(EVENTS, &self.target.schema);
            let params: [(&(dyn ToSql + Sync), Type); 5] = [
                (&numbers, Type::INT8_ARRAY),
                (&times, Type::INT8_ARRAY),
                (&counts, Type::INT4_ARRAY),
                (&ids, Type::UUID_ARRAY),
                (&bodies, Type::TEXT_ARRAY),
            ];
            connection.client().execute_typed(&text, &params).await?;
        }
        let last = rows.events.last().map_or(0, |(number, _)| *number).max(rows.last_event) as i64;
        if last > 0 {
            let text = in_schema(LAST_EVENT, &self.target.schema);
            connection.client().execute_typed(&text, &[(&last, Type::INT8)]).await?;
        }
        Ok(())
    }
}
