//! What a command answers, as a type: whoever asks gets that and nothing else.

use super::{Command, all::All, audited::Audited};
use crate::model::reply::Reply;

/// A command, or something made of commands, that knows the type of its answer.
pub trait Ask: Into<Command> {
    type Reply;
    /// None: it is the answer to another command.
    fn read(reply: Reply) -> Option<Self::Reply>;
}

/// For those who pass on whatever they were given.
impl Ask for Command {
    type Reply = Reply;
    fn read(reply: Reply) -> Option<Reply> {
        Some(reply)
    }
}

/// For lists of different commands, of which only the refusal matters.
impl Ask for All {
    type Reply = Vec<Reply>;
    fn read(reply: Reply) -> Option<Vec<Reply>> {
        reply.try_into().ok()
    }
}

impl From<All> for Command {
    fn from(all: All) -> Self {
        Command::All(all)
    }
}

/// Several of the same kind, all or nothing.
#[derive(Clone, Debug)]
pub struct AllOf<C>(pub Vec<C>);

impl<C: Ask> Ask for AllOf<C> {
    type Reply = Vec<C::Reply>;
    fn read(reply: Reply) -> Option<Self::Reply> {
        Vec::try_from(reply).ok()?.into_iter().map(C::read).collect()
    }
}

impl<C: Ask> From<AllOf<C>> for Command {
    fn from(all: AllOf<C>) -> Self {
        Command::All(All { commands: all.0.into_iter().map(Into::into).collect() })
    }
}

/// Two commands in this order, both or none.
#[derive(Clone, Debug)]
pub struct Both<A, B>(pub A, pub B);

impl<A: Ask, B: Ask> Ask for Both<A, B> {
    type Reply = (A::Reply, B::Reply);
    fn read(reply: Reply) -> Option<Self::Reply> {
        let [first, second] = Vec::try_from(reply).ok()?.try_into().ok()?;
        Some((A::read(first)?, B::read(second)?))
    }
}

impl<A: Ask, B: Ask> From<Both<A, B>> for Command {
    fn from(both: Both<A, B>) -> Self {
        Command::All(All { commands: vec![both.0.into(), both.1.into()] })
    }
}

impl<C: Ask> Ask for Audited<C> {
    type Reply = C::Reply;
    fn read(reply: Reply) -> Option<Self::Reply> {
        C::read(reply)
    }
}

impl<C: Ask> From<Audited<C>> for Command {
    fn from(audited: Audited<C>) -> Self {
        let Audited { by, command, act } = audited;
        Command::Audited(Audited { by, command: Box::new(command.into()), act })
    }
}

/// A command of any kind whose answer is wanted as a `T`, so that different ones can share a batch.
#[derive(Clone, Debug)]
pub struct Asked<T> {
    pub command: Command,
    pub read: fn(Reply) -> Option<T>,
}

impl<T> Asked<T> {
    pub fn new<C: Ask>(command: C) -> Self
    where
        T: From<C::Reply>,
    {
        Self { command: command.into(), read: |reply| C::read(reply).map(T::from) }
    }
}
