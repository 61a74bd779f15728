//! The records this dialect keeps: users, device logins, providers and what they answered. What has expired is gone, whether or not
//! a sweep ran.

use super::namespace;
use crate::{
    app::App,
    problem::{Code, Problem},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{marker::PhantomData, sync::Arc};
use windlass_core::{
    Facet, Record, RecordKey, Timestamp,
    commands::records::{DeleteRecord, Expect, PutRecord},
};
use windlass_engine::store::RecordQuery;

/// A kind of record, and the type of its values.
pub struct Kind<T>(pub &'static str, PhantomData<fn() -> T>);

impl<T> Kind<T> {
    pub const fn new(name: &'static str) -> Self {
        Self(name, PhantomData)
    }

    pub fn key(&self, name: &str) -> RecordKey {
        RecordKey { namespace: namespace(), kind: self.0.into(), key: name.into() }
    }

    /// All of them; narrow it down by what is left open.
    pub fn query(&self, limit: usize) -> RecordQuery {
        RecordQuery { namespace: namespace(), kind: self.0.into(), parent: None, facet: None, after: None, limit }
    }

    pub fn delete(&self, name: &str, expect: Expect) -> DeleteRecord {
        DeleteRecord { key: self.key(name), expect }
    }
}

/// A value as it was read.
#[derive(Clone)]
pub struct Kept<T> {
    pub value: T,
    pub version: u64,
    pub expires_at: Option<Timestamp>,
}

impl<T> Kept<T> {
    pub fn unchanged(&self) -> Expect {
        Expect::Version(self.version)
    }
}

impl<T: DeserializeOwned> Kind<T> {
    pub async fn find(&self, app: &App, name: &str) -> Result<Option<Kept<T>>, Problem> {
        let Some(record) = app.engine.store().record(&self.key(name)).await? else { return Ok(None) };
        let kept = self.read(&record)?;
        let gone = match kept.expires_at {
            Some(at) => at <= app.engine.now().await?,
            None => false,
        };
        Ok(Some(kept).filter(|_| !gone))
    }

    pub fn read(&self, record: &Record) -> Result<Kept<T>, Problem> {
        let damaged = |error| {
            tracing::error!(kind = self.0, key = &*record.key.key, %error, "a record cannot be read");
            Problem::new(Code::Damaged, "the store is damaged; the server's log says more")
        };
        let value = serde_json::from_str(&record.value).map_err(damaged)?;
        Ok(Kept { value, version: record.version, expires_at: record.due })
    }
}

impl<T: Serialize> Kind<T> {
    pub fn put(&self, name: &str, value: &T, expect: Expect) -> PutRecord {
        let value: Arc<str> = serde_json::to_string(value).expect("records are plain data").into();
        PutRecord { key: self.key(name), expect, parent: None, value, facets: Vec::<Facet>::new(), expires_at: None }
    }
}
