//! Records of a namespace that is always the same, such as those a dialect keeps in its own.

use crate::{app::App, problem::Result};
use serde::{Serialize, de::DeserializeOwned};
use windlass_core::{
    Namespace, Record, RecordKey,
    commands::records::{DeleteRecord, Expect, PutRecord},
};
use windlass_engine::{
    records::{Kept, Kind, read},
    store::RecordQuery,
};

pub struct Records<T> {
    kind: Kind<T>,
    namespace: fn() -> Namespace,
}

impl<T> Records<T> {
    pub const fn new(name: &'static str, namespace: fn() -> Namespace) -> Self {
        Self { kind: Kind::new(name), namespace }
    }

    pub fn key(&self, name: &str) -> RecordKey {
        self.kind.key(&(self.namespace)(), name)
    }

    pub fn delete(&self, name: &str, expect: Expect) -> DeleteRecord {
        self.kind.delete(&(self.namespace)(), name, expect)
    }

    /// All of them; narrow it down by what is left open.
    pub fn query(&self) -> RecordQuery {
        self.kind.query(&(self.namespace)())
    }
}

impl<T: DeserializeOwned> Records<T> {
    pub fn read(&self, record: &Record) -> Result<Kept<T>> {
        Ok(read(record)?)
    }

    pub async fn find(&self, app: &App, name: &str) -> Result<Option<Kept<T>>> {
        Ok(self.kind.find(&app.engine, &(self.namespace)(), name).await?)
    }

    /// All of them, or those below a parent, by key, until the caller has enough.
    pub async fn each(&self, app: &App, parent: Option<&str>, take: impl FnMut(Kept<T>) -> bool) -> Result<()> {
        Ok(app.engine.each_record(RecordQuery { parent: parent.map(Into::into), ..self.query() }, take).await?)
    }
}

impl<T: Serialize> Records<T> {
    pub fn put(&self, name: &str, value: &T, expect: Expect) -> PutRecord {
        self.kind.put(&(self.namespace)(), name, value, expect)
    }
}
