//! Workers and whether they are believed to be alive.
//!
//! `online → unreachable → offline → deleted`, each after so long without a sign of life. What a reader sees is derived
//! from the last sign of life; what follows from it (jobs lost, events) happens once, when the sweep declares it.

use crate::model::{
    is_default,
    name::{Tags, WorkerId},
    policy::WorkerPolicy,
    record::Kind,
    refusal::Refusal,
    time::{Millis, Timestamp},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    pub id: WorkerId,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: Tags,
    #[serde(default, skip_serializing_if = "is_default")]
    pub slots: u32,
    /// The principal that registered it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub owner: Option<Arc<str>>,
    pub registered_at: Timestamp,
    pub last_seen: Timestamp,
    /// There is reason to doubt that it is alive: unless it is heard before this time, it is offline.
    #[serde(default, skip_serializing_if = "is_default")]
    pub doubt_until: Option<Timestamp>,
    pub declared: Liveness,
    /// It has unregistered but stays known, or was registered for somebody and has not come yet: offline, whenever it
    /// was last seen.
    #[serde(default, skip_serializing_if = "is_default")]
    pub away: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub draining: bool,
    /// Known by its first claim alone: which tags it has, how many slots, and whether it will come again is not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unregistered: bool,
    pub policy: WorkerPolicy,
    #[serde(default, skip_serializing_if = "is_default")]
    pub extra: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    Online,
    Unreachable,
    Offline,
}

impl Liveness {
    pub fn name(self) -> &'static str {
        match self {
            Liveness::Online => "online",
            Liveness::Unreachable => "unreachable",
            Liveness::Offline => "offline",
        }
    }
}

impl Kind for Worker {
    const KIND: &'static str = "worker";
    const DUE_MAY_LAG: bool = true;
    fn due(&self) -> Option<Timestamp> {
        if self.away && self.declared != Liveness::Offline {
            return Some(self.last_seen);
        }
        match self.declared {
            Liveness::Online => {
                let silent = self.last_seen + self.policy.unreachable_after.unwrap_or(self.policy.offline_after);
                Some(self.doubt_until.map_or(silent, |until| until.min(silent)))
            }
            Liveness::Unreachable => Some(self.silent_since() + self.policy.offline_after),
            Liveness::Offline => self.policy.delete_after.map(|after| self.silent_since() + after),
        }
    }
}

/// A worker that was deleted. To every command it is gone; this is for those who look back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FormerWorker {
    pub worker: Worker,
    pub deleted_at: Timestamp,
    /// Until then it is remembered.
    pub until: Timestamp,
}

impl Kind for FormerWorker {
    const KIND: &'static str = "former_worker";
    fn due(&self) -> Option<Timestamp> {
        Some(self.until)
    }
}

impl Worker {
    /// With tokens in force nobody acts in another's name. Without a caller it is an operator, who may.
    pub(crate) fn check_owner(&self, caller: Option<&Arc<str>>) -> Result<(), Refusal> {
        match (caller, &self.owner) {
            (Some(caller), Some(owner)) if caller != owner => {
                Err(Refusal::Forbidden { why: format!("the worker {} belongs to somebody else", self.id) })
            }
            _ => Ok(()),
        }
    }

    /// A doubt that comes to its end counts as if the worker had been silent for all the time it has.
    fn silent_since(&self) -> Timestamp {
        let doubted = self.doubt_until.map(|until| Timestamp(until.0 - self.policy.offline_after.0));
        doubted.map_or(self.last_seen, |doubted| doubted.min(self.last_seen))
    }

    /// How long it has been silent, as far as what follows from it is concerned.
    pub(crate) fn silence(&self, now: Timestamp) -> Millis {
        match self.doubt_until {
            Some(until) if until <= now => now - self.silent_since(),
            _ => now - self.last_seen,
        }
    }

    /// It is silent and did not unregister. A worker that never registered has no need to.
    pub fn is_lost(&self, now: Timestamp) -> bool {
        !self.away && !self.unregistered && self.liveness(now) != Liveness::Online
    }

    /// What a reader sees now, whether or not a sweep ran.
    pub fn liveness(&self, now: Timestamp) -> Liveness {
        let silent = self.silence(now);
        if self.away || silent >= self.policy.offline_after {
            Liveness::Offline
        } else if self.policy.unreachable_after.is_some_and(|after| silent >= after) {
            Liveness::Unreachable
        } else {
            Liveness::Online
        }
    }
}
