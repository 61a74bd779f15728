//! Claims that wait, as a batch of a test meets them.

use crate::store::Batch;
use parking_lot::Mutex;
use std::sync::Arc;
use windlass_core::{
    Command, HeadQuery, Job, Limits, Tags,
    commands::claim::{Claim, Offer},
    decider::{Item, WaitingClaim, WaitingClaims},
};

/// Claims that join whatever the batch makes ready, also where that is nothing.
#[derive(Debug)]
pub struct Standing {
    waiting: Mutex<Vec<WaitingClaim>>,
    joined: Mutex<Vec<WaitingClaim>>,
}

impl Standing {
    /// Claims, each with its seed.
    pub fn new(claims: Vec<(Claim, u64)>) -> Arc<Self> {
        let waits = |(claim, seed): (Claim, u64)| {
            let offered = match &claim.offer {
                Offer::Tags(tags) | Offer::Narrowed(tags) => tags.clone(),
                Offer::Registered => Tags::default(),
            };
            let line = HeadQuery { namespace: claim.namespace.clone(), offered };
            WaitingClaim { claim, seed, line, by: None }
        };
        Arc::new(Self { waiting: Mutex::new(claims.into_iter().map(waits).collect()), joined: Mutex::default() })
    }
}

impl WaitingClaims for Standing {
    fn joined(&self) -> Vec<WaitingClaim> {
        self.joined.lock().clone()
    }

    fn join(&self, _ready: &mut dyn Iterator<Item = &Job>) -> Vec<WaitingClaim> {
        let came = std::mem::take(&mut *self.waiting.lock());
        self.joined.lock().extend(came.iter().cloned());
        came
    }
}

/// The same commands with the claims at their end as claims that wait, for every other first seed. They are answered in the
/// same order.
pub fn some_wait(mut items: Vec<Item>, limits: Limits) -> Batch {
    let others = items.iter().rposition(|item| !matches!(item.command, Command::Claim(_))).map_or(0, |last| last + 1);
    if others == 0 || items[0].seed % 2 == 1 {
        return Batch::new(items, limits);
    }
    let claim = |item: Item| match item.command {
        Command::Claim(claim) => Some((claim, item.seed)),
        _ => None,
    };
    let claims = items.split_off(others).into_iter().filter_map(claim).collect();
    Batch { waiting: Some(Standing::new(claims)), ..Batch::new(items, limits) }
}
