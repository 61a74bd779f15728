//! Principals and tokens: create, disable, issue, revoke, note use.

use super::Decided;
use crate::{
    desk::{Desk, Stop},
    keys::Keys,
    name::{Namespace, check_name},
    principal::{Principal, Role, Token},
    record::{self, Kind},
    refusal::Refusal,
    reply::Reply,
    time::{Millis, Timestamp},
};
use std::sync::Arc;

/// How stale the last use may be before it is written again.
const LAST_USED_EVERY: Millis = Millis::from_secs(60);

#[derive(Clone, Debug)]
pub struct CreatePrincipal {
    pub namespace: Namespace,
    pub name: Arc<str>,
    pub role: Role,
    pub namespaces: Vec<Namespace>,
}

/// Ends all its tokens as well.
#[derive(Clone, Debug)]
pub struct DisablePrincipal {
    pub namespace: Namespace,
    pub name: Arc<str>,
}

/// Lets a disabled principal have tokens again; those it had stay gone.
#[derive(Clone, Debug)]
pub struct EnablePrincipal {
    pub namespace: Namespace,
    pub name: Arc<str>,
}

#[derive(Clone, Debug)]
pub struct IssueToken {
    pub namespace: Namespace,
    pub principal: Arc<str>,
    /// Lower-case hex SHA-256 of the token.
    pub hash: Arc<str>,
    pub shown: Arc<str>,
    pub expires_at: Option<Timestamp>,
}

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

fn principal(desk: &mut Desk, namespace: &Namespace, name: &str) -> Result<Principal, Stop> {
    desk.get::<Principal>(namespace, name)?.ok_or_else(|| Refusal::not_found("principal", name).into())
}

impl CreatePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        check_name("name", &self.name, &desk.limits())?;
        if desk.get::<Principal>(&self.namespace, &self.name)?.is_some() {
            return Err(Refusal::Exists { what: "principal", name: self.name.to_string() }.into());
        }
        let principal = Principal {
            name: self.name.clone(),
            role: self.role,
            namespaces: self.namespaces.clone(),
            created_at: desk.now(),
            disabled: false,
        };
        desk.put(&self.namespace, &self.name, &principal)?;
        Ok(Ok(Reply::Principal(Box::new(principal))))
    }
}

impl DisablePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
        keys.siblings.insert((self.namespace.clone(), Token::KIND.into(), self.name.clone()));
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let mut principal = principal(desk, &self.namespace, &self.name)?;
        principal.disabled = true;
        desk.put(&self.namespace, &self.name, &principal)?;
        let tokens = desk.siblings(&self.namespace, Token::KIND, &self.name)?;
        desk.for_all(tokens, |desk, token| desk.delete_record(&token))?;
        Ok(Ok(Reply::Principal(Box::new(principal))))
    }
}

impl EnablePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let mut principal = principal(desk, &self.namespace, &self.name)?;
        if principal.disabled {
            principal.disabled = false;
            desk.put(&self.namespace, &self.name, &principal)?;
        }
        Ok(Ok(Reply::Principal(Box::new(principal))))
    }
}

impl IssueToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.principal), true);
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        if self.hash.len() != 64 || !self.hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(Refusal::invalid("hash", "must be 64 lower-case hexadecimal digits".into()).into());
        }
        check_name("shown", &self.shown, &desk.limits())?;
        let principal = principal(desk, &self.namespace, &self.principal)?;
        if principal.disabled {
            return Err(Refusal::Forbidden { why: format!("the principal {} is disabled", self.principal) }.into());
        }
        if desk.get::<Token>(&self.namespace, &self.hash)?.is_some() {
            return Err(Refusal::Exists { what: "token", name: self.shown.to_string() }.into());
        }
        let token = Token {
            principal: self.principal.clone(),
            shown: self.shown.clone(),
            created_at: desk.now(),
            expires_at: self.expires_at,
            last_used: None,
        };
        desk.put(&self.namespace, &self.hash, &token)?;
        Ok(Ok(Reply::Principal(Box::new(principal))))
    }
}

