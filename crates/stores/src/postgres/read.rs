//! Reads. They see what is committed, and never wait for writers.

use super::{
    Inner, columns,
    connection::Lent,
    failure::Failure,
    pipe::send,
    rows::{Names, namespace, payload},
    run::NO_ANSWER,
    statements::{Sql, in_schema},
};
use std::{future::Future, sync::Arc};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;
use windlass_core::{
    Attempt, Facet, Job, JobId, JobKey, LogAppend, LogForm, Namespace, Payload, Record, RecordKey, State, Timestamp,
    commands::due::Due,
};
use windlass_engine::{
    StoreError,
    store::{DuePage, JobBody, JobQuery, NamePrefix, QUEUES_MAX, RecordQuery},
};

/// Parameters of a statement that is put together from filters.
#[derive(Default)]
struct Filter {
    params: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Filter {
    /// The placeholder for one more parameter.
    fn with(&mut self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> String {
        self.params.push((Box::new(value), kind));
        format!("${}", self.params.len())
    }

    async fn query(&self, reader: &Lent, text: &str) -> Result<Vec<Row>, Failure> {
        let params: Vec<(&(dyn ToSql + Sync), Type)> =
            self.params.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect();
        Ok(reader.client().query_typed(text, &params).await?)
    }
}

fn key_columns(keys: &[JobKey]) -> (Vec<&str>, Vec<Uuid>) {
    keys.iter().map(|key| (key.namespace.as_str(), key.id.0)).unzip()
}

impl Inner {
    /// Runs a read on a connection of its own. Single statements only: a caller may go away at any time.
    pub async fn read<T, F>(&self, read: impl Fn(Arc<Lent>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let reader = self.readers.take().await?;
        let kept = !reader.fresh;
        let mut result = self.read_on(reader, &read).await;
        // That a session which was kept is of no more use says nothing about the database.
        if matches!(result, Err(Failure::Lost(_))) && kept {
            self.readers.forget_idle();
            result = self.read_on(self.readers.take().await?, &read).await;
        }
        result.map_err(Failure::into_store_error)
    }

    /// An answer that never comes is as good as a lost connection.
    async fn read_on<T, F>(&self, reader: Lent, read: impl Fn(Arc<Lent>) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let reader = Arc::new(reader);
        let answer = tokio::time::timeout(self.attempt_max, read(reader.clone())).await;
        let result = answer.unwrap_or_else(|_| Err(Failure::Lost(NO_ANSWER.into())));
        let sound = !matches!(result, Err(Failure::Lost(_)));
        if let Some(reader) = Arc::into_inner(reader).filter(|_| sound) {
            reader.give_back();
        }
        result
    }

    pub async fn job(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.read(async |reader| {
            let rows = reader.query(Sql::ReadJob, &[&key.namespace.as_str(), &key.id.0]).await?;
            rows.first().map(|row| Names::default().job(row)).transpose()
        })
        .await
    }

    pub async fn jobs_named(&self, keys: &[JobKey]) -> Result<Vec<Job>, StoreError> {
        self.read(async |reader| {
            let (namespaces, ids) = key_columns(keys);
            let rows = reader.query(Sql::ReadJobs, &[&namespaces, &ids]).await?;
            let mut names = Names::default();
            rows.iter().map(|row| names.job(row)).collect()
        })
        .await
    }

    pub async fn results(&self, keys: &[JobKey]) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        self.read(async |reader| {
            let (namespaces, ids) = key_columns(keys);
            let rows = reader.query(Sql::ReadResults, &[&namespaces, &ids]).await?;
            let mut names = Names::default();
            rows.iter().map(|row| Ok((names.key(row)?, payload(row, 2)?))).collect()
        })
        .await
    }

    pub async fn small_payloads(
        &self,
        keys: &[JobKey],
        bytes_max: usize,
    ) -> Result<Vec<(JobKey, Payload)>, StoreError> {
        self.read(async |reader| {
            let (namespaces, ids) = key_columns(keys);
            let bytes_max = i32::try_from(bytes_max).unwrap_or(i32::MAX);
            let rows = reader.query(Sql::ReadSmallPayloads, &[&namespaces, &ids, &bytes_max]).await?;
            let mut names = Names::default();
            rows.iter().map(|row| Ok((names.key(row)?, payload(row, 2)?))).collect()
        })
        .await
    }

    pub async fn jobs(&self, query: &JobQuery) -> Result<Vec<Job>, StoreError> {
        self.read(async |reader| {
            let rows = self.list(&reader, query, query.limit, false).await?;
            let mut names = Names::default();
            rows.iter().map(|row| names.job(row)).collect()
        })
        .await
    }

    pub async fn count(&self, query: &JobQuery, max: usize) -> Result<usize, StoreError> {
        self.read(async |reader| {
            let rows = self.list(&reader, query, max, true).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            Ok(count as usize)
        })
        .await
    }

    /// Newest first, in each namespace by primary key or by the index of the filter; then merged.
    async fn list(&self, reader: &Lent, query: &JobQuery, limit: usize, count: bool) -> Result<Vec<Row>, Failure> {
        let namespaces = match &query.namespace {
            Some(namespace) => vec![namespace.to_string()],
            None => self.namespaces(reader).await?,
        };
        let mut filter = Filter::default();
        let namespaces = filter.with(namespaces, Type::TEXT_ARRAY);
        let limit = filter.with(limit as i64, Type::INT8);
        let selects: Vec<String> = [false, true]
            .into_iter()
            .filter(|finished| may_hold(query, *finished))
            .flat_map(|finished| parts(query, finished))
            .map(|part| select(query, &part, &mut filter, &limit))
            .collect();
        if selects.is_empty() {
            return Ok(Vec::new());
        }
        let union = selects.join(" UNION ALL ");
        let what = if count { "count(*)" } else { "*" };
        let (union, order) = match &query.name {
            Some(name) => {
                (by_name(query, name, &union, &mut filter, &limit), "ORDER BY name DESC, id DESC, namespace DESC")
            }
            None => (union, "ORDER BY id DESC, namespace DESC"),
        };
        let text = format!(
            "SELECT {what} FROM (SELECT j.* FROM unnest({namespaces}) AS n (namespace) CROSS JOIN LATERAL ({union}) j \
             {order} LIMIT {limit}) page",
        );
        let text = if count { text } else { format!("{text} {order}") };
        filter.query(reader, &in_schema(&text, &self.target.schema)).await
    }

    pub async fn ahead(&self, job: &Job, max: usize) -> Result<usize, StoreError> {
        self.read(async |reader| {
            let mut filter = Filter::default();
            let namespace = filter.with(job.key.namespace.to_string(), Type::TEXT);
            let lane = filter.with(Uuid::from_u128(job.lane.0), Type::UUID);
            let (priority, seq) = (filter.with(job.priority, Type::INT4), filter.with(job.seq, Type::INT8));
            let max = filter.with(max as i64, Type::INT8);
            // Two bounds: a comparison of both columns at once does not end the walk where they are reached.
            let lane =
                format!("SELECT FROM windlass.jobs WHERE namespace = {namespace} AND lane = {lane} AND state = 2");
            let text = format!(
                "SELECT count(*) FROM (({lane} AND priority < {priority} LIMIT {max}) UNION ALL \
                 ({lane} AND priority = {priority} AND seq < {seq} LIMIT {max}) LIMIT {max}) before"
            );
            let rows = filter.query(&reader, &in_schema(&text, &self.target.schema)).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            Ok(count as usize)
        })
        .await
    }

    /// Steps from queue to queue over jobs_claim, however many jobs they hold; numbers grow with each that is queued.
    pub async fn oldest_pending(&self) -> Result<Option<Job>, StoreError> {
        let found = self
            .read(async |reader| {
                let mut filter = Filter::default();
                let max = filter.with(QUEUES_MAX as i64, Type::INT8);
                let head = "ORDER BY j.namespace, j.lane, j.priority, j.seq LIMIT 1";
                let text = format!(
                    "WITH RECURSIVE heads AS ((SELECT j.namespace, j.lane, j.priority, j.seq, j.id FROM windlass.jobs j \
                     WHERE j.state = 2 {head}) UNION ALL SELECT n.* FROM heads h CROSS JOIN LATERAL (SELECT j.namespace, \
                     j.lane, j.priority, j.seq, j.id FROM windlass.jobs j WHERE j.state = 2 AND (j.namespace, j.lane, \
                     j.priority) > (h.namespace, h.lane, h.priority) {head}) n) \
                     SELECT namespace, id FROM (SELECT * FROM heads LIMIT {max}) looked ORDER BY seq LIMIT 1"
                );
                let rows = filter.query(&reader, &in_schema(&text, &self.target.schema)).await?;
                rows.first().map(|row| Names::default().key(row)).transpose()
            })
            .await?;
        match found {
            Some(key) => self.job(&key).await,
            None => Ok(None),
        }
    }

    /// In the same way, within one namespace.
    pub async fn queue_heads(&self, namespace: &Namespace, limit: usize) -> Result<Vec<Job>, StoreError> {
        let keys = self
            .read(async |reader| {
                let mut filter = Filter::default();
                let of = filter.with(namespace.to_string(), Type::TEXT);
                let (max, limit) =
                    (filter.with(QUEUES_MAX as i64, Type::INT8), filter.with(limit as i64, Type::INT8));
                let head = "ORDER BY j.namespace, j.lane, j.priority, j.seq LIMIT 1";
                let text = format!(
                    "WITH RECURSIVE heads AS ((SELECT j.namespace, j.lane, j.priority, j.seq, j.id FROM windlass.jobs j \
                     WHERE j.state = 2 AND j.namespace = {of} {head}) UNION ALL SELECT n.* FROM heads h CROSS JOIN LATERAL \
                     (SELECT j.namespace, j.lane, j.priority, j.seq, j.id FROM windlass.jobs j WHERE j.state = 2 AND \
                     j.namespace = {of} AND (j.lane, j.priority) > (h.lane, h.priority) {head}) n) \
                     SELECT namespace, id FROM (SELECT * FROM heads LIMIT {max}) looked ORDER BY seq LIMIT {limit}"
                );
                let rows = filter.query(&reader, &in_schema(&text, &self.target.schema)).await?;
                rows.iter().map(|row| Names::default().key(row)).collect::<Result<Vec<_>, _>>()
            })
            .await?;
        let mut found = Vec::with_capacity(keys.len());
        for key in &keys {
            found.extend(self.job(key).await?);
        }
        Ok(found)
    }

    /// Steps over primary keys, however many rows a namespace has.
    pub async fn namespaces_in_use(&self, limit: usize) -> Result<Vec<Namespace>, StoreError> {
        self.read(async |reader| {
            let mut filter = Filter::default();
            let limit = filter.with(limit as i64, Type::INT8);
            let next = ["records", "jobs", "jobs_done"]
                .map(|table| format!("(SELECT min(t.namespace) FROM windlass.{table} t WHERE t.namespace > found.namespace)"))
                .join(", ");
            let text = format!(
                "WITH RECURSIVE found AS (SELECT CAST('' AS text) COLLATE \"C\" AS namespace UNION ALL SELECT LEAST({next}) FROM found \
                 WHERE found.namespace IS NOT NULL) SELECT namespace FROM found WHERE namespace <> '' LIMIT {limit}"
            );
            let rows = filter.query(&reader, &in_schema(&text, &self.target.schema)).await?;
            rows.iter().map(|row| namespace(row.try_get(0)?)).collect()
        })
        .await
    }

    pub async fn body(&self, key: &JobKey) -> Result<Option<JobBody>, StoreError> {
        self.read(async |reader| {
            let rows = reader.query(Sql::ReadBody, &[&key.namespace.as_str(), &key.id.0]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let attempts = row.try_get::<_, Vec<&str>>(2)?;
            let attempts = attempts.into_iter().map(serde_json::from_str::<Attempt>).collect::<Result<_, _>>()?;
            Ok(Some(JobBody {
                payload: payload(row, 0)?,
                result: row.try_get::<_, Option<&[u8]>>(1)?.map(Payload::from),
                attempts,
                children: row.try_get::<_, Vec<Uuid>>(3)?.into_iter().map(JobId).collect(),
            }))
        })
        .await
    }

    pub async fn record(&self, key: &RecordKey) -> Result<Option<Record>, StoreError> {
        self.read(async |reader| {
            let mut filter = Filter::default();
            let [namespace, kind, name] = [key.namespace.to_string(), key.kind.to_string(), key.key.to_string()]
                .map(|text| filter.with(text, Type::TEXT));
            let text = format!(
                "SELECT r.namespace, r.kind, r.key, r.version, r.parent, r.value, r.facets, r.due \
                 FROM windlass.records r WHERE r.namespace = {namespace} AND r.kind = {kind} AND r.key = {name}"
            );
            let rows = filter.query(&reader, &in_schema(&text, &self.target.schema)).await?;
            let mut names = Names::default();
            rows.iter().map(|row| names.record(row)).next().transpose()
        })
        .await
    }

    pub async fn count_records(&self, query: &RecordQuery) -> Result<usize, StoreError> {
        self.read(async |reader| {
            let mut filter = Filter::default();
            let (from, text) = which_records(&mut filter, query);
            let text = format!("SELECT count(*) FROM {from} WHERE {text}");
            let rows = filter.query(&reader, &in_schema(&text, &self.target.schema)).await?;
            Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0)) as usize)
        })
        .await
    }

