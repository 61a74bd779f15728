//! Principals: create, change, disable, enable, delete. Their tokens follow.

use super::{Decided, tokens};
use crate::{
    desk::{Desk, Stop},
    model::{
        keys::Keys,
        name::{Namespace, check_name},
        principal::{ANONYMOUS, Principal, Role, Token},
        record::{self, Kind},
        refusal::Refusal,
    },
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct CreatePrincipal {
    pub namespace: Namespace,
    pub name: Arc<str>,
    pub role: Role,
    pub namespaces: Vec<Namespace>,
}

/// Gives it other rights, which its tokens have at once. What is absent stays.
#[derive(Clone, Debug)]
pub struct ChangePrincipal {
    pub namespace: Namespace,
    pub name: Arc<str>,
    pub role: Option<Role>,
    pub namespaces: Option<Vec<Namespace>>,
}

/// Ends all its tokens as well, and what was made with them.
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

/// Ends all its tokens, and what was made with them. The name is free for somebody else, who gets nothing of the old one's.
#[derive(Clone, Debug)]
pub struct DeletePrincipal {
    pub namespace: Namespace,
    pub name: Arc<str>,
}

pub(super) fn principal(desk: &mut Desk, namespace: &Namespace, name: &str) -> Result<Principal, Stop> {
    desk.get::<Principal>(namespace, name)?.ok_or_else(|| Refusal::not_found("principal", name).into())
}

impl CreatePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Principal>> {
        check_name("name", &self.name, &desk.limits())?;
        if &*self.name == ANONYMOUS {
            let why = format!("{ANONYMOUS} is what callers without a token are called; choose another name");
            return Err(Refusal::invalid("name", why).into());
        }
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
        Ok(Ok(Box::new(principal)))
    }
}

impl DisablePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
        keys.siblings.insert((self.namespace.clone(), Token::KIND.into(), self.name.clone()));
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Principal>> {
        let mut principal = principal(desk, &self.namespace, &self.name)?;
        principal.disabled = true;
        desk.put(&self.namespace, &self.name, &principal)?;
        tokens::end_all(desk, &self.namespace, &self.name)?;
        Ok(Ok(Box::new(principal)))
    }
}

impl ChangePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Principal>> {
        let mut principal = principal(desk, &self.namespace, &self.name)?;
        principal.role = self.role.unwrap_or(principal.role);
        if let Some(namespaces) = &self.namespaces {
            principal.namespaces = namespaces.clone();
        }
        desk.put(&self.namespace, &self.name, &principal)?;
        Ok(Ok(Box::new(principal)))
    }
}

impl DeletePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
        keys.siblings.insert((self.namespace.clone(), Token::KIND.into(), self.name.clone()));
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        principal(desk, &self.namespace, &self.name)?;
        tokens::end_all(desk, &self.namespace, &self.name)?;
        desk.remove::<Principal>(&self.namespace, &self.name)?;
        Ok(Ok(()))
    }
}

impl EnablePrincipal {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Principal>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Principal>> {
        let mut principal = principal(desk, &self.namespace, &self.name)?;
        if principal.disabled {
            principal.disabled = false;
            desk.put(&self.namespace, &self.name, &principal)?;
        }
        Ok(Ok(Box::new(principal)))
    }
}
