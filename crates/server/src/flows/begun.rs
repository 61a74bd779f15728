//! Turns that cost much are written down before they are begun: one that ended its server twice is not begun a third time.
//!
//! Ordinary turns write nothing here. A turn that came to its end, and one that a stopping server gave up, are taken off.

use crate::{
    app::App,
    problem::{Code, Problem, Result},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_core::{
    JobId, Millis, Namespace, RecordKey, Refusal, RunId,
    commands::records::{DeleteRecord, Expect, PutRecord},
    stage,
};
use windlass_engine::Error;

const KIND: &str = "turn_begun";
/// Times a turn may be begun without coming to an end.
pub const TIMES_MAX: u32 = 2;
/// After so long a mark that was left behind is gone.
const KEPT: Millis = Millis::from_secs(86_400);

#[derive(Serialize, Deserialize)]
struct Mark {
    times: u32,
}

/// A turn that is being worked on.
pub struct Begun {
    app: App,
    key: RecordKey,
    version: u64,
    before: u32,
}

/// What a turn that may not be begun again is told.
pub fn why() -> Arc<str> {
    format!("the server ended {TIMES_MAX} times while this step was being worked out; it is not tried again").into()
}

/// None: it was begun too often already.
pub async fn begin(app: &App, namespace: &Namespace, run: RunId, job: Option<JobId>) -> Result<Option<Begun>> {
    let name = stage::turn_key(namespace, run, job);
    let key = RecordKey { namespace: stage::system_namespace(), kind: KIND.into(), key: name.into() };
    let found = app.engine.record(&key).await?;
    let before = found.as_ref().and_then(|record| serde_json::from_str::<Mark>(&record.value).ok());
    let before = before.map_or(0, |mark| mark.times);
    if before >= TIMES_MAX {
        return Ok(None);
    }
    let expect = found.map_or(Expect::Nothing, |record| Expect::Version(record.version));
    let begun = Begun { app: app.clone(), key, version: 0, before };
    let version = begun.write(before + 1, expect).await?;
    Ok(Some(Begun { version, ..begun }))
}

impl Begun {
    async fn write(&self, times: u32, expect: Expect) -> Result<u64> {
        let value = format!("{{\"times\":{times}}}");
        let expires_at = Some(self.app.engine.now().await? + KEPT);
        let key = self.key.clone();
        let put = PutRecord { key, expect, parent: None, value: value.into(), facets: Vec::new(), expires_at };
        match self.app.engine.run(put).await {
            Ok(record) => Ok(record.version),
            Err(Error::Refused(Refusal::Exists { .. } | Refusal::VersionMismatch { .. })) => {
                Err(Problem::new(Code::Unavailable, "another server works on this turn").retry_after(500))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// It came to its end, well or badly. A mark that stays harms nobody.
    pub async fn ended(self) {
        self.forget().await;
    }

    async fn forget(&self) {
        let delete = DeleteRecord { key: self.key.clone(), expect: Expect::Version(self.version) };
        if let Err(error) = self.app.engine.run(delete).await {
            tracing::debug!(%error, key = %self.key.key, "the mark of a turn stays");
        }
    }

    /// It is given up for now, through no fault of its own.
    pub async fn given_up(self) {
        match self.before {
            0 => self.forget().await,
            before => drop(self.write(before, Expect::Version(self.version)).await),
        }
    }
}
