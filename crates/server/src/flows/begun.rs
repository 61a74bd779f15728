//! What could end the server while it is worked out is noted before it is begun: turns that cost much, turns that a dialect
//! decides, and schedules that a dialect starts. What ended its server twice is not begun a third time.
//!
//! A note that a server left behind may be that of a bystander. So what has one is worked out while nothing else that is noted
//! is, and only what is at fault ends its server twice. What came to its end, and what a stopping server gave up, leaves none.

use crate::{
    app::App,
    problem::{Code, Problem, Result},
};
use serde::{Deserialize, Serialize};
use std::{any::Any, sync::Arc};
use windlass_core::{
    JobId, Millis, Namespace, RecordKey, Refusal, RunId,
    commands::records::{DeleteRecord, Expect, PutRecord},
    stage,
};
use windlass_engine::Error;

/// Times something may be begun without coming to an end.
pub const TIMES_MAX: u32 = 2;
/// After so long a note that was left behind is gone.
const KEPT: Millis = Millis::from_secs(86_400);

/// So long a note of another server counts as that server's, which is at work on it. A lone server need not wait.
const ELSEWHERE: Millis = Millis::from_secs(10);

#[derive(Default, Serialize, Deserialize)]
struct Note {
    times: u32,
    /// When it was begun. Zero: it was given up since.
    #[serde(default)]
    at: i64,
}

/// Something that is being worked on.
pub struct Begun {
    app: App,
    key: RecordKey,
    version: u64,
    before: u32,
    _among: Box<dyn Any + Send + Sync>,
}

/// What a turn that may not be begun again is told.
pub fn why() -> Arc<str> {
    format!("the server ended {TIMES_MAX} times while this step was being worked out; it is not tried again").into()
}

/// Another server is at work on it: to be looked at again.
pub fn is_elsewhere(problem: &Problem) -> bool {
    problem.0.status == 503
}

/// A turn of a run. None: it was begun too often already.
pub async fn turn(app: &App, namespace: &Namespace, run: RunId, job: Option<JobId>) -> Result<Option<Begun>> {
    begin(app, stage::turn_key(namespace, run, job)).await
}

/// None: what has this name was begun too often already.
pub async fn begin(app: &App, name: String) -> Result<Option<Begun>> {
    let key = RecordKey { namespace: stage::system_namespace(), kind: stage::BEGUN.into(), key: name.into() };
    let found = app.engine.store().record(&key).await?;
    let note = found.as_ref().and_then(|record| serde_json::from_str::<Note>(&record.value).ok()).unwrap_or_default();
    let (before, now) = (note.times, app.engine.now().await?);
    if before > 0 && app.engine.settings().poll_every.is_some() && now.0 - note.at < ELSEWHERE.0 {
        return Err(elsewhere());
    }
    if before >= TIMES_MAX {
        return Ok(None);
    }
    let among: Box<dyn Any + Send + Sync> = match before {
        0 => Box::new(app.begun.clone().read_owned().await),
        _ => Box::new(app.begun.clone().write_owned().await),
    };
    let expect = found.map_or(Expect::Nothing, |record| Expect::Version(record.version));
    let begun = Begun { app: app.clone(), key, version: 0, before, _among: among };
    let version = begun.write(Note { times: before + 1, at: now.0 }, expect).await?;
    Ok(Some(Begun { version, ..begun }))
}

fn elsewhere() -> Problem {
    Problem::new(Code::Unavailable, "another server works on this turn").retry_after(500)
}

impl Begun {
    async fn write(&self, note: Note, expect: Expect) -> Result<u64> {
        let value = serde_json::to_string(&note).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let expires_at = Some(self.app.engine.now().await? + KEPT);
        let key = self.key.clone();
        let put = PutRecord { key, expect, parent: None, value: value.into(), facets: Vec::new(), expires_at };
        match self.app.engine.run(put).await {
            Ok(record) => Ok(record.version),
            Err(Error::Refused(Refusal::Exists { .. } | Refusal::VersionMismatch { .. })) => Err(elsewhere()),
            Err(error) => Err(error.into()),
        }
    }

    /// It came to its end, well or badly. A note that stays does no harm.
    pub async fn ended(self) {
        self.forget().await;
    }

    async fn forget(&self) {
        let delete = DeleteRecord { key: self.key.clone(), expect: Expect::Version(self.version) };
        if let Err(error) = self.app.engine.run(delete).await {
            tracing::debug!(%error, key = %self.key.key, "the note of a turn stays");
        }
    }

    /// It is given up for now, through no fault of its own.
    pub async fn given_up(self) {
        match self.before {
            0 => self.forget().await,
            times => drop(self.write(Note { times, at: 0 }, Expect::Version(self.version)).await),
        }
    }
}
