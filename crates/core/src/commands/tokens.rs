//! Tokens: issue, revoke, use; and those that an operator keeps in a file or a variable.
//!
//! A token that was made with another one never outlives it: it expires no later, and it is valid only while every token of the
//! line it comes from is there.

use super::{Decided, principals::principal};
use crate::{
    desk::{Desk, Stop},
    model::{
        keys::Keys,
        name::{Namespace, check_name},
        principal::{KeptOutside, LINE_MAX, Principal, Standing, Token},
        record::{self, Kind},
        refusal::Refusal,
        reply::KnownToken,
        time::{Millis, Timestamp},
    },
};
use std::sync::Arc;

/// How stale the last use may be before it is written again.
const LAST_USED_EVERY: Millis = Millis::from_secs(60);

#[derive(Clone, Debug)]
pub struct IssueToken {
    pub namespace: Namespace,
    pub principal: Arc<str>,
    /// Lower-case hex SHA-256 of the token.
    pub hash: Arc<str>,
    pub shown: Arc<str>,
    pub expires_at: Option<Timestamp>,
    /// The hash of the token that makes this one. Absent: nobody's, so that it ends by itself only.
    pub made_by: Option<Arc<str>>,
    /// The session of a page.
    pub session: bool,
}

/// Ends what was made with it as well.
#[derive(Clone, Debug)]
pub struct RevokeToken {
    pub namespace: Namespace,
    pub hash: Arc<str>,
}

#[derive(Clone, Debug)]
pub struct UseToken {
    pub namespace: Namespace,
    pub hash: Arc<str>,
}

/// Makes the token that was found in its place (a file, a variable) valid, or keeps it so.
#[derive(Clone, Debug)]
pub struct KeepToken {
    pub namespace: Namespace,
    pub principal: Arc<str>,
    pub hash: Arc<str>,
    pub shown: Arc<str>,
    pub until: Option<Timestamp>,
}

/// Ends a kept token whose place holds another one now. What was made with it lives on.
#[derive(Clone, Debug)]
pub struct ReplaceToken {
    pub namespace: Namespace,
    pub hash: Arc<str>,
}

/// Holds if this token is valid and its principal an admin of everything. Put behind commands that take rights away, it refuses
/// them all if nobody would be left to give rights back.
#[derive(Clone, Debug)]
pub struct NeedAdmin {
    pub namespace: Namespace,
    pub hash: Arc<str>,
}

fn check_hash(hash: &str) -> Result<(), Stop> {
    if hash.len() != 64 || !hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return Err(Refusal::invalid("hash", "must be 64 lower-case hexadecimal digits".into()).into());
    }
    Ok(())
}

fn unknown() -> Refusal {
    Refusal::not_found("token", "with this hash")
}

/// Whether all that a token was made with is still there. Rows of the whole line come with one load.
fn is_upheld(desk: &mut Desk, namespace: &Namespace, token: &Token) -> Result<bool, Stop> {
    let mut upheld = true;
    desk.for_all(&token.made_by, |desk, hash| {
        let now = desk.now();
        upheld &= desk.peek::<Token>(namespace, hash)?.is_some_and(|maker| maker.upholds(now));
        Ok(())
    })?;
    Ok(upheld)
}

/// A token that may be called with, and whom it stands for. Unknown, expired and revoked look the same.
pub(super) fn valid(desk: &mut Desk, namespace: &Namespace, hash: &str) -> Result<(Token, Principal), Stop> {
    let token = desk.peek::<Token>(namespace, hash)?.filter(|token| token.is_valid(desk.now())).ok_or_else(unknown)?;
    if !is_upheld(desk, namespace, &token)? {
        return Err(unknown().into());
    }
    let principal = desk.peek::<Principal>(namespace, &token.principal)?.filter(|principal| !principal.disabled);
    Ok((token, principal.ok_or_else(unknown)?))
}

fn end(desk: &mut Desk, namespace: &Namespace, hash: &str, mut token: Token) -> Result<(), Stop> {
    let Some(kept) = &mut token.kept else { return desk.remove::<Token>(namespace, hash) };
    // Remembered, or its place would bring it back.
    kept.standing = Standing::Revoked;
    desk.put(namespace, hash, &token)
}

/// All of a principal's tokens.
pub(super) fn end_all(desk: &mut Desk, namespace: &Namespace, principal: &str) -> Result<(), Stop> {
    let keys = desk.siblings(namespace, Token::KIND, principal)?;
    desk.for_all(keys, |desk, key| match desk.get::<Token>(namespace, &key.key)? {
        Some(token) => end(desk, namespace, &key.key, token),
        None => Ok(()),
    })
}

/// What a token inherits from the one that makes it.
struct Inherited {
    made_by: Vec<Arc<str>>,
    expires_at: Option<Timestamp>,
    root: Option<Arc<str>>,
}

