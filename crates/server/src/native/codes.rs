//! The problems that a route may answer with.

use crate::{
    problem::Code,
    route::{Access, Route},
};
use std::collections::BTreeMap;

/// Problems that any route may answer with, beside its own.
const COMMON: [Code; 10] = [
    Code::WrongHost,
    Code::BadRequest,
    Code::Timeout,
    Code::TooLarge,
    Code::TooMany,
    Code::Internal,
    Code::Damaged,
    Code::Unavailable,
    Code::OverQuota,
    Code::StoreFull,
];
const GUARDED: [Code; 3] = [Code::Unauthorized, Code::Forbidden, Code::ForeignOrigin];
/// Resources that lie in a namespace, which every call on them may name.
pub(super) const IN_NAMESPACE: [&str; 14] = [
    "jobs",
    "leases",
    "workers",
    "definitions",
    "schedules",
    "workflows",
    "runs",
    "artifacts",
    "items",
    "projects",
    "stats",
    "pulse",
    "overview",
    "history",
];

/// By status, the codes of all problems that a route may answer with.
pub fn problems(route: &Route) -> BTreeMap<u16, Vec<&'static str>> {
    let guarded = if route.access == Access::Open { &[][..] } else { &GUARDED[..] };
    // A namespace that cannot be one.
    let placed = if IN_NAMESPACE.contains(&resource(route)) { &[Code::Invalid][..] } else { &[][..] };
    let codes = route.doc.problems.iter().chain(&COMMON).chain(guarded).chain(placed);
    let mut found: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
    for code in codes {
        let codes = found.entry(code.status()).or_default();
        if !codes.contains(&code.name()) {
            codes.push(code.name());
        }
    }
    found
}

pub(super) fn resource(route: &Route) -> &'static str {
    let mut parts = route.path.trim_start_matches('/').split('/');
    match parts.next() {
        Some("api") => parts.nth(1).unwrap_or("api"),
        other => other.unwrap_or("api"),
    }
}
