//! Lists whose order no index has: all of it is read, sorted and cut.

use super::{
    body::Paging,
    error::HttpError,
    names::{GLOBAL, INTERNAL, is_special},
    namespace,
};
use crate::app::App;
use std::sync::Arc;
use windlass_core::{
    Facet, Record, WorkerId,
    definition::DefinitionHead,
    link::{DEFINITION_FACET, Link},
    record::Kind,
};
use windlass_engine::store::RecordQuery;

const PAGE: usize = 500;

/// All records of a kind.
pub fn query<T: Kind>() -> RecordQuery {
    let kind = T::KIND.into();
    RecordQuery { namespace: namespace(), kind, parent: None, facet: None, after: None, limit: PAGE }
}

/// What a query finds, by key, up to the first that is not wanted any more.
pub async fn all(
    app: &App,
    mut query: RecordQuery,
    mut wanted: impl FnMut(&Record) -> bool,
) -> Result<Vec<Record>, HttpError> {
    let mut found = Vec::new();
    loop {
        let page = app.engine.store().records(&query).await?;
        query.after = page.last().filter(|_| page.len() == query.limit).map(|last| last.key.key.clone());
        for record in page {
            if !wanted(&record) {
                return Ok(found);
            }
            found.push(record);
        }
        if query.after.is_none() {
            return Ok(found);
        }
    }
}

/// What was stored of a type. What cannot be read is left out here; whoever needs it is told.
pub fn read<T: Kind>(record: &Record) -> Option<T> {
    serde_json::from_str(&record.value).ok()
}

/// The definitions in force whose name begins with that of a room.
pub async fn live_jobs(app: &App, room: &str) -> Result<Vec<(Arc<str>, DefinitionHead)>, HttpError> {
    let prefix = format!("{room}:");
    let from = RecordQuery { after: Some(prefix.as_str().into()), ..query::<DefinitionHead>() };
    let found = all(app, from, |record| record.key.key.starts_with(&prefix)).await?;
    let heads = found.iter().filter_map(|record| Some((record.key.key.clone(), read::<DefinitionHead>(record)?)));
    Ok(heads.filter(|(_, head)| head.deleted_at.is_none()).collect())
}

/// The rooms whose jobs are listed in a room.
pub fn seen_from(room: &str) -> Vec<&str> {
    if is_special(room) { vec![room] } else { vec![room, GLOBAL, INTERNAL] }
}

/// Workers that are linked to a job, by id.
pub async fn workers_of(app: &App, job: &str) -> Result<Vec<WorkerId>, HttpError> {
    let facet = Some(Facet::new(DEFINITION_FACET, job));
    let links = all(app, RecordQuery { facet, ..query::<Link>() }, |_| true).await?;
    Ok(links.iter().filter_map(read::<Link>).map(|link| link.worker).collect())
}

/// Part of a list, and how long the list is.
pub fn cut<T>(items: Vec<T>, paging: Paging) -> (Vec<T>, usize) {
    let total = items.len();
    (items.into_iter().skip(paging.offset).take(paging.limit).collect(), total)
}
