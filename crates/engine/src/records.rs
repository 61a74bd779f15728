//! Records as typed values: how everything above the rules reads them, one by one and all of a query.
//!
//! Two things are decided here for every reader. What has expired is gone, whether or not a sweep ran. And what cannot be read is
//! told: to whoever needs it ([`read`]), or, where one goes over all of them and the others count as well, to the log ([`readable`]).

use crate::{
    engine::Engine,
    error::Error,
    store::{RecordQuery, StoreError},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{marker::PhantomData, sync::Arc};
use windlass_core::{
    Namespace, Record, RecordKey, Timestamp,
    commands::records::{DeleteRecord, Expect, KINDS, PutRecord},
};

/// A value as it was read.
#[derive(Clone, Debug)]
pub struct Kept<T> {
    pub key: Arc<str>,
    pub value: T,
    pub version: u64,
    pub expires_at: Option<Timestamp>,
    /// Of the value as text.
    pub bytes: usize,
}

impl<T> Kept<T> {
    pub fn unchanged(&self) -> Expect {
        Expect::Version(self.version)
    }
}

/// What to expect of something that was looked for.
pub fn as_found<T>(found: Option<&Kept<T>>) -> Expect {
    found.map_or(Expect::Nothing, Kept::unchanged)
}

pub fn read<T: DeserializeOwned>(record: &Record) -> Result<Kept<T>, Error> {
    let RecordKey { kind, key, .. } = &record.key;
    let value = serde_json::from_str(&record.value)
        .map_err(|error| StoreError::Corrupt(format!("the {kind} record {key:?} cannot be read: {error}")))?;
    Ok(Kept { key: key.clone(), value, version: record.version, expires_at: record.due, bytes: record.value.len() })
}

/// None, and a line in the log, where it cannot be read.
pub fn readable<T: DeserializeOwned>(record: &Record) -> Option<T> {
    read(record).inspect_err(|error| tracing::error!(%error, "a record is left out")).ok().map(|kept| kept.value)
}

/// A kind of record that the rules do not know, and the type of its values.
pub struct Kind<T>(pub &'static str, PhantomData<fn() -> T>);

impl<T> Clone for Kind<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Kind<T> {}

impl<T> Kind<T> {
    pub const fn new(name: &'static str) -> Self {
        Self(name, PhantomData)
    }

    pub fn key(self, namespace: &Namespace, name: &str) -> RecordKey {
        RecordKey { namespace: namespace.clone(), kind: self.0.into(), key: name.into() }
    }

    pub fn delete(self, namespace: &Namespace, name: &str, expect: Expect) -> DeleteRecord {
        DeleteRecord { key: self.key(namespace, name), expect }
    }

    /// All of them; narrow it down by what is left open.
    pub fn query(self, namespace: &Namespace) -> RecordQuery {
        RecordQuery::all(namespace.clone(), self.0)
    }
}

impl<T: DeserializeOwned> Kind<T> {
    pub async fn find(self, engine: &Engine, namespace: &Namespace, name: &str) -> Result<Option<Kept<T>>, Error> {
        engine.record(&self.key(namespace, name)).await?.as_ref().map(read).transpose()
    }
}

impl<T: Serialize> Kind<T> {
    pub fn put(self, namespace: &Namespace, name: &str, value: &T, expect: Expect) -> PutRecord {
        let value = serde_json::to_string(value).expect("records are plain data").into();
        PutRecord { key: self.key(namespace, name), expect, parent: None, value, facets: Vec::new(), expires_at: None }
    }
}

/// All records that a query finds, by key, a page at a time.
pub struct Pages<'a> {
    engine: &'a Engine,
    query: Option<RecordQuery>,
}

impl Pages<'_> {
    pub async fn next(&mut self) -> Result<Option<Vec<Record>>, Error> {
        let Some(query) = &mut self.query else { return Ok(None) };
        let mut page = self.engine.store().records(query).await?;
        match page.last().filter(|_| page.len() == query.limit) {
            Some(last) => query.after = Some(last.key.key.clone()),
            None => self.query = None,
        }
        self.engine.leave_out_expired(&mut page).await?;
        Ok(Some(page))
    }

    /// How many are read at a time from here on.
    pub fn read_at_once(&mut self, limit: usize) {
        if let Some(query) = &mut self.query {
            query.limit = limit;
        }
    }
}

impl Engine {
    /// One record, as it was last committed.
    pub async fn record(&self, key: &RecordKey) -> Result<Option<Record>, Error> {
        let mut found: Vec<Record> = self.store().record(key).await?.into_iter().collect();
        self.leave_out_expired(&mut found).await?;
        Ok(found.pop())
    }

    /// The first of those that a query finds, as many as it asks for; fewer where some of them have expired.
    pub async fn records(&self, query: &RecordQuery) -> Result<Vec<Record>, Error> {
        let mut found = self.store().records(query).await?;
        self.leave_out_expired(&mut found).await?;
        Ok(found)
    }

    /// All of them, in pages of the query's limit.
    pub fn pages(&self, query: RecordQuery) -> Pages<'_> {
        Pages { engine: self, query: Some(query) }
    }

    /// All of them at once, each as it is read, until the caller has enough.
    pub async fn each_record<T: DeserializeOwned>(
        &self,
        query: RecordQuery,
        mut take: impl FnMut(Kept<T>) -> bool,
    ) -> Result<(), Error> {
        let mut pages = self.pages(query);
        while let Some(page) = pages.next().await? {
            for record in &page {
                if !take(read(record)?) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// All of them that can be read.
    pub async fn readable_records<T: DeserializeOwned>(&self, query: RecordQuery) -> Result<Vec<T>, Error> {
        let (mut pages, mut all) = (self.pages(query), Vec::new());
        while let Some(page) = pages.next().await? {
            all.extend(page.iter().filter_map(readable::<T>));
        }
        Ok(all)
    }

    /// What the rules keep has a due time of another meaning. The time is asked for only where it decides.
    async fn leave_out_expired(&self, found: &mut Vec<Record>) -> Result<(), Error> {
        let expires = |record: &Record| record.due.is_some() && !KINDS.contains(&&*record.key.kind);
        if found.iter().any(expires) {
            let now = self.now().await?;
            found.retain(|record| !expires(record) || !record.is_expired(now));
        }
        Ok(())
    }
}
