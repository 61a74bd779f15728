//! What needs no common transaction goes in pieces where others are at work too.
//!
//! Each piece is as much as others may wait for. After it the namespace rests: all that it wants to have done in bulk, by however many
//! callers, gets a quarter of the time.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};
use windlass_core::Namespace;

/// How many times as long as a piece took.
pub const REST: u32 = 3;

/// Those who have something done in pieces, by namespace: one piece at a time.
#[derive(Default)]
pub struct Pieces(Mutex<HashMap<Namespace, Arc<Turns<()>>>>);

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
