//! Who could give rights back: admins of everything with a valid token. Only a search; that one stays is decided by the rules
//! ([`windlass_core::commands::tokens::NeedAdmin`]) together with what takes rights away.

use crate::auth::{Caller, system_namespace};
use std::{collections::HashMap, sync::Arc};
use windlass_core::{
    Timestamp,
    credential::Credential,
    principal::{Principal, Token},
    record::Kind,
};
use windlass_engine::{Engine, Error, records::readable, store::RecordQuery};

/// Looks tokens and principals up, each once.
pub struct Lookup<'a> {
    engine: &'a Engine,
    pub now: Timestamp,
    tokens: HashMap<Arc<str>, Option<Token>>,
    principals: HashMap<Arc<str>, Option<Principal>>,
}

impl<'a> Lookup<'a> {
    pub async fn new(engine: &'a Engine) -> Result<Self, Error> {
        Ok(Self { engine, now: engine.now().await?, tokens: HashMap::new(), principals: HashMap::new() })
    }

    pub async fn principal(&mut self, name: &Arc<str>) -> Result<Option<&Principal>, Error> {
        if !self.principals.contains_key(name) {
            let found = self.engine.read_record::<Principal>(&system_namespace(), name).await?;
            self.principals.insert(name.clone(), found);
        }
        Ok(self.principals[name].as_ref())
    }

    async fn token(&mut self, hash: &Arc<str>) -> Result<Option<&Token>, Error> {
        if !self.tokens.contains_key(hash) {
            let found = self.engine.read_record::<Token>(&system_namespace(), hash).await?;
            self.tokens.insert(hash.clone(), found);
        }
        Ok(self.tokens[hash].as_ref())
    }

    /// Whether a token may be called with, where those it was made with are as `stays` says.
    pub async fn is_valid(&mut self, token: &Token, stays: impl Fn(&str, &Token) -> bool) -> Result<bool, Error> {
        Ok(token.is_valid(self.now) && self.is_upheld(token, stays).await?)
    }

    /// Whether all that it was made with is there still. Once it is not, it never is again.
    pub async fn is_upheld(&mut self, token: &Token, stays: impl Fn(&str, &Token) -> bool) -> Result<bool, Error> {
        let now = self.now;
        for hash in &token.made_by {
            if !self.token(hash).await?.is_some_and(|maker| maker.upholds(now) && stays(hash, maker)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whom a token stands for now; nobody if it may not be called with.
    pub async fn caller(&mut self, hash: &Arc<str>) -> Result<Option<Caller>, Error> {
        let Some(token) = self.token(hash).await?.cloned() else { return Ok(None) };
        if !self.is_valid(&token, |_, _| true).await? {
            return Ok(None);
        }
        let principal = self.principal(&token.principal).await?.filter(|principal| !principal.disabled);
        Ok(principal.map(|principal| Caller::new(principal, &token, hash.clone())))
    }

    /// Whether a caller may all that it might when it was admitted.
    pub async fn still_holds(&mut self, caller: &Caller) -> Result<bool, Error> {
        let Some(credential) = &caller.credential else { return Ok(true) };
        let now = match &caller.token {
            Some(hash) => self.caller(hash).await?.and_then(|now| now.credential.clone()),
            None => {
                let found = self.engine.record(credential.key()).await?;
                found.map(|found| Arc::new(Credential::record(found.key, found.version)))
            }
        };
        Ok(now.is_some_and(|now| credential.is_covered_by(&now)))
    }

    async fn is_admins(
        &mut self,
        hash: &str,
        token: &Token,
        stays: &impl Fn(&str, &Token) -> bool,
    ) -> Result<bool, Error> {
        let rules = self.principal(&token.principal).await?.is_some_and(Principal::rules_all);
        Ok(rules && stays(hash, token) && self.is_valid(token, stays).await?)
    }
}

/// The hash of a valid token of an admin of everything, among those that stay, and not of `but`; `first` is looked at first.
pub async fn find(
    engine: &Engine,
    first: Option<&Arc<str>>,
    but: Option<&Arc<str>>,
    stays: impl Fn(&str, &Token) -> bool,
) -> Result<Option<Arc<str>>, Error> {
    let mut lookup = Lookup::new(engine).await?;
    // As if it were gone already; what was made with its tokens is not.
    lookup.principals.extend(but.map(|name| (name.clone(), None)));
    if let Some(hash) = first
        && let Some(token) = lookup.token(hash).await?.cloned()
        && lookup.is_admins(hash, &token, &stays).await?
    {
        return Ok(Some(hash.clone()));
    }
    let mut pages = engine.pages(tokens());
    while let Some(page) = pages.next().await? {
        for record in &page {
            let Some(token) = readable::<Token>(record) else { continue };
            if lookup.is_admins(&record.key.key, &token, &stays).await? {
                return Ok(Some(record.key.key.clone()));
            }
        }
    }
    Ok(None)
}

/// All tokens.
pub fn tokens() -> RecordQuery {
    RecordQuery::all(system_namespace(), Token::KIND)
}