    pub async fn records(&self, query: &RecordQuery) -> Result<Vec<Record>, StoreError> {
        self.read(async |reader| {
            let mut filter = Filter::default();
            let (from, text) = which_records(&mut filter, query);
            let limit = filter.with(query.limit as i64, Type::INT8);
            let text = format!(
                "SELECT r.namespace, r.kind, r.key, r.version, r.parent, r.value, r.facets, r.due \
                 FROM {from} WHERE {text} ORDER BY r.key LIMIT {limit}"
            );
            let rows = filter.query(&reader, &in_schema(&text, &self.target.schema)).await?;
            let mut names = Names::default();
            rows.iter().map(|row| names.record(row)).collect()
        })
        .await
    }

    pub async fn read_log(&self, key: &JobKey, after: u64, bytes_max: usize) -> Result<Vec<LogAppend>, StoreError> {
        self.read(async |reader| {
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            let bytes = i64::try_from(bytes_max).unwrap_or(i64::MAX).max(1);
            let rows = reader.query(Sql::ReadLog, &[&key.namespace.as_str(), &key.id.0, &after, &bytes]).await?;
            let append = |row: &Row| {
                Ok(LogAppend {
                    job: key.clone(),
                    piece: row.try_get::<_, i64>(0)? as u64,
                    attempt: row.try_get::<_, i32>(1)? as u32,
                    at: Timestamp(row.try_get(2)?),
                    data: payload(row, 3)?,
                    form: LogForm::from_code(row.try_get(4)?),
                })
            };
            rows.iter().map(append).collect()
        })
        .await
    }

