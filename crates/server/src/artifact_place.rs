//! Servers of one database keep their artifacts in one place, or do not start: what one takes in, the others must be able to
//! give out.
//!
//! The place carries a mark, and the database knows which. A folder of its own that a second server brings along has no mark
//! or another one, and so has a volume that was not mounted.

use crate::auth::system_namespace;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use serde::{Deserialize, Serialize};
use windlass_api::Uuid;
use windlass_core::{
    RecordKey, Refusal,
    commands::records::{Expect, PutRecord},
};
use windlass_engine::{Engine, Error, ids};

pub const MARK: &str = "windlass-place";
const KIND: &str = "artifact_place";
/// A server that starts at the same moment may be first.
const TRIES: usize = 3;

/// What the database knows of its place.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    mark: Uuid,
    /// As the server called it that used it first, for people.
    place: String,
}

/// Refuses a place that is not the database's. `adopt`: it is from now on.
pub async fn check(engine: &Engine, store: &dyn ObjectStore, place: &str, adopt: bool) -> Result<(), String> {
    for _ in 0..TRIES {
        let (known, mark) = (known(engine).await?, mark(store, place).await?);
        let expect = match &known {
            Some(known) if mark == Some(known.mark) => return Ok(()),
            Some(known) if !adopt => return Err(not_the_place(place, &known.place)),
            None if mark.is_some() && !adopt => return Err(somebody_elses(place)),
            Some(_) => Expect::Anything,
            None => Expect::Nothing,
        };
        let mark = write_mark(store, place).await?;
        if remember(engine, &Known { mark, place: place.to_owned() }, expect).await? {
            return Ok(());
        }
    }
    Err("other servers start at the same time with other places for artifacts; start one after the other".into())
}

/// Each database's server removes files that its own database does not know.
fn somebody_elses(place: &str) -> String {
    format!(
        "{place} holds another database's artifacts. Give this database a place of its own (`artifacts`); if the other one is gone, \
         start once with --artifacts-adopt"
    )
}

fn not_the_place(place: &str, known: &str) -> String {
    format!(
        "{place} is not where this database's artifacts are: those are in {known}, as the server called it that first used them. \
         Servers of one database need one place: set `artifacts` to a folder that all of them share (NFS, a ReadWriteMany volume), \
         mounted before the start. If the files were moved here, copy the file {MARK} along with them; if they are lost, start \
         once with --artifacts-adopt"
    )
}

fn key() -> RecordKey {
    RecordKey { namespace: system_namespace(), kind: KIND.into(), key: "artifacts".into() }
}

async fn known(engine: &Engine) -> Result<Option<Known>, String> {
    let record = engine.store().record(&key()).await.map_err(|error| error.to_string())?;
    record
        .map(|record| serde_json::from_str(&record.value).map_err(|error| format!("the known place: {error}")))
        .transpose()
}

/// False: somebody else was faster.
async fn remember(engine: &Engine, known: &Known, expect: Expect) -> Result<bool, String> {
    let value = serde_json::to_string(known).map_err(|error| error.to_string())?;
    let put = PutRecord { key: key(), expect, parent: None, value: value.into(), facets: Vec::new(), expires_at: None };
    match engine.run(put).await {
        Ok(_) => Ok(true),
        Err(Error::Refused(Refusal::Exists { .. })) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

pub async fn mark(store: &dyn ObjectStore, place: &str) -> Result<Option<Uuid>, String> {
    let broken = |error: StoreError| format!("{place}/{MARK} cannot be read: {error}");
    let found = match store.get(&Path::from(MARK)).await {
        Ok(found) => found.bytes().await.map_err(broken)?,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(broken(error)),
    };
    let text = String::from_utf8_lossy(&found);
    text.trim().parse().map(Some).map_err(|_| format!("{place}/{MARK} holds no mark; it was not written by Windlass"))
}

async fn write_mark(store: &dyn ObjectStore, place: &str) -> Result<Uuid, String> {
    let mark = ids::secret();
    let written = store.put(&Path::from(MARK), PutPayload::from(format!("{mark}\n"))).await;
    written.map(|_| mark).map_err(|error| format!("{place} cannot be written: {error}"))
}
