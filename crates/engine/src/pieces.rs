//! What needs no common transaction goes in pieces where others are at work too.
//!
//! Each piece is as much as others may wait for. After it the namespace rests: all that it wants to have done in bulk, by however many
//! callers, gets an eighth of the time. With less rest the slowest cycles beside a tenant that attacks take longer
//! (`e2e/tests/bad_neighbour.rs`).

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard};
use windlass_core::{Command, Namespace};

/// How many times as long as a piece took. Reports wait less: their leases run meanwhile.
const REST: u32 = 7;
const REST_OF_REPORTS: u32 = 1;

/// Those who have something done in pieces, by namespace: one piece at a time.
#[derive(Default)]
pub struct Pieces(Mutex<HashMap<Namespace, Arc<FairMutex<()>>>>);

impl Pieces {
    pub async fn turn(&self, namespace: &Namespace) -> OwnedMutexGuard<()> {
        let line = {
            let mut lines = self.0.lock();
            lines.retain(|_, line| Arc::strong_count(line) > 1);
            lines.entry(namespace.clone()).or_default().clone()
        };
        line.lock_owned().await
    }
}

/// How many times as long as it took one rests after this.
pub fn rest_after(command: &Command) -> u32 {
    if is_report(command) { REST_OF_REPORTS } else { REST }
}

/// What a worker says under its lease.
pub fn is_report(command: &Command) -> bool {
    matches!(command, Command::Complete(_) | Command::Fail(_) | Command::AppendLog(_) | Command::Progress(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn callers_of_one_namespace_take_turns_and_others_do_not_wait_for_them() {
        let [ours, theirs] = ["ours", "theirs"].map(|name| Namespace::new(name).unwrap());
        let pieces = Pieces::default();
        let at_once = async |namespace| timeout(Duration::ZERO, pieces.turn(namespace)).await.ok();
        let turn = pieces.turn(&ours).await;
        assert!(at_once(&ours).await.is_none(), "one piece at a time");
        let other = at_once(&theirs).await.expect("another namespace has its own");
        drop(turn);
        drop(at_once(&ours).await.expect("it is free again"));
        drop(other);
        drop(pieces.turn(&theirs).await);
        assert_eq!(pieces.0.lock().len(), 1, "who is gone leaves nothing");
    }
}