    pub async fn due(&self, limit: usize) -> Result<DuePage, StoreError> {
        for _ in 0..CLOCK_TRIES_MAX {
            match self.due_now(limit).await {
                Ok(Some(page)) => return Ok(page),
                Ok(None) => self.set_clock().await?,
                Err(error) => return Err(error),
            }
        }
        Err(Failure::Clock.into_store_error())
    }

    /// None: first agree on the time.
    async fn due_now(&self, limit: usize) -> Result<Option<DuePage>, StoreError> {
        self.read(async |reader| {
            let reader = &*reader;
            // One more than asked for, because the next one tells when to look again.
            let more = i64::try_from(limit).unwrap_or(i64::MAX - 1) + 1;
            let sent = self.monotonic();
            let clock = send(async move { reader.query(Sql::Clock, &[]).await });
            let live = send(async move { reader.query(Sql::DueJobs, &[&more]).await });
            let done = send(async move { reader.query(Sql::DueDone, &[&more]).await });
            let records = send(async move { reader.query(Sql::DueRecords, &[&more]).await });
            let told = self.told(&clock.await?, sent)?;
            let now = match self.now_told(&told) {
                Some(now) => now,
                None => return Ok(None),
            };
            let mut names = Names::default();
            let mut all = Vec::new();
            for row in live.await?.iter().chain(&done.await?) {
                let key = JobKey { namespace: names.get(row.try_get(1)?)?, id: JobId(row.try_get(2)?) };
                all.push((Timestamp(row.try_get(0)?), Due::Job(key)));
            }
            for row in records.await? {
                let text = |at: usize| row.try_get::<_, &str>(at).map(Arc::<str>::from);
                let key = RecordKey { namespace: names.get(row.try_get(1)?)?, kind: text(2)?, key: text(3)? };
                all.push((Timestamp(row.try_get(0)?), Due::Record(key)));
            }
            all.sort();
            let due = all.iter().take_while(|(at, _)| *at <= now).take(limit).count();
            let next = all.get(due).map(|(at, _)| *at);
            let due = all.into_iter().take(due).map(|(_, due)| due).collect();
            let wall = self.clock.as_ref().map_or(told.database, |clock| clock.wall());
            Ok(Some(DuePage { now, wall, steps: self.clock_steps(), due, next }))
        })
        .await
    }
}

