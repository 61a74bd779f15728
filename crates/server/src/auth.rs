//! Who is calling.
//!
//! Tokens are looked up by their SHA-256, so nothing secret is stored and nothing is compared byte by byte. What a lookup
//! found is remembered for a second: a revoked token works at most that much longer on other servers, and not at all on this one.

use crate::{problem::Problem, route::Access};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};
use windlass_core::{
    Namespace, Refusal, Reply,
    commands::principals::UseToken,
    principal::{Principal, Role},
};
use windlass_engine::{Engine, Error};

/// Where principals and tokens live, whatever namespaces they may use.
pub fn home() -> Namespace {
    Namespace::new("system").expect("a legal name")
}

const REMEMBERED: Duration = Duration::from_secs(1);
const REMEMBERED_MAX: usize = 10_000;

/// The principal behind a request.
#[derive(Clone, Debug)]
pub struct Caller {
    pub name: Arc<str>,
    pub role: Role,
    /// Empty: everywhere.
    pub namespaces: Vec<Namespace>,
}

impl Caller {
    pub fn may(&self, access: Access) -> bool {
        match access {
            Access::Open | Access::Any => true,
            Access::Viewer => self.role.includes(Role::Viewer),
            Access::Editor => self.role.includes(Role::Editor),
            Access::Admin => self.role.includes(Role::Admin),
            Access::Worker => self.role.includes(Role::Worker),
            Access::EditorOrWorker => self.role == Role::Worker || self.role.includes(Role::Editor),
        }
    }

    /// A principal's rights end at its namespaces.
    pub fn check_namespace(&self, namespace: &Namespace) -> Result<(), Problem> {
        if *namespace == home() {
            return Err(Problem::new("forbidden", format!("the namespace {namespace} is the server's own")));
        }
        if self.namespaces.is_empty() || self.namespaces.contains(namespace) {
            return Ok(());
        }
        Err(Problem::new("forbidden", format!("this token has no rights in the namespace {namespace}")))
    }
}

impl From<&Principal> for Caller {
    fn from(principal: &Principal) -> Self {
        Self { name: principal.name.clone(), role: principal.role, namespaces: principal.namespaces.clone() }
    }
}

pub struct Auth {
    engine: Engine,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    callers: HashMap<[u8; 32], (Instant, Caller)>,
    /// Counts how often everything was forgotten: what was looked up before that may not be remembered after it.
    forgotten: u64,
}

impl Auth {
    pub fn new(engine: Engine) -> Self {
        Self { engine, known: Mutex::default() }
    }

    /// Who a token stands for. Unknown, expired and revoked get the same answer.
    pub async fn caller(&self, token: &str) -> Result<Caller, Problem> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let forgotten = match self.remembered(&hash) {
            Ok(caller) => return Ok(caller),
            Err(forgotten) => forgotten,
        };
        let lookup = UseToken { namespace: home(), hash: hex(&hash).into() };
        match self.engine.run(lookup).await {
            Ok(Reply::Principal(principal)) => {
                let caller = Caller::from(&*principal);
                self.remember(hash, &caller, forgotten);
                Ok(caller)
            }
            Err(Error::Refused(Refusal::NotFound { .. })) => Err(not_valid()),
            Err(error) => Err(error.into()),
            Ok(other) => unreachable!("a token stands for a principal, not {other:?}"),
        }
    }

    /// Or else how often everything was forgotten so far.
    fn remembered(&self, hash: &[u8; 32]) -> Result<Caller, u64> {
        let known = self.lock();
        let found = known.callers.get(hash).filter(|(at, _)| at.elapsed() < REMEMBERED);
        found.map(|(_, caller)| caller.clone()).ok_or(known.forgotten)
    }

    fn remember(&self, hash: [u8; 32], caller: &Caller, forgotten: u64) {
        let mut known = self.lock();
        if known.forgotten != forgotten {
            return;
        }
        if known.callers.len() >= REMEMBERED_MAX {
            known.callers.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        }
        if known.callers.len() < REMEMBERED_MAX {
            known.callers.insert(hash, (Instant::now(), caller.clone()));
        }
    }

    /// After a token was revoked or a principal disabled.
    pub fn forget(&self) {
        let mut known = self.lock();
        known.callers.clear();
        known.forgotten += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

pub fn not_valid() -> Problem {
    Problem::new("unauthorized", "the token is not valid")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn hash(token: &str) -> String {
    hex(&Sha256::digest(token))
}
