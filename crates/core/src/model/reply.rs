//! What a command answers when it was not refused. Each command names the type of its answer in the list of commands;
//! `Reply` is any of them, for batches of different commands.

use crate::model::{
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

macro_rules! replies {
    ($($name:ident($type:ty)),+ $(,)?) => {
        #[derive(Clone, Debug, PartialEq)]
        pub enum Reply { Done, $($name($type)),+ }

        $(impl From<$type> for Reply {
            fn from(reply: $type) -> Self { Reply::$name(reply) }
        }
        impl TryFrom<Reply> for $type {
            type Error = Reply;
            fn try_from(reply: Reply) -> Result<Self, Reply> {
                match reply { Reply::$name(reply) => Ok(reply), other => Err(other) }
            }
        })+
    };
}

replies! {
    Submitted(Submitted),
    Leases(Vec<Leased>),
    Renewed(Renewed),
    Ended(Ended),
    Job(Box<Job>),
    Seen(Seen),
    Logged(Logged),
    Worker(Box<Worker>),
    Unregistered(Unregistered),
    Run(KnownRun),
    Definition(Box<Definition>),
    Linked(Linked),
    Signalled(Signalled),
    Principal(Box<Principal>),
    Token(KnownToken),
    Record(Box<Record>),
    All(Vec<Reply>),
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Reply::Done
    }
}

impl TryFrom<Reply> for () {
    type Error = Reply;
    fn try_from(reply: Reply) -> Result<Self, Reply> {
        if matches!(reply, Reply::Done) { Ok(()) } else { Err(reply) }
    }
}

/// `existing`: the key was used before and this is the job it made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Submitted {
    pub job: JobId,
    pub state: State,
    pub existing: bool,
}

/// `cancelled`: stop working, the end is already decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Renewed {
    pub until: Option<Timestamp>,
    pub cancelled: bool,
}

/// `replayed`: this very report was accepted before.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub job: Box<Job>,
    pub replayed: bool,
}

/// `piece`: the place of what was appended, or of the last one where nothing was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logged {
    pub piece: u64,
    pub at: Timestamp,
    pub dropped_bytes: u64,
    pub cancelled: bool,
}

/// How many jobs were lost with the worker, here and now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unregistered {
    pub lost: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KnownRun {
    pub id: RunId,
    pub run: Box<Run>,
}

/// A worker and the definition it serves from now on. `created`: the definition was not in force before.
#[derive(Clone, Debug, PartialEq)]
pub struct Linked {
    pub definition: Box<Definition>,
    pub created: bool,
    pub worker: Box<Worker>,
}

/// Steps that went on by an event; or it is kept for the first that waits for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signalled {
    pub steps: u32,
    pub kept: bool,
}

/// A token, and whom it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownToken {
    pub principal: Box<Principal>,
    pub token: Box<Token>,
}

/// A job, with the worker that holds it or did last, if that is still known.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub job: Box<Job>,
    /// Empty unless it was asked for.
    pub payload: Payload,
    pub worker: Option<Box<Worker>>,
}

/// A job under a fresh lease, with all its worker needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Leased {
    pub lease: LeaseId,
    pub job: Box<Job>,
    pub payload: Payload,
}