/// How often a clock may be set while one looks what is due.
const CLOCK_TRIES_MAX: usize = 3;

/// Whether the table can hold what is asked for at all.
fn may_hold(query: &JobQuery, finished: bool) -> bool {
    let by_state = query.states.is_empty() || query.states.iter().any(|state| state.is_final() == finished);
    by_state && !(finished && query.holder.is_some())
}

/// Jobs that one index finds.
struct Part {
    from: &'static str,
    finished: bool,
    states: String,
}

/// Where only the states are asked for, each has an index of its own: millions of waiting jobs are not looked through for the few
/// that are held. States are written out and not bound, so that partial indexes can be chosen.
fn parts(query: &JobQuery, finished: bool) -> Vec<Part> {
    let from = if finished { "windlass.jobs_done j" } else { "windlass.jobs j" };
    let wanted: Vec<State> = query.states.iter().copied().filter(|state| state.is_final() == finished).collect();
    let is_in = |states: &[State]| {
        let codes: Vec<String> = states.iter().map(|state| state.code().to_string()).collect();
        if codes.is_empty() { String::new() } else { format!(" AND j.state IN ({})", codes.join(", ")) }
    };
    let by_state = [query.name.is_none(), query.facet.is_none(), query.run.is_none(), query.holder.is_none()];
    if finished || wanted.is_empty() || by_state.contains(&false) {
        return vec![Part { from, finished, states: is_in(&wanted) }];
    }
    let (held, others): (Vec<State>, Vec<State>) = wanted.into_iter().partition(|state| state.is_held());
    let part = |states: &[State], more: &str| Part { from, finished, states: is_in(states) + more };
    let mut parts: Vec<Part> = others.iter().map(|state| part(std::slice::from_ref(state), "")).collect();
    if !held.is_empty() {
        // Follows from the state, but lets PostgreSQL choose jobs_held. Where very many are held it walks along the primary key.
        parts.push(part(&held, " AND j.worker IS NOT NULL"));
    }
    parts
}

