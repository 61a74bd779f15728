//! How commands get into the queue, with room for what they weigh.

use crate::{
    batcher::{Answer, Queue, Request},
    engine::Error,
    pieces::Pieces,
    settings::Settings,
};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use windlass_core::{
    Command, Namespace, Refusal, Reply,
    commands::{ask::Ask, claim::Claim, holder::Holder, release::Release},
};

/// A command's weight is counted in these, so that the queue's room fits a semaphore.
pub const ROOM_UNIT: usize = 256;
/// Bytes that a caller's commands bring into one transaction while others are at work.
pub const PIECE_BYTES: usize = 128 << 10;

pub struct Intake {
    pub queue: Arc<Queue>,
    room: Arc<Semaphore>,
    log_room: Arc<Semaphore>,
    pub(crate) pieces: Pieces,
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
            drop(self.enqueue(vec![release.into()], None));
        }
    }

    pub fn enqueue(
        &self,
        commands: Vec<Command>,
        abandon: Option<Namespace>,
    ) -> Result<oneshot::Receiver<Answer>, Error> {
        let weight = weight(&commands);
        let room = self.take_room(&commands, weight)?;
        self.push(commands, room, abandon, weight)
    }

    pub(crate) fn take_room(&self, commands: &[Command], weight: usize) -> Result<OwnedSemaphorePermit, Error> {
        let room = if is_log(commands) { &self.log_room } else { &self.room };
        let units = weight.div_ceil(ROOM_UNIT).min(u32::MAX as usize) as u32;
        room.clone().try_acquire_many_owned(units).map_err(|_| Error::Overloaded)
    }

    pub(crate) fn push(
        &self,
        commands: Vec<Command>,
        room: OwnedSemaphorePermit,
        abandon: Option<Namespace>,
        weight: usize,
    ) -> Result<oneshot::Receiver<Answer>, Error> {
        let (is_log, (reply, receiver)) = (is_log(&commands), oneshot::channel());
        let taken = self.queue.push(Request { commands, reply, room, abandon, weight }, is_log);
        if taken { Ok(receiver) } else { Err(Error::Closed) }
    }
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
