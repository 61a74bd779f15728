//! Lists whose order no index has: all of it is read, sorted and cut. What is read so has a bound of its own: jobs of a room,
//! workers of the namespace, providers.

use super::{
    body::Paging,
    error::{HttpError, Result},
    names::{FullName, GLOBAL, INTERNAL, is_special},
    namespace,
};
use crate::{app::App, ask};
use http::StatusCode;
use std::sync::Arc;
use windlass_core::{
    Facet, Record, WorkerId,
    definition::DefinitionHead,
    link::{DEFINITION_FACET, Link},
    record::Kind,
};
use windlass_engine::{records::readable, store::RecordQuery};

/// Jobs of one room, those included that retired and are not yet forgotten.
const JOBS_PER_ROOM_MAX: usize = 1_000;

/// All records of a kind.
pub fn query<T: Kind>() -> RecordQuery {
    RecordQuery::all(namespace(), T::KIND)
}

/// What is kept of the records that a query finds, by key, and where they begin with `prefix`. Only one page of the records is
/// in memory at a time, and a large page is not taken apart by a thread that others wait for.
pub async fn gather<T: Send + 'static>(
    app: &App,
    query: RecordQuery,
    prefix: &str,
    keep: impl Fn(&Record) -> Option<T> + Clone + Send + 'static,
) -> Result<Vec<T>> {
    let (mut kept, mut pages) = (Vec::new(), app.engine.pages(query));
    while let Some(mut page) = pages.next().await? {
        let inside = page.iter().take_while(|record| record.key.key.starts_with(prefix)).count();
        let is_last = inside < page.len();
        page.truncate(inside);
        let (is_large, keep) = (page.iter().map(|record| record.value.len()).sum::<usize>() > ask::LARGE, keep.clone());
        let part = move || page.iter().filter_map(keep).collect::<Vec<T>>();
        kept.extend(if is_large { app.aside.run(&namespace(), part).await? } else { part() });
        if is_last {
            break;
        }
    }
    Ok(kept)
}

type NamedHead = (Arc<str>, DefinitionHead);

/// The definitions whose name begins with that of a room.
async fn heads(app: &App, room: &str) -> Result<Vec<NamedHead>> {
    let prefix = format!("{room}:");
    let from = RecordQuery { after: Some(prefix.as_str().into()), ..query::<DefinitionHead>() };
    gather(app, from, &prefix, |record| Some((record.key.key.clone(), readable::<DefinitionHead>(record)?))).await
}

/// Those that are in force.
pub async fn live_jobs(app: &App, room: &str) -> Result<Vec<NamedHead>> {
    let mut heads = heads(app, room).await?;
    heads.retain(|(_, head)| head.deleted_at.is_none());
    Ok(heads)
}

/// Whether a room may have this job, which it perhaps has already.
pub async fn check_space(app: &App, job: &FullName) -> Result<()> {
    let is_known = app.engine.read_record::<DefinitionHead>(&namespace(), &job.to_string()).await?.is_some();
    if is_known || heads(app, &job.room).await?.len() < JOBS_PER_ROOM_MAX {
        return Ok(());
    }
    let why =
        format!("room '{}' has {JOBS_PER_ROOM_MAX} jobs, as many as a room may have; no more can register", job.room);
    Err(HttpError::plain(StatusCode::TOO_MANY_REQUESTS, why).retry_after(60))
}

/// The rooms whose jobs are listed in a room.
pub fn seen_from(room: &str) -> Vec<&str> {
    if is_special(room) { vec![room] } else { vec![room, GLOBAL, INTERNAL] }
}

/// Workers that are linked to a job, by id.
pub async fn workers_of(app: &App, job: &str) -> Result<Vec<WorkerId>> {
    let facet = Some(Facet::new(DEFINITION_FACET, job));
    gather(app, RecordQuery { facet, ..query::<Link>() }, "", |record| Some(readable::<Link>(record)?.worker)).await
}

/// Part of a list, and how long the list is.
pub fn cut<T>(items: Vec<T>, paging: Paging) -> (Vec<T>, usize) {
    let total = items.len();
    (items.into_iter().skip(paging.offset).take(paging.limit).collect(), total)
}
