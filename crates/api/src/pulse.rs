//! What changes, in short, for pages that then look again at what they show.

use crate::is_default;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The first message of a stream. Whatever a page shows may be old by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub version: String,
    /// The server's time.
    pub now: String,
}

/// What happened since the last message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pulse {
    /// Jobs something happened to, each with the type of the last event.
    #[serde(skip_serializing_if = "is_default")]
    pub jobs: BTreeMap<Uuid, String>,
    /// Runs, in the same way.
    #[serde(skip_serializing_if = "is_default")]
    pub runs: BTreeMap<Uuid, String>,
    /// How many events there were, by type.
    #[serde(skip_serializing_if = "is_default")]
    pub counts: BTreeMap<String, u64>,
    /// Not everything that changed is named: look at everything.
    #[serde(skip_serializing_if = "is_default")]
    pub more: bool,
}
