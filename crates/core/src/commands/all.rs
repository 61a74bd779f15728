//! Several commands, all or nothing: a revision and the jobs it triggers, a worker's removal with everything tied to it.

use super::{Command, Decided, submit::check_size};
use crate::{
    desk::Desk,
    model::{keys::Keys, refusal::Refusal, reply::Reply},
};

#[derive(Clone, Debug)]
pub struct All {
    pub commands: Vec<Command>,
}

impl All {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.commands.iter().for_each(|command| command.keys(keys));
    }

    /// The first refusal takes everything back, also what a refusal alone would have written.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Vec<Reply>> {
        check_size("commands", self.commands.len(), desk.limits().nodes_max)?;
        let mut replies = Vec::with_capacity(self.commands.len());
        for command in &self.commands {
            // A sweep takes back what it could not do, which must not be what others did.
            if matches!(command, Command::All(_) | Command::Claim(_) | Command::Due(_)) {
                return Err(Refusal::invalid("commands", format!("{} cannot be part of it", command.name())).into());
            }
            replies.push(command.decide(desk)??);
        }
        Ok(Ok(replies))
    }
}
