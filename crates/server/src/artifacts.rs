//! Files that jobs read or leave, as records know them: kept in mind, found by job and by namespace, forgotten with their job.

use crate::{
    app::App,
    auth::system_namespace,
    content,
    problem::{Code, Problem, Result},
};
use windlass_api::{Uuid, artifact::Artifact};
use windlass_core::{
    Command, Facet, JobId, JobKey, Namespace, RecordKey,
    commands::records::{DeleteRecord, Expect, PutRecord},
};
use windlass_engine::{Error, StoreError, records::readable, store::RecordQuery};

pub const KIND: &str = "artifact";

pub fn record_key(id: Uuid) -> RecordKey {
    RecordKey { namespace: system_namespace(), kind: KIND.into(), key: id.to_string().into() }
}

/// What keeps an artifact in mind.
pub fn put(namespace: &Namespace, artifact: &Artifact) -> Result<Command> {
    let value = serde_json::to_string(artifact).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let mut facets = vec![of_namespace(namespace)];
    facets.extend(artifact.job.map(|job| of_job(namespace, job)));
    let put = PutRecord {
        key: record_key(artifact.id),
        expect: Expect::Nothing,
        parent: None,
        value: value.into(),
        facets,
        expires_at: None,
    };
    Ok(put.into())
}

/// What forgets it. Its content is removed afterwards.
pub fn forget(id: Uuid) -> Command {
    DeleteRecord { key: record_key(id), expect: Expect::Anything }.into()
}

/// Whether this content is an artifact's.
pub async fn knows(app: &App, id: Uuid) -> Result<bool> {
    Ok(app.engine.store().record(&record_key(id)).await?.is_some())
}

/// Finds a namespace's artifacts.
pub fn of_namespace(namespace: &Namespace) -> Facet {
    Facet::new("namespace", namespace.as_str())
}

/// Bytes and number of all that have the facet.
pub async fn total(app: &App, facet: Facet) -> Result<(u64, u64)> {
    content::total(app, system_namespace(), KIND, Some(facet), |artifact: &Artifact| artifact.size).await
}

/// Finds a job's artifacts.
pub fn of_job(namespace: &Namespace, job: Uuid) -> Facet {
    Facet::new("job", &format!("{namespace}/{job}"))
}

/// All artifacts of a job, the oldest first.
pub async fn all_of_job(app: &App, namespace: &Namespace, job: Uuid) -> Result<Vec<Artifact>> {
    let facet = Some(of_job(namespace, job));
    Ok(app.engine.readable_records(RecordQuery { facet, ..RecordQuery::all(system_namespace(), KIND) }).await?)
}

/// Removes artifacts whose jobs are gone, and content that no record knows. How many went.
pub async fn sweep(app: &App) -> Result<usize> {
    Ok(sweep_records(app).await? + content::sweep(app).await?)
}

async fn sweep_records(app: &App) -> Result<usize> {
    let (mut gone, mut pages) = (0, app.engine.pages(RecordQuery::all(system_namespace(), KIND)));
    while let Some(found) = pages.next().await? {
        for artifact in found.iter().filter_map(readable::<Artifact>) {
            let (Some(job), Ok(namespace)) = (artifact.job, Namespace::new(&artifact.namespace)) else { continue };
            if app.engine.store().job(&JobKey::new(&namespace, JobId(job))).await?.is_none() {
                // The bytes first, whatever becomes of the record: this may be what makes room on a full disk.
                content::remove(app, artifact.id).await;
                match app.engine.run(forget(artifact.id)).await {
                    Err(Error::Store(StoreError::Full(_))) => {}
                    forgotten => {
                        forgotten?;
                        gone += 1;
                    }
                }
            }
        }
    }
    Ok(gone)
}
