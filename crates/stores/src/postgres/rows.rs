//! Between rows and values. The JSON columns are decoded by `core`, so that no store can read differently.

use super::failure::Failure;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;
use windlass_core::{
    Facet, Job, JobId, JobKey, Lane, Namespace, Payload, Record, RecordKey, State, Timestamp, keys::decode_job_columns,
};

pub fn namespace(text: &str) -> Result<Namespace, Failure> {
    Namespace::new(text).map_err(|_| Failure::corrupt(format!("{text:?} is stored as a namespace")))
}

/// Rows of one answer mostly share a namespace; this keeps them from allocating it each.
#[derive(Default)]
pub struct Names(Vec<Namespace>);

impl Names {
    pub fn get(&mut self, text: &str) -> Result<Namespace, Failure> {
        if let Some(known) = self.0.iter().find(|known| known.as_str() == text) {
            return Ok(known.clone());
        }
        let new = namespace(text)?;
        self.0.push(new.clone());
        Ok(new)
    }

    pub fn key(&mut self, row: &Row) -> Result<JobKey, Failure> {
        Ok(JobKey { namespace: self.get(row.try_get(0)?)?, id: JobId(row.try_get(1)?) })
    }

    /// From the columns that `{job t}` and `{done t}` stand for.
    pub fn job(&mut self, row: &Row) -> Result<Job, Failure> {
        let key = self.key(row)?;
        let (spec, live) = decode_job_columns(row.try_get(7)?, row.try_get(8)?)?;
        let code: i16 = row.try_get(5)?;
        let state = State::from_code(code).ok_or_else(|| Failure::corrupt(format!("{code} is stored as a state")))?;
        // Finished jobs are kept without their lane; it follows from what they required.
        let lane = match row.try_get::<_, Option<Uuid>>(2)? {
            Some(lane) => Lane(lane.as_u128()),
            None => Lane::of(&key.namespace, &spec.tags),
        };
        let due = row.try_get::<_, Option<i64>>(6)?.map(Timestamp);
        Ok(Job { key, lane, priority: row.try_get(3)?, seq: row.try_get(4)?, state, due, spec, live })
    }

    /// Columns: namespace, kind, key, version, parent, value, facets, due.
    pub fn record(&mut self, row: &Row) -> Result<Record, Failure> {
        let text = |at: usize| row.try_get::<_, &str>(at).map(Arc::<str>::from);
        let facets: Vec<Facet> = match row.try_get::<_, Option<&str>>(6)? {
            Some(facets) => serde_json::from_str(facets)?,
            None => Vec::new(),
        };
        Ok(Record {
            key: RecordKey { namespace: self.get(row.try_get(0)?)?, kind: text(1)?, key: text(2)? },
            version: row.try_get::<_, i64>(3)? as u64,
            parent: row.try_get::<_, Option<&str>>(4)?.map(Arc::from),
            value: text(5)?,
            decoded: Default::default(),
            facets,
            due: row.try_get::<_, Option<i64>>(7)?.map(Timestamp),
        })
    }
}

pub fn payload(row: &Row, at: usize) -> Result<Payload, Failure> {
    Ok(row.try_get::<_, Option<&[u8]>>(at)?.map(Payload::from).unwrap_or_default())
}

pub fn uuid_of(lane: Lane) -> Uuid {
    Uuid::from_u128(lane.0)
}
