//! Who may call without a token. Only surfaces whose clients know no tokens ([`crate::route::Rules::nameless`]) ask.

use crate::{host, peer::Peer};
use axum::extract::Request;
use http::{HeaderMap, Version};
use std::net::IpAddr;

/// Words of the setting; `auto` is decided once it is known where the server listens.
pub const CHOICES: &[&str] = &["auto", "never", "loopback", "anyone"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutToken {
    Never,
    /// Programs on this machine.
    #[default]
    Loopback,
    /// Whoever reaches the port.
    Anyone,
}

impl WithoutToken {
    /// `auto` is [`WithoutToken::Loopback`] only if nobody can be meant but this machine: a server that listens elsewhere, or that
    /// answers to other names, which on loopback only a proxy brings, admits nobody.
    pub fn resolve(word: &str, listens_on: IpAddr, hosts: &[String]) -> Self {
        match word {
            "never" => Self::Never,
            "loopback" => Self::Loopback,
            "anyone" => Self::Anyone,
            _ => {
                let elsewhere = hosts.iter().any(|host| !host::is_loopback(host));
                if listens_on.to_canonical().is_loopback() && !elsewhere { Self::Loopback } else { Self::Never }
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Loopback => "loopback",
            Self::Anyone => "anyone",
        }
    }

    pub fn admits(self, request: &Request) -> bool {
        match self {
            Self::Never => false,
            Self::Loopback => is_local(request),
            Self::Anyone => true,
        }
    }
}

/// From a loopback address, to a loopback name, and not passed on by a proxy, behind which anybody may be.
pub fn is_local(request: &Request) -> bool {
    let from_here =
        request.extensions().get::<Peer>().is_some_and(|peer| peer.address.ip().to_canonical().is_loopback());
    from_here
        && !is_passed_on(request.version(), request.headers())
        && host::host_of(request).is_some_and(|host| host::is_loopback(host::name_of(host)))
}

/// What proxies and content delivery networks add to a request.
const PROXIES_ADD: &[&str] = &[
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-remote-ip",
    "x-remote-addr",
    "x-proxyuser-ip",
    "x-nginx-proxy",
    "x-scheme",
    "x-url-scheme",
    "x-host",
    "x-varnish",
    "true-client-ip",
    "client-ip",
    "wl-proxy-client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "cdn-loop",
    "front-end-https",
    "max-forwards",
    "proxy-connection",
];
const PROXIES_PREFIX: &[&str] =
    &["x-forwarded", "x-original-", "x-envoy-", "x-amzn-", "x-amz-cf-", "x-azure-", "x-arr-", "x-appengine-", "cf-"];

/// HTTP/1.0 is what nginx speaks to those behind it unless told otherwise, and no client of these surfaces speaks it.
fn is_passed_on(version: Version, headers: &HeaderMap) -> bool {
    let sign = |name: &str| PROXIES_ADD.contains(&name) || PROXIES_PREFIX.iter().any(|begin| name.starts_with(begin));
    version < Version::HTTP_11 || headers.keys().any(|name| sign(name.as_str()))
}
