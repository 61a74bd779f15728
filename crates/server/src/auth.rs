//! Who is calling.
//!
//! Tokens are looked up by their SHA-256, so nothing secret is stored and nothing is compared byte by byte. What a lookup
//! found is remembered for a second: a revoked token works at most that much longer on other servers, and not at all on this one.
//!
//! A wrong token costs one read of the store, a few at a time, and nothing while it is remembered to be wrong; only a token
//! that is there goes through the engine, which notes its use. So guessing takes nothing from those who work.

use crate::{
    admins::Lookup,
    last_token::{self, TokenHash},
    problem::{Code, Problem, Result},
    route::{Access, Nameless},
};
use foldhash::HashMap;
use parking_lot::Mutex;
use std::{
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;
use windlass_api::{Uuid, hex};
pub use windlass_core::stage::system_namespace;
use windlass_core::{
    Namespace, Refusal,
    commands::tokens::UseToken,
    credential::Credential,
    principal::{ANONYMOUS, Principal, Role, Token},
    reply::KnownToken,
    stage::SYSTEM,
};
use windlass_engine::{Engine, Error};

pub const REMEMBERED: Duration = Duration::from_secs(1);
const REMEMBERED_MAX: usize = 10_000;
/// Tokens looked for in the store at a time. Others wait for their turn, which is short: none is refused for a crowd.
const LOOKS: usize = 4;

/// The principal behind a request. Cheap to clone: every request does so a few times.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Known>);

#[derive(Debug)]
pub struct Known {
    pub name: Arc<str>,
    pub role: Role,
    /// Has a worker's rights beside its role's.
    pub works: bool,
    /// Empty: everywhere.
    pub namespaces: Arc<[Namespace]>,
    /// The hash of the token it came with. What the caller makes with it ends with it.
    pub token: Option<Arc<str>>,
    /// The principal to whose share this caller counts: whoever began the line of tokens that made one another.
    pub root: Arc<str>,
    /// Whom a dialect knows under this id, and no principal of ours.
    pub user: Option<Uuid>,
    /// What it was admitted with. None: it needs nothing.
    pub credential: Option<Arc<Credential>>,
}

impl Deref for Caller {
    type Target = Known;
    fn deref(&self) -> &Known {
        &self.0
    }
}

impl Caller {
    /// Somebody without a token: at most an editor and a worker of one namespace, under a name that no principal may have.
    pub fn nameless(namespace: &Namespace, may: Nameless) -> Self {
        let (name, namespaces): (Arc<str>, _) = (ANONYMOUS.into(), [namespace.clone()].into());
        let works = may == Nameless::Works;
        let role = if works { Role::Editor } else { Role::Viewer };
        Self::of(Known { root: name.clone(), name, role, works, namespaces, token: None, user: None, credential: None })
    }

    pub fn new(principal: &Principal, token: &Token, hash: Arc<str>) -> Self {
        let credential = Some(Arc::new(Credential::token(&system_namespace(), &hash, token, principal)));
        Self::of(Known {
            credential,
            name: principal.name.clone(),
            role: principal.role,
            works: false,
            namespaces: principal.namespaces.as_slice().into(),
            token: Some(hash),
            root: token.root.clone().unwrap_or_else(|| principal.name.clone()),
            user: None,
        })
    }

    pub fn of(known: Known) -> Self {
        Self(Arc::new(known))
    }

    /// An admin of everything, as opposed to one of some namespaces.
    pub fn rules_all(&self) -> bool {
        self.role == Role::Admin && self.namespaces.is_empty()
    }

    pub fn may(&self, access: Access) -> bool {
        match access {
            Access::Open | Access::Any => true,
            Access::Viewer => self.role.includes(Role::Viewer),
            Access::Editor => self.role.includes(Role::Editor),
            Access::Admin => self.role.includes(Role::Admin),
            Access::Worker => self.works || self.role.includes(Role::Worker),
            Access::EditorOrWorker => self.role == Role::Worker || self.role.includes(Role::Editor),
        }
    }

    /// A principal's rights end at its namespaces.
    pub fn check_namespace(&self, namespace: &Namespace) -> Result<()> {
        if namespace.as_str() == SYSTEM {
            return Err(Problem::new(Code::Forbidden, format!("the namespace {namespace} is the server's own")));
        }
        if self.namespaces.is_empty() || self.namespaces.contains(namespace) {
            return Ok(());
        }
        Err(Problem::new(Code::Forbidden, format!("this token has no rights in the namespace {namespace}")))
    }
}

pub struct Auth {
    engine: Engine,
    known: Mutex<Remembered>,
    looks: Semaphore,
}

#[derive(Default)]
struct Remembered {
    callers: HashMap<TokenHash, (Instant, Caller)>,
    /// Tokens that were not there.
    wrong: HashMap<TokenHash, Instant>,
    /// Counts how often everything was forgotten: what was looked up before that may not be remembered after it.
    forgotten: u64,
}

impl Auth {
    pub fn new(engine: Engine) -> Self {
        Self { engine, known: Mutex::default(), looks: Semaphore::new(LOOKS) }
    }

    /// Who a token stands for. Unknown, expired and revoked get the same answer.
    pub async fn caller(&self, token: &str) -> Result<Caller> {
        self.caller_by(last_token::hash(token)).await
    }

    pub async fn caller_by(&self, hash: TokenHash) -> Result<Caller> {
        let forgotten = match self.remembered(&hash) {
            Ok(known) => return known.ok_or_else(not_valid),
            Err(forgotten) => forgotten,
        };
        let text = hex(&hash);
        if !self.is_there(&text).await? {
            self.remember_wrong(hash, forgotten);
            return Err(not_valid());
        }
        let text: Arc<str> = text.into();
        let lookup = UseToken { namespace: system_namespace(), hash: text.clone() };
        match self.engine.run(lookup).await {
            Ok(KnownToken { principal, token }) => {
                let caller = Caller::new(&principal, &token, text);
                self.remember(hash, &caller, forgotten);
                Ok(caller)
            }
            Err(Error::Refused(Refusal::NotFound { .. })) => Err(not_valid()),
            Err(error) => Err(error.into()),
        }
    }

    async fn is_there(&self, hash: &str) -> Result<bool> {
        let _turn = self.looks.acquire().await.map_err(|_| not_valid())?;
        Ok(self.engine.read_record::<Token>(&system_namespace(), hash).await?.is_some())
    }

    /// Whom it stands for, nobody where it is known to be wrong; or else how often everything was forgotten so far.
    fn remembered(&self, hash: &TokenHash) -> Result<Option<Caller>, u64> {
        let known = self.known.lock();
        if let Some((_, caller)) = known.callers.get(hash).filter(|(at, _)| at.elapsed() < REMEMBERED) {
            return Ok(Some(caller.clone()));
        }
        match known.wrong.get(hash) {
            Some(at) if at.elapsed() < REMEMBERED => Ok(None),
            _ => Err(known.forgotten),
        }
    }

    fn remember_wrong(&self, hash: TokenHash, forgotten: u64) {
        let mut known = self.known.lock();
        if known.forgotten != forgotten {
            return;
        }
        if known.wrong.len() >= REMEMBERED_MAX {
            known.wrong.retain(|_, at| at.elapsed() < REMEMBERED);
        }
        if known.wrong.len() < REMEMBERED_MAX {
            known.wrong.insert(hash, Instant::now());
        }
    }

    fn remember(&self, hash: TokenHash, caller: &Caller, forgotten: u64) {
        let mut known = self.known.lock();
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

    /// Whether somebody who has waited still may what they might when they came.
    pub async fn still_holds(&self, caller: &Caller) -> Result<bool> {
        Ok(Lookup::new(&self.engine).await?.still_holds(caller).await?)
    }

    /// Counts how often rights were changed on this server.
    pub fn changes(&self) -> u64 {
        self.known.lock().forgotten
    }

    /// After a token was made or revoked, or a principal disabled: neither a yes nor a no from before holds.
    pub fn forget(&self) {
        let mut known = self.known.lock();
        known.callers.clear();
        known.wrong.clear();
        known.forgotten += 1;
    }
}

pub fn not_valid() -> Problem {
    Problem::new(Code::Unauthorized, "the token is not valid")
}

pub fn hash(token: &str) -> String {
    hex(&last_token::hash(token))
}