impl RevokeToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        if desk.get::<Token>(&self.namespace, &self.hash)?.is_none() {
            return Err(Refusal::not_found("token", "with this hash").into());
        }
        desk.remove::<Token>(&self.namespace, &self.hash)?;
        Ok(Ok(Reply::Done))
    }
}

impl UseToken {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Token>(&self.namespace, &self.hash), false);
    }

    /// Who a token stands for. Unknown, expired and revoked look the same.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let unknown = || Refusal::not_found("token", "with this hash");
        let token = desk.peek::<Token>(&self.namespace, &self.hash)?.filter(|token| token.is_live(desk.now()));
        let token = token.ok_or_else(unknown)?;
        let principal =
            desk.peek::<Principal>(&self.namespace, &token.principal)?.filter(|principal| !principal.disabled);
        let principal = principal.ok_or_else(unknown)?;
        if token.last_used.is_none_or(|at| desk.now() - at >= LAST_USED_EVERY)
            && let Some(mut token) = desk.get::<Token>(&self.namespace, &self.hash)?
        {
            token.last_used = Some(desk.now());
            desk.put(&self.namespace, &self.hash, &token)?;
        }
        Ok(Ok(Reply::Principal(Box::new(principal))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::{Story, code, ns};

    fn create() -> CreatePrincipal {
        CreatePrincipal { namespace: ns(), name: "ann".into(), role: Role::Editor, namespaces: vec![] }
    }

    fn hash(digit: &str) -> Arc<str> {
        digit.repeat(64).into()
    }

    fn issue(digit: &str) -> IssueToken {
        IssueToken {
            namespace: ns(),
            principal: "ann".into(),
            hash: hash(digit),
            shown: "wl_1".into(),
            expires_at: None,
        }
    }

    fn used(digit: &str) -> UseToken {
        UseToken { namespace: ns(), hash: hash(digit) }
    }

    #[test]
    fn a_token_stands_for_its_principal_until_it_is_revoked_expires_or_the_principal_goes() {
        let mut story = Story::new();
        assert_eq!(code(&story.run(issue("a"))), "not-found");
        story.run(create()).unwrap();
        assert_eq!(code(&story.run(create())), "exists");
        let expires_at = Some(story.now + Millis(100));
        for command in [issue("a"), issue("b"), issue("c"), IssueToken { expires_at, ..issue("d") }] {
            story.run(command).unwrap();
        }
        assert_eq!(code(&story.run(issue("a"))), "exists");
        assert_eq!(code(&story.run(issue("G"))), "invalid");
        assert!(["a", "b", "c", "d"].iter().all(|digit| code(&story.run(used(digit))) == "ok"));
        story.run(RevokeToken { namespace: ns(), hash: hash("a") }).unwrap();
        assert_eq!(code(&story.run(RevokeToken { namespace: ns(), hash: hash("a") })), "not-found");
        story.wait(100);
        assert_eq!((code(&story.run(used("a"))), code(&story.run(used("d")))), ("not-found", "not-found"));
        let disable = DisablePrincipal { namespace: ns(), name: "ann".into() };
        story.run(disable).unwrap();
        assert_eq!((code(&story.run(used("b"))), code(&story.run(issue("e")))), ("not-found", "forbidden"));
        assert!(story.typed::<Token>(&hash("c")).is_none());
        let enable = |name: &str| EnablePrincipal { namespace: ns(), name: name.into() };
        assert_eq!((code(&story.run(enable("bob"))), code(&story.run(enable("ann")))), ("not-found", "ok"));
        assert_eq!(code(&story.run(used("b"))), "not-found", "its old tokens stay gone");
        assert_eq!((code(&story.run(issue("e"))), code(&story.run(used("e")))), ("ok", "ok"));
    }

    #[test]
    fn use_is_noted_at_most_once_a_minute() {
        let mut story = Story::new();
        story.run(create()).unwrap();
        story.run(issue("a")).unwrap();
        for (wait, noted) in [(0, 1_000_000), (59_999, 1_000_000), (1, 1_060_000)] {
            story.wait(wait);
            story.run(used("a")).unwrap();
            assert_eq!(story.typed::<Token>(&hash("a")).unwrap().last_used, Some(Timestamp(noted)));
        }
    }
}
