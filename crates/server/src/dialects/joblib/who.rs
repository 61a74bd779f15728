//! Who calls: a user, or one of our own principals, who passes for a user. An admin is a superuser.

use super::{
    derived,
    error::{HttpError, Result},
};
use crate::{
    auth::{Caller, Known},
    guard,
};
use axum::extract::FromRequestParts;
use http::request::Parts;
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{credential::Credential, principal::Role};

#[derive(Clone, Debug)]
pub struct Who {
    pub id: Uuid,
    pub superuser: bool,
    pub caller: Caller,
}

impl Who {
    pub fn of(caller: Caller) -> Self {
        let id = caller.user.unwrap_or_else(|| derived("user", &caller.name));
        Self { id, superuser: caller.role == Role::Admin, caller }
    }

    /// A user, with all that its token lets it do, for as long as the record of the user stays as it is.
    pub fn user(id: Uuid, superuser: bool, credential: Credential) -> Caller {
        let name: Arc<str> = format!("joblib:{id}").into();
        let role = if superuser { Role::Admin } else { Role::Editor };
        let (namespaces, credential) = ([super::namespace()].into(), Some(Arc::new(credential)));
        Caller::of(Known {
            root: name.clone(),
            name,
            role,
            works: true,
            namespaces,
            token: None,
            user: Some(id),
            credential,
        })
    }

    /// Whether this is a user, and not a principal of ours.
    pub fn is_user(&self) -> bool {
        self.caller.user.is_some()
    }
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = HttpError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        Ok(Self::of(guard::caller(parts)?))
    }
}
