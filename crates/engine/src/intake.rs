//! How commands get into the queue: with room for what they weigh, and in pieces where others are at work too.

use crate::{
    error::Error,
    pieces::{Pieces, rest_after},
    queue::Queue,
    request::{Replies, Request, lost},
    settings::Settings,
};
use std::{iter::Peekable, sync::Arc, vec::IntoIter};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, sleep},
};
use windlass_core::{
    Command, Namespace, Refusal, Reply,
    commands::{ask::Ask, claim::Claim, holder::Holder, release::Release},
    credential::Credential,
};

/// A command's weight is counted in these, so that the queue's room fits a semaphore.
const ROOM_UNIT: usize = 256;
/// Bytes that a caller's commands bring into one transaction while others are at work.
const PIECE_BYTES: usize = 128 << 10;

/// What the sender of commands was admitted with.
pub type By = Option<Arc<Credential>>;

pub struct Intake {
    pub queue: Arc<Queue>,
    room: Arc<Semaphore>,
    log_room: Arc<Semaphore>,
    pieces: Pieces,
}

impl Intake {
    pub fn new(settings: &Settings) -> Self {
        let room = |bytes: usize| Arc::new(Semaphore::new((bytes / ROOM_UNIT).clamp(1, Semaphore::MAX_PERMITS)));
        let (all, logs) = (room(settings.queue_bytes_max), room(settings.log_queue_bytes_max));
        Self { queue: Arc::default(), room: all, log_room: logs, pieces: Pieces::default() }
    }

    /// The claimer has gone: its jobs go back to where they were, uncharged, rather than wait for their leases to run out.
    pub fn take_back(&self, namespace: &Namespace, undelivered: Vec<Result<Reply, Refusal>>) {
        for leased in undelivered.into_iter().flatten().filter_map(Claim::read).flatten() {
            let release = Release { holder: Holder::lease(namespace, leased.lease) };
            // If the queue is full the lease simply runs out.
            drop(self.enqueue(vec![release.into()], &None, None));
        }
    }

    /// What needs no common transaction lets others in between.
    pub async fn run_in_pieces(
        &self,
        commands: Vec<Command>,
        by: &By,
        piece: usize,
    ) -> Result<Vec<Result<Reply, Refusal>>, Error> {
        let mut room = self.take_room(&commands, weight(&commands))?;
        let mut replies = Vec::with_capacity(commands.len());
        let mut commands = commands.into_iter().peekable();
        while let Some(first) = commands.peek() {
            // What is due is the server's own work.
            let turn = match first.namespace().filter(|_| !matches!(first, Command::Due(_))) {
                Some(namespace) => Some(self.pieces.turn(namespace).await),
                None => None,
            };
            let (begun, rest) = (Instant::now(), rest_after(first));
            let (piece, weight) = next_piece(&mut commands, piece);
            let units = room.num_permits().min(weight / ROOM_UNIT);
            let room = room.split(units).ok_or(Error::Overloaded)?;
            replies.extend(self.push(piece, by, room, None, weight)?.await.map_err(lost)??);
            if turn.is_some() && commands.peek().is_some() && self.queue.is_shared() {
                sleep(begun.elapsed() * rest).await;
            }
        }
        Ok(replies)
    }

    pub fn enqueue(
        &self,
        commands: Vec<Command>,
        by: &By,
        abandon: Option<Namespace>,
    ) -> Result<oneshot::Receiver<Replies>, Error> {
        let weight = weight(&commands);
        let room = self.take_room(&commands, weight)?;
        self.push(commands, by, room, abandon, weight)
    }

    fn take_room(&self, commands: &[Command], weight: usize) -> Result<OwnedSemaphorePermit, Error> {
        let room = if is_log(commands) { &self.log_room } else { &self.room };
        let units = weight.div_ceil(ROOM_UNIT).min(u32::MAX as usize) as u32;
        room.clone().try_acquire_many_owned(units).map_err(|_| Error::Overloaded)
    }

    fn push(
        &self,
        commands: Vec<Command>,
        by: &By,
        room: OwnedSemaphorePermit,
        abandon: Option<Namespace>,
        weight: usize,
    ) -> Result<oneshot::Receiver<Replies>, Error> {
        let (is_log, (reply, receiver)) = (is_log(&commands), oneshot::channel());
        let taken = self.queue.push(Request { commands, by: by.clone(), reply, room, abandon, weight }, is_log);
        if taken { Ok(receiver) } else { Err(Error::Closed) }
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

fn is_log(commands: &[Command]) -> bool {
    matches!(commands.first(), Some(Command::AppendLog(_)))
}

/// Too many bytes for others to wait for, in commands that need not go together.
pub fn is_bulky(commands: &[Command]) -> bool {
    commands.len() > 1 && weight(commands) > PIECE_BYTES
}

pub fn weight(commands: &[Command]) -> usize {
    commands.iter().map(Command::weight).sum()
}