impl IssueToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.principal), true);
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), true);
        if let Some(maker) = &self.made_by {
            keys.want_record(record::key_of::<Token>(&self.namespace, maker), true);
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<KnownToken> {
        check_hash(&self.hash)?;
        check_name("shown", &self.shown, &desk.limits())?;
        let principal = principal(desk, &self.namespace, &self.principal)?;
        if principal.disabled {
            return Err(Refusal::Forbidden { why: format!("the principal {} is disabled", self.principal) }.into());
        }
        if desk.get::<Token>(&self.namespace, &self.hash)?.is_some() {
            return Err(Refusal::Exists { what: "token", name: self.shown.to_string() }.into());
        }
        let Inherited { made_by, expires_at, root } = self.inherit(desk)?;
        let token = Token {
            principal: self.principal.clone(),
            shown: self.shown.clone(),
            created_at: desk.now(),
            expires_at,
            last_used: None,
            made_by,
            root: root.filter(|root| *root != self.principal),
            has_made: false,
            session: self.session,
            kept: None,
        };
        desk.put(&self.namespace, &self.hash, &token)?;
        Ok(Ok(KnownToken { principal: Box::new(principal), token: Box::new(token) }))
    }

    fn inherit(&self, desk: &mut Desk) -> Result<Inherited, Stop> {
        let Some(hash) = &self.made_by else {
            return Ok(Inherited { made_by: Vec::new(), expires_at: self.expires_at, root: None });
        };
        let ended = || Refusal::Forbidden { why: "the token that makes this one is no longer valid".into() };
        let (_, maker) = match valid(desk, &self.namespace, hash) {
            Err(Stop::Refused(Refusal::NotFound { .. })) => return Err(ended().into()),
            found => found?,
        };
        let mut token = desk.get::<Token>(&self.namespace, hash)?.ok_or_else(ended)?;
        if token.made_by.len() >= LINE_MAX {
            let why = format!(
                "tokens can be made with one another {LINE_MAX} times at most; use the token of an earlier one in the line"
            );
            return Err(Refusal::Forbidden { why }.into());
        }
        let expires_at = match (self.expires_at, token.expires_at) {
            (Some(asked), Some(ends)) => Some(asked.min(ends)),
            (asked, ends) => asked.or(ends),
        };
        // Who may make as many principals as they like gives each a share of its own.
        let root = (!maker.rules_all()).then(|| token.root.clone().unwrap_or(maker.name));
        let made_by = token.made_by.iter().chain([hash]).cloned().collect();
        if !token.has_made {
            token.has_made = true;
            desk.put(&self.namespace, hash, &token)?;
        }
        Ok(Inherited { made_by, expires_at, root })
    }
}

impl RevokeToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let found = desk.get::<Token>(&self.namespace, &self.hash)?;
        let token = found.filter(|token| !token.is_revoked()).ok_or_else(unknown)?;
        end(desk, &self.namespace, &self.hash, token)?;
        Ok(Ok(()))
    }
}

impl UseToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), false);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<KnownToken> {
        let (mut token, principal) = valid(desk, &self.namespace, &self.hash)?;
        if token.last_used.is_none_or(|at| desk.now() - at >= LAST_USED_EVERY)
            && let Some(mut used) = desk.get::<Token>(&self.namespace, &self.hash)?
        {
            used.last_used = Some(desk.now());
            desk.put(&self.namespace, &self.hash, &used)?;
            token = used;
        }
        Ok(Ok(KnownToken { principal: Box::new(principal), token: Box::new(token) }))
    }
}

impl KeepToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.principal), true);
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<KnownToken> {
        check_hash(&self.hash)?;
        check_name("shown", &self.shown, &desk.limits())?;
        let principal = principal(desk, &self.namespace, &self.principal)?;
        let kept = Some(KeptOutside { standing: Standing::Valid, until: self.until });
        let known = desk.get::<Token>(&self.namespace, &self.hash)?;
        if principal.disabled || known.as_ref().is_some_and(Token::is_revoked) {
            let why = format!("the token in {} was revoked, or its principal disabled", self.shown);
            return Err(Refusal::Forbidden { why }.into());
        }
        let fresh = || Token {
            principal: self.principal.clone(),
            shown: self.shown.clone(),
            created_at: desk.now(),
            expires_at: None,
            last_used: None,
            made_by: Vec::new(),
            root: None,
            has_made: false,
            session: false,
            kept: None,
        };
        let old = known.clone();
        let token = Token { kept, shown: self.shown.clone(), ..known.unwrap_or_else(fresh) };
        if *token.principal != *self.principal {
            return Err(Refusal::Exists { what: "token", name: self.shown.to_string() }.into());
        }
        if old.as_ref() != Some(&token) {
            desk.put(&self.namespace, &self.hash, &token)?;
        }
        Ok(Ok(KnownToken { principal: Box::new(principal), token: Box::new(token) }))
    }
}

impl ReplaceToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let mut token = desk.get::<Token>(&self.namespace, &self.hash)?.ok_or_else(unknown)?;
        let replaced = Some(KeptOutside { standing: Standing::Replaced, until: None });
        if token.is_revoked() || token.kept == replaced {
            return Ok(Ok(()));
        }
        // Remembered only where something was made with it.
        if token.has_made {
            token.kept = replaced;
            desk.put(&self.namespace, &self.hash, &token)?;
        } else {
            desk.remove::<Token>(&self.namespace, &self.hash)?;
        }
        Ok(Ok(()))
    }
}

impl NeedAdmin {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), false);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        match valid(desk, &self.namespace, &self.hash) {
            Ok((_, principal)) if principal.rules_all() => Ok(Ok(())),
            Ok(_) | Err(Stop::Refused(_)) => Err(Refusal::LastAdmin.into()),
            Err(need) => Err(need),
        }
    }
}
