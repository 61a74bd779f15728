//! Looks for damage: rows that contradict each other or cannot be read.

use super::{Inner, columns, failure::Failure, rows::Names, statements::in_schema};
use tokio_postgres::{
    Row,
    types::{FromSqlOwned, ToSql, Type},
};
use uuid::Uuid;
use windlass_engine::StoreError;

/// Each finds at most a few rows of one kind of contradiction, as a text.
const CHECKS: &[(&str, &str)] = &[
    (
        "both unfinished and finished",
        "SELECT j.namespace || '/' || j.id FROM windlass.jobs j JOIN windlass.jobs_done d USING (namespace, id)",
    ),
    (
        "held without a worker, or the other way round",
        "SELECT namespace || '/' || id FROM windlass.jobs WHERE (state IN (3, 4)) <> (worker IS NOT NULL)",
    ),
    (
        "pending in a lane that is not listed",
        "SELECT j.namespace || '/' || j.id FROM windlass.jobs j WHERE j.state = 2 AND NOT EXISTS \
         (SELECT FROM windlass.lanes l WHERE l.namespace = j.namespace AND l.lane = j.lane)",
    ),
    (
        "pending below the mark of its lane",
        "SELECT j.namespace || '/' || j.id FROM windlass.jobs j JOIN windlass.lane_marks m USING (namespace, lane) \
         WHERE j.state = 2 AND (j.priority, j.seq) < (m.priority, m.seq)",
    ),
    (
        "a payload without a job",
        "SELECT p.namespace || '/' || p.id FROM windlass.payloads p \
         WHERE NOT EXISTS (SELECT FROM windlass.jobs j WHERE j.namespace = p.namespace AND j.id = p.id) \
           AND NOT EXISTS (SELECT FROM windlass.jobs_done j WHERE j.namespace = p.namespace AND j.id = p.id)",
    ),
    (
        "another number of jobs in a state than is kept",
        "SELECT k.namespace || ' ' || k.state FROM ( \
         SELECT namespace, state, -1 AS count FROM windlass.jobs \
         UNION ALL SELECT namespace, state, -1 FROM windlass.jobs_done \
         UNION ALL SELECT namespace, state, count FROM windlass.job_counts WHERE definition = '' \
         UNION ALL SELECT k ->> 0, (k ->> 2)::smallint, (k ->> 3)::bigint FROM windlass.events e \
         CROSS JOIN LATERAL jsonb_array_elements(nullif(e.counts, '')::jsonb) k WHERE k ->> 1 = '') k \
         WHERE k.state < 100 GROUP BY k.namespace, k.state HAVING sum(k.count) <> 0",
    ),
    (
        "event numbers with a gap or an overlap before",
        "SELECT first_no::text FROM (SELECT first_no, lag(first_no + count) OVER (ORDER BY first_no) AS expected \
         FROM windlass.events WHERE first_no > 0) e WHERE first_no <> expected",
    ),
    (
        "event numbers above the last one given",
        "SELECT first_no::text FROM windlass.events \
         WHERE first_no > 0 AND first_no + count - 1 > (SELECT value FROM windlass.meta WHERE name = 'last_event')",
    ),
];
const FOUND_MAX: usize = 20;
/// Rows read at a time when all of them have to be decoded.
const CHUNK: i64 = 1_000;

impl Inner {
    /// However many rows there are: each answer is waited for by itself.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        for (what, text) in CHECKS {
            for row in self.ask(&format!("{text} LIMIT {FOUND_MAX}"), &[]).await? {
                found.push(format!("{what}: {}", column::<String>(&row, 0)?));
            }
        }
        let mut names = Names::default();
        for table in ["jobs", "jobs_done"] {
            let columns = columns::read("j", table == "jobs_done");
            let text = format!(
                "SELECT {columns} FROM windlass.{table} j \
                 WHERE (j.namespace, j.id) > ($1, $2) ORDER BY j.namespace, j.id LIMIT {CHUNK}"
            );
            let mut after = (String::new(), Uuid::nil());
            loop {
                let rows = self.ask(&text, &[(&after.0, Type::TEXT), (&after.1, Type::UUID)]).await?;
                let Some(last) = rows.last() else { break };
                after = (column(last, 0)?, column(last, 1)?);
                found.extend(rows.iter().filter_map(|row| unreadable(&mut names, row)));
                found.truncate(FOUND_MAX * CHECKS.len());
            }
        }
        Ok(found)
    }

    async fn ask(&self, text: &str, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Row>, StoreError> {
        let text = in_schema(text, &self.target.schema);
        self.read(async |reader| Ok(reader.client().query_typed(&text, params).await?)).await
    }
}

fn column<T: FromSqlOwned>(row: &Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|error| Failure::from(error).into_store_error())
}

fn unreadable(names: &mut Names, row: &Row) -> Option<String> {
    let error = names.job(row).err()?;
    let place = format!("{}/{}", row.get::<_, String>(0), row.get::<_, Uuid>(1));
    let why = match error {
        Failure::Conflict(why) | Failure::Lost(why) => why,
        other => other.into_store_error().to_string(),
    };
    Some(format!("a job that cannot be read: {place}: {why}"))
}
