//! Where a caller is: whether it is a program on this machine, as the setting `without_token` has it, and its address.

use crate::{app::App, listener::Peer, peer::client};
use axum::{
    body::Body,
    extract::{FromRef, FromRequestParts, Request},
};
use http::request::Parts;
use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
};

pub struct Local(pub bool);

impl<S: Sync> FromRequestParts<S> for Local
where
    App: FromRef<S>,
{
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let request = Request::from_parts(parts.clone(), Body::empty());
        Ok(Self(App::from_ref(state).options.without_token.admits(&request)))
    }
}

/// For limits that each address has of its own.
pub struct Address(pub IpAddr);

impl Address {
    pub fn of(parts: &Parts, app: &App) -> Self {
        let peer = parts.extensions.get::<Peer>().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.address.ip());
        Self(client(peer, &parts.headers, &app.options.proxies))
    }
}

impl<S: Sync> FromRequestParts<S> for Address
where
    App: FromRef<S>,
{
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts, &App::from_ref(state)))
    }
}
