//! `/api/v1/audit`: what operators did. Each entry commits with the act itself (`core/src/commands/audited.rs`).

use super::jobs::page_size;
use crate::{
    app::App,
    ask::{Answer, Query, ok},
    auth::{Caller, system_namespace},
    convert,
    problem::{Code, Problem, Result},
    route::{Access, Route},
};
use axum::extract::State;
use std::sync::Arc;
use windlass_api::{
    event::Event,
    page::{Page, Paging},
};
use windlass_core::{Event as Row, Record, What, audit::AuditEntry, record::Kind};
use windlass_engine::{records::readable, store::RecordQuery};

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/audit", Access::Admin, audit)
            .says("The audit log: actions of operators, newest first")
            .query::<Paging>()
            .answers::<Page<Event>>(200)
            .refuses(&[Code::Invalid]),
    ]
}

async fn audit(State(app): State<App>, caller: Caller, Query(query): Query<Paging>) -> Result<Answer<Page<Event>>> {
    let limit = page_size(query.limit)?;
    let after: Option<Arc<str>> = match query.cursor.as_deref() {
        Some(cursor) if cursor.len() > 200 => return Err(Problem::invalid("cursor", "hand back `next` as it came")),
        cursor => cursor.map(Into::into),
    };
    let query = RecordQuery { after, limit, ..RecordQuery::all(system_namespace(), AuditEntry::KIND) };
    // One who rules some namespaces sees the entries of these, whatever lies between them.
    let mut found = Vec::new();
    match caller.namespaces.is_empty() {
        true => found = app.engine.store().records(&query).await?,
        false => {
            for namespace in caller.namespaces.iter() {
                let of = RecordQuery { parent: Some(namespace.as_str().into()), ..query.clone() };
                found.extend(app.engine.store().records(&of).await?);
            }
            found.sort_by(|one, other| one.key.key.cmp(&other.key.key));
            found.truncate(limit);
        }
    }
    let next = (found.len() == limit).then(|| found.last().map(|last| last.key.key.to_string())).flatten();
    Ok(ok(Page { items: found.iter().filter_map(shown).collect(), next }))
}

fn shown(record: &Record) -> Option<Event> {
    let entry = readable::<AuditEntry>(record)?;
    let id = entry.id();
    let AuditEntry { namespace, at, by, act, on, .. } = entry;
    Some(convert::event(id, &Row { namespace, at, what: What::Audit { by, act, on } }))
}
