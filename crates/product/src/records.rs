//! How items and what belongs to them are kept: typed records of one namespace, read, listed, and written several at once.
//!
//! A change is worked out on what was read, and then written all or nothing under the versions it was worked out on. If somebody else
//! was faster, it is worked out again; so rules that span several records are met under races without a lock.

use crate::{
    Error, Products,
    rules::{
        bom::Row,
        item::{Item, Project, Revision},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{marker::PhantomData, sync::Arc};
use windlass_core::{
    Command, Facet, Record, RecordKey, Refusal, Reply,
    commands::{
        all::All,
        records::{Expect, PutRecord},
        tell::Tell,
    },
};
use windlass_engine::{records::read, store::RecordQuery};

pub use windlass_engine::records::{Kept, Kind, as_found};

// The names are those under which stores have them since the first version.
pub const ITEM: Kind<Item> = Kind::new("silo_item");
/// Part numbers by age, newest first: lists are read along it.
pub const ITEM_AGE: Kind<String> = Kind::new("silo_item_age");
pub const REVISION: Kind<Revision> = Kind::new("silo_revision");
pub const PROJECT: Kind<Project> = Kind::new("silo_project");
/// The part numbers of a project's items: listed under its code.
pub const MEMBER: Kind<String> = Kind::new("silo_member");
/// The last number given out in a category.
pub const COUNTER: Kind<u64> = Kind::new("silo_counter");
pub const BOM: Kind<Row> = Kind::new("silo_bom");
/// One record that every change of the BOM writes: rows are checked against all the others.
pub const BOM_EPOCH: Kind<u64> = Kind::new("silo_bom_epoch");

const PAGE: usize = 1_000;

pub async fn get<T: DeserializeOwned>(
    products: &Products,
    kind: Kind<T>,
    name: &str,
) -> Result<Option<Kept<T>>, Error> {
    // No name is longer than this; asking for it would be refused in other words.
    if name.len() > 256 {
        return Ok(None);
    }
    Ok(kind.find(products.engine(), products.namespace(), name).await?)
}

/// Which of a kind.
#[derive(Clone, Copy, Default)]
pub enum Of<'a> {
    #[default]
    All,
    Under(&'a str),
    With(&'static str, &'a str),
}

/// All of them, by key.
pub async fn list<T: DeserializeOwned>(products: &Products, kind: Kind<T>, of: Of<'_>) -> Result<Vec<Kept<T>>, Error> {
    raw(products, kind, of).await?.iter().map(decode).collect()
}

/// All of them, by key, unread.
pub async fn raw<T>(products: &Products, kind: Kind<T>, of: Of<'_>) -> Result<Vec<Record>, Error> {
    let (mut all, mut pages) = (Vec::new(), products.engine().pages(query(products, kind, of, PAGE)));
    while let Some(page) = pages.next().await? {
        all.extend(page);
    }
    Ok(all)
}

fn decode<T: DeserializeOwned>(record: &Record) -> Result<Kept<T>, Error> {
    Ok(read(record)?)
}

/// A page of them, by key, after a key, unread.
pub async fn raw_page<T>(
    products: &Products,
    kind: Kind<T>,
    of: Of<'_>,
    after: Option<Arc<str>>,
    limit: usize,
) -> Result<Vec<Record>, Error> {
    let query = RecordQuery { after, ..query(products, kind, of, limit) };
    Ok(products.engine().store().records(&query).await?)
}

/// A page of them, by key, after a key.
pub async fn page<T: DeserializeOwned>(
    products: &Products,
    kind: Kind<T>,
    of: Of<'_>,
    after: Option<Arc<str>>,
    limit: usize,
) -> Result<Vec<Kept<T>>, Error> {
    raw_page(products, kind, of, after, limit).await?.iter().map(decode).collect()
}

/// How many there are.
pub async fn count<T>(products: &Products, kind: Kind<T>, of: Of<'_>) -> Result<usize, Error> {
    Ok(products.engine().store().count_records(&query(products, kind, of, PAGE)).await?)
}

fn query<T>(products: &Products, kind: Kind<T>, of: Of<'_>, limit: usize) -> RecordQuery {
    let (parent, facet) = match of {
        Of::All => (None, None),
        Of::Under(parent) => (Some(parent.into()), None),
        Of::With(name, value) => (None, Some(Facet::new(name, value))),
    };
    RecordQuery { parent, facet, limit, ..kind.query(products.namespace()) }
}

pub async fn has<T>(products: &Products, kind: Kind<T>, of: Of<'_>) -> Result<bool, Error> {
    Ok(!products.engine().store().records(&query(products, kind, of, 1)).await?.is_empty())
}

/// A record to be written.
pub struct Put<'a, T> {
    key: RecordKey,
    parent: Option<&'a str>,
    facets: Vec<Facet>,
    expect: Expect,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Serialize> Put<'a, T> {
    pub fn new(products: &Products, kind: Kind<T>, name: &str, expect: Expect) -> Self {
        Self { key: kind.key(products.namespace(), name), parent: None, facets: Vec::new(), expect, of: PhantomData }
    }
    pub fn under(mut self, parent: &'a str) -> Self {
        self.parent = Some(parent);
        self
    }
    pub fn facet(mut self, name: &str, value: &str) -> Self {
        self.facets.push(Facet::new(name, value));
        self
    }
    pub fn value(self, value: &T) -> Result<Command, Error> {
        Ok(self.text(serde_json::to_string(value)?.into()))
    }
    /// A value that is JSON text already.
    pub fn text(self, value: Arc<str>) -> Command {
        let Self { key, parent, facets, expect, .. } = self;
        PutRecord { key, expect, parent: parent.map(Arc::from), value, facets, expires_at: None }.into()
    }
}

pub fn delete<T>(products: &Products, kind: Kind<T>, name: &str, expect: Expect) -> Command {
    kind.delete(products.namespace(), name, expect).into()
}

/// What deletes all of these, whatever they have become meanwhile.
pub async fn delete_all<T>(products: &Products, kind: Kind<T>, of: Of<'_>) -> Result<Vec<Command>, Error> {
    let found = raw(products, kind, of).await?;
    Ok(found.iter().map(|record| delete(products, kind, &record.key.key, Expect::Anything)).collect())
}

/// An event that is told if the rest is done.
pub fn tell(products: &Products, topic: &str, data: &Value) -> Command {
    Tell { namespace: products.namespace().clone(), topic: topic.into(), data: data.to_string().into() }.into()
}

/// What a change wants written, and what is answered once it is.
pub struct Change<T> {
    pub commands: Vec<Command>,
    pub answer: T,
}

/// How often a change is worked out again. Each time, somebody else's got through.
pub const TRIES: usize = 100;

/// Works a change out and writes it, again and again while others are faster. A macro, because a closure that borrows what
/// its caller has cannot be shown to be `Send` by today's compiler.
#[macro_export]
macro_rules! write_change {
    ($products:expr, $error:ty, $work_out:block) => {{
        let (mut tries, mut permit) = (0, None);
        loop {
            let worked_out: Result<$crate::records::Change<_>, $error> = async { $work_out }.await;
            let $crate::records::Change { commands, answer } = worked_out?;
            if commands.is_empty() {
                break Ok::<_, $error>(answer);
            }
            let Err(contended) = $crate::records::try_commit($products, commands).await? else {
                break Ok::<_, $error>(answer);
            };
            if permit.is_none() {
                permit = Some($products.wait_in_line(&contended).await);
            }
            tries += 1;
            if tries == $crate::records::TRIES {
                let outrun = $crate::Error::Outrun("others kept changing the same things");
                break Err(<$error>::from(outrun));
            }
        }
    }};
}

/// All or nothing. None: what it was worked out on has changed.
pub async fn commit(products: &Products, commands: Vec<Command>) -> Result<Option<Vec<Reply>>, Error> {
    Ok(try_commit(products, commands).await?.ok())
}

/// The same, and names the record that had changed.
pub async fn try_commit(products: &Products, commands: Vec<Command>) -> Result<Result<Vec<Reply>, String>, Error> {
    match products.engine().run(All { commands }).await {
        Ok(replies) => Ok(Ok(replies)),
        Err(windlass_engine::Error::Refused(
            Refusal::VersionMismatch { what: "record", name, .. } | Refusal::Exists { what: "record", name },
        )) => Ok(Err(name)),
        Err(error) => Err(error.into()),
    }
}

/// A record's text and version, unread.
pub async fn text<T>(products: &Products, kind: Kind<T>, name: &str) -> Result<Option<(Arc<str>, u64)>, Error> {
    let found = products.engine().record(&kind.key(products.namespace(), name)).await?;
    Ok(found.map(|record| (record.value, record.version)))
}
