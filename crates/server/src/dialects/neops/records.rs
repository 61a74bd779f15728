//! Records that this dialect keeps beside its jobs, workers and runs.

use super::namespace;
use crate::{
    app::App,
    problem::{Code, Problem},
};
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;
use windlass_core::{
    Record, RecordKey,
    commands::records::{DeleteRecord, Expect, PutRecord},
};
use windlass_engine::store::RecordQuery;

const PAGE: usize = 500;

/// A kind of record, and the type of its values.
pub struct Kind<T>(pub &'static str, PhantomData<fn() -> T>);

/// A value as it was read.
#[derive(Clone, Debug)]
pub struct Kept<T> {
    pub key: String,
    pub value: T,
    pub version: u64,
    /// Of the value as text.
    pub bytes: usize,
}

impl<T> Kept<T> {
    pub fn unchanged(&self) -> Expect {
        Expect::Version(self.version)
    }
}

impl<T> Kind<T> {
    pub const fn new(name: &'static str) -> Self {
        Self(name, PhantomData)
    }

    pub fn key(&self, name: &str) -> RecordKey {
        RecordKey { namespace: namespace(), kind: self.0.into(), key: name.into() }
    }

    pub fn delete(&self, name: &str, expect: Expect) -> DeleteRecord {
        DeleteRecord { key: self.key(name), expect }
    }

    /// Those after a key, up to a page.
    pub fn query(&self, parent: Option<&str>) -> RecordQuery {
        let (kind, parent) = (self.0.into(), parent.map(Into::into));
        RecordQuery { namespace: namespace(), kind, parent, facet: None, after: None, limit: PAGE }
    }
}

impl<T: DeserializeOwned> Kind<T> {
    pub async fn find(&self, app: &App, name: &str) -> Result<Option<Kept<T>>, Problem> {
        let found = app.engine.store().record(&self.key(name)).await?;
        found.map(|record| self.read(&record)).transpose()
    }

    /// All of them, or those below a parent, by key, until the caller has enough.
    pub async fn each(
        &self,
        app: &App,
        parent: Option<&str>,
        mut take: impl FnMut(Kept<T>) -> bool,
    ) -> Result<(), Problem> {
        let mut query = self.query(parent);
        loop {
            let page = app.engine.store().records(&query).await?;
            query.after = page.last().filter(|_| page.len() == query.limit).map(|last| last.key.key.clone());
            for record in &page {
                if !take(self.read(record)?) {
                    return Ok(());
                }
            }
            if query.after.is_none() {
                return Ok(());
            }
        }
    }

    pub fn read(&self, record: &Record) -> Result<Kept<T>, Problem> {
        let damaged = |error| {
            tracing::error!(kind = self.0, key = &*record.key.key, %error, "a record cannot be read");
            Problem::new(Code::Damaged, "the store is damaged; the server's log says more")
        };
        let value = serde_json::from_str(&record.value).map_err(damaged)?;
        Ok(Kept { key: record.key.key.to_string(), value, version: record.version, bytes: record.value.len() })
    }
}

impl<T: Serialize> Kind<T> {
    pub fn put(&self, name: &str, value: &T, expect: Expect) -> PutRecord {
        let value = serde_json::to_string(value).expect("records are plain data").into();
        PutRecord { key: self.key(name), expect, parent: None, value, facets: Vec::new(), expires_at: None }
    }
}
