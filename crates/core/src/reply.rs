//! What a command answers when it was not refused.

use crate::{
    definition::Definition,
    id::{JobId, LeaseId, RunId},
    job::{Job, State},
    payload::Payload,
    principal::{Principal, Token},
    record::Record,
    run::Run,
    time::Timestamp,
    worker::Worker,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Done,
    /// `existing`: the key was used before and this is the job it made.
    Submitted {
        job: JobId,
        state: State,
        existing: bool,
    },
    Leases(Vec<Leased>),
    /// `cancelled`: stop working, the end is already decided.
    Renewed {
        until: Option<Timestamp>,
        cancelled: bool,
    },
    /// `replayed`: this very report was accepted before.
    Ended {
        job: Box<Job>,
        replayed: bool,
    },
    Job(Box<Job>),
    /// `piece`: the place of what was appended, or of the last one where nothing was.
    Logged {
        piece: u64,
        at: Timestamp,
        dropped_bytes: u64,
        cancelled: bool,
    },
    Worker(Box<Worker>),
    Run {
        id: RunId,
        run: Box<Run>,
    },
    Definition(Box<Definition>),
    /// Steps that went on by an event; or it is kept for the first that waits for it.
    Signalled {
        steps: u32,
        kept: bool,
    },
    Principal(Box<Principal>),
    /// A token, and whom it stands for.
    Token {
        principal: Box<Principal>,
        token: Box<Token>,
    },
    Record(Box<Record>),
    All(Vec<Reply>),
}

/// A job under a fresh lease, with all its worker needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Leased {
    pub lease: LeaseId,
    pub job: Box<Job>,
    pub payload: Payload,
}