fn select(query: &JobQuery, part: &Part, filter: &mut Filter, limit: &str) -> String {
    let mut from = part.from.to_owned();
    let mut text = match query.name {
        Some(_) => "j.namespace = m.namespace AND j.id = m.id".to_owned(),
        None => "j.namespace = n.namespace".to_owned(),
    };
    text += &part.states;
    if let Some(facet) = &query.facet {
        from += " JOIN windlass.job_facets f USING (namespace, id)";
        text += &facet_is(filter, facet);
    }
    if let Some(run) = query.run {
        text += &format!(" AND j.run = {}", filter.with(run.0, Type::UUID));
    }
    if let Some(worker) = &query.holder {
        text += &format!(" AND j.worker = {}", filter.with(worker.to_string(), Type::TEXT));
    }
    if let (Some((namespace, id)), None) = (&query.before, &query.name) {
        let id = filter.with(id.0, Type::UUID);
        let namespace = filter.with(namespace.to_string(), Type::TEXT);
        text += &format!(" AND j.id <= {id} AND (j.id < {id} OR j.namespace < {namespace})");
    }
    let columns = columns::read("j", part.finished);
    match query.name {
        Some(_) => format!("(SELECT {columns} FROM {from} WHERE {text})"),
        None => format!("(SELECT {columns} FROM {from} WHERE {text} ORDER BY j.id DESC LIMIT {limit})"),
    }
}

