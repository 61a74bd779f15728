//! What needs no common transaction goes in pieces where others are at work too.
//!
//! Each piece is as much as others may wait for. After it the namespace rests: all that it wants to have done in bulk, by however many
//! callers, gets a quarter of the time.

use crate::{
    delivery::lost,
    engine::Error,
    intake::{Intake, PIECE_BYTES, ROOM_UNIT, weight},
};
use parking_lot::Mutex;
use std::{collections::HashMap, iter::Peekable, sync::Arc, vec::IntoIter};
use tokio::{
    sync::{Mutex as Turns, OwnedMutexGuard},
    time::{Instant, sleep},
};
use windlass_core::{Command, Namespace, Refusal, Reply};

/// How many times as long as a piece took.
const REST: u32 = 3;

/// Those who have something done in pieces, by namespace: one piece at a time.
#[derive(Default)]
pub struct Pieces(Mutex<HashMap<Namespace, Arc<Turns<()>>>>);

impl Pieces {
    async fn turn(&self, namespace: &Namespace) -> OwnedMutexGuard<()> {
        let line = {
            let mut lines = self.0.lock();
            lines.retain(|_, line| Arc::strong_count(line) > 1);
            lines.entry(namespace.clone()).or_default().clone()
        };
        line.lock_owned().await
    }
}

impl Intake {
    pub async fn run_in_pieces(
        &self,
        commands: Vec<Command>,
        piece: usize,
    ) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        let mut room = self.take_room(&commands, weight(&commands))?;
        let mut replies = Vec::with_capacity(commands.len());
        let mut commands = commands.into_iter().peekable();
        while let Some(first) = commands.peek() {
            // What is due is the server's own work.
            let whose = if matches!(first, Command::Due(_)) { None } else { first.namespace().cloned() };
            let turn = match &whose {
                Some(namespace) => Some(self.pieces.turn(namespace).await),
                None => None,
            };
            let begun = Instant::now();
            let (piece, weight) = next_piece(&mut commands, piece);
            let units = room.num_permits().min(weight / ROOM_UNIT);
            let room = room.split(units).ok_or(Error::Overloaded)?;
            replies.extend(self.push(piece, room, None, weight)?.await.map_err(lost)??);
            if turn.is_some() && commands.peek().is_some() && self.queue.is_shared() {
                sleep(begun.elapsed() * REST).await;
            }
        }
        Ok(replies)
    }
}

/// So many commands, or fewer that bring many bytes.
fn next_piece(commands: &mut Peekable<IntoIter<Command>>, most: usize) -> (Vec<Command>, usize) {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    while piece.len() < most
        && let Some(command) = commands.next_if(|next| bytes == 0 || bytes + next.weight() <= PIECE_BYTES)
    {
        bytes += command.weight();
        piece.push(command);
    }
    (piece, bytes)
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
