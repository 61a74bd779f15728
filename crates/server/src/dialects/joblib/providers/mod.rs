//! Providers: processes that answer reads. Who they are; what they answer is beside.

mod answers;
pub mod question;
mod reads;
mod registers;

use super::{
    Joblib, Own,
    error::{PROVIDER_NOT_FOUND, Result},
    listing,
    names::{FullName, GLOBAL},
    users::token,
};
use crate::{
    dialect::Mount,
    dialects::joblib::namespace,
    records::Records,
    route::{Access, Route},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use std::{cmp::Reverse, sync::Arc};
use windlass_api::Uuid;
use windlass_core::{Facet, Record, Timestamp, link::TIED};
use windlass_engine::{records::Kept, store::RecordQuery};

/// They go with their worker.
const PROVIDER: Records<Provider> = Records::new(TIED, namespace);
const ID: &str = "id";
const ROOM: &str = "room";
const PROVIDERS_MAX: usize = 10_000;
/// They all go in one transaction with their worker.
const PROVIDERS_PER_WORKER_MAX: usize = 1_000;
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Providers that are read at once.
const PAGE: usize = 100;
/// A list ends early behind so many bytes of schemas.
const LIST_BYTES_MAX: usize = 8 << 20;

#[derive(Clone, Serialize, Deserialize)]
pub struct Provider {
    id: Uuid,
    room_id: String,
    category: String,
    name: String,
    /// As it was sent.
    schema: Box<RawValue>,
    content_type: String,
    user_id: Uuid,
    worker_id: Uuid,
    created_at: Timestamp,
}

impl Provider {
    fn full_name(&self) -> String {
        FullName { room: self.room_id.clone(), category: self.category.clone(), name: self.name.clone() }.to_string()
    }

    fn show(&self) -> Value {
        json!({
            "id": self.id,
            "room_id": self.room_id,
            "category": self.category,
            "name": self.name,
            "full_name": self.full_name(),
            "schema": self.schema,
            "worker_id": self.worker_id,
            "created_at": super::body::time(self.created_at),
        })
    }
}

/// Where a provider named in a path is, seen from a room.
async fn in_room(joblib: &Joblib, room: &str, full_name: &str) -> Result<Kept<Provider>> {
    let Some(parsed) = FullName::parse(full_name) else {
        return Err(PROVIDER_NOT_FOUND.error(format!("Invalid provider name format: {full_name}")));
    };
    let found = PROVIDER.find(joblib, full_name).await?;
    let found = found.ok_or_else(|| PROVIDER_NOT_FOUND.error(format!("Provider '{full_name}' not found")))?;
    // From the room of all, everything can be reached by name.
    if parsed.room == room || parsed.room == GLOBAL || room == GLOBAL {
        return Ok(found);
    }
    Err(PROVIDER_NOT_FOUND.error(format!("Provider '{full_name}' not accessible from room '{room}'")))
}

async fn with_id(joblib: &Joblib, id: Uuid) -> Result<Kept<Provider>> {
    let facet = Some(Facet::new(ID, &id.to_string()));
    let found = joblib.engine.records(&RecordQuery { facet, limit: 1, ..PROVIDER.query() }).await?.pop();
    let found = found.ok_or_else(|| PROVIDER_NOT_FOUND.error(format!("Provider '{id}' not found")))?;
    Ok(PROVIDER.read(&found)?)
}

/// Where one stands in a list, and its name.
type Position = (Reverse<Timestamp>, Uuid, Arc<str>);

/// All of a room, by name alone: what they bring may be large.
async fn of_room(joblib: &Joblib, room: &str) -> Result<Vec<Position>> {
    let query = RecordQuery { facet: Some(Facet::new(ROOM, room)), limit: PAGE, ..PROVIDER.query() };
    let position = |record: &Record| {
        let provider = PROVIDER.read(record).ok()?.value;
        Some((Reverse(provider.created_at), provider.id, record.key.key.clone()))
    };
    listing::gather(joblib, query, "", position).await
}

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    let is_data = |path: &str| !path.ends_with("/info");
    vec![
        on.put("/v1/joblib/rooms/{room_id}/providers", Access::EditorOrWorker, registers::register)
            .says("Register a provider"),
        on.get("/v1/joblib/rooms/{room_id}/providers", Access::Any, registers::list).says("Providers of a room"),
        on.get("/v1/joblib/rooms/{room_id}/providers/{*provider_name}", Access::Any, reads::read_or_info)
            .identified(token::exactly(&on.0, is_data))
            .says("Ask a provider, or with /info at the end, what it is"),
        on.delete("/v1/joblib/providers/{provider_id}", Access::EditorOrWorker, registers::delete)
            .says("Delete a provider"),
        on.post("/v1/joblib/providers/{provider_id}/results", Access::EditorOrWorker, reads::upload)
            .identified(token::exactly(&on.0, |_| true))
            .body_max(on.0.settings.provider_result_max)
            .says("A provider's answer"),
    ]
}