/// Along the primary key of job_facets, where a name is kept under no name, from the last one that fits; each is then looked up.
fn by_name(query: &JobQuery, name: &NamePrefix, jobs: &str, filter: &mut Filter, limit: &str) -> String {
    let prefix = filter.with(name.prefix.to_string(), Type::TEXT);
    let last = filter.with(name.last(), Type::TEXT);
    let (namespace, id) = match &query.before {
        Some((namespace, id)) => (namespace.to_string(), id.0),
        None => (String::new(), Uuid::max()),
    };
    let (namespace, id) = (filter.with(namespace, Type::TEXT), filter.with(id, Type::UUID));
    format!(
        "SELECT j.*, m.value AS name FROM windlass.job_facets m CROSS JOIN LATERAL ({jobs}) j \
         WHERE m.namespace = n.namespace AND m.name = '' AND m.value >= {prefix} AND (m.value, m.id) <= ({last}, {id}) \
         AND (m.value <> {last} OR m.id <> {id} OR m.namespace < {namespace}) \
         ORDER BY m.value DESC, m.id DESC LIMIT {limit}"
    )
}

/// Tables and conditions of a query for records.
fn which_records(filter: &mut Filter, query: &RecordQuery) -> (String, String) {
    let namespace = filter.with(query.namespace.to_string(), Type::TEXT);
    let kind = filter.with(query.kind.to_string(), Type::TEXT);
    let mut text = format!("r.namespace = {namespace} AND r.kind = {kind}");
    if let Some(parent) = &query.parent {
        text += &format!(" AND r.parent = {}", filter.with(parent.to_string(), Type::TEXT));
    }
    let mut from = "windlass.records r".to_owned();
    if let Some(facet) = &query.facet {
        from += " JOIN windlass.record_facets f USING (namespace, kind, key)";
        text += &facet_is(filter, facet);
    }
    if let Some(after) = &query.after {
        text += &format!(" AND r.key > {}", filter.with(after.to_string(), Type::TEXT));
    }
    (from, text)
}

fn facet_is(filter: &mut Filter, facet: &Facet) -> String {
    let name = filter.with(facet.name.to_string(), Type::TEXT);
    let value = filter.with(facet.value.to_string(), Type::TEXT);
    format!(" AND f.name = {name} AND f.value = {value}")
}
