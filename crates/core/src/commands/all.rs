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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{
            complete::Complete,
            holder::Holder,
            submit::Submit,
            testing::{Story, code, ns, once, tries},
        },
        model::job::State,
    };

    #[test]
    fn the_first_refusal_takes_everything_back_and_touches_no_neighbour() {
        let mut story = Story::new();
        let late = story.submit_and_claim(tries(1, 2));
        story.wait(30_000);
        let submit = |number| Command::from(Submit { namespace: ns(), job: once(number) });
        let complete = || Command::from(Complete { holder: Holder::lease(&ns(), late), result: "1".into() });
        let events = story.tables.events.len();
        let answers = story.batch(vec![
            All { commands: vec![submit(2), complete(), submit(3)] }.into(),
            All { commands: vec![submit(2), submit(2)] }.into(),
            submit(4),
            All { commands: vec![submit(2), submit(3)] }.into(),
        ]);
        assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), ["lease-lost", "exists", "ok", "ok"]);
        assert_eq!(story.state(1), State::Claimed, "what the refusal alone would have written is taken back too");
        assert_eq!((story.tables.jobs.len(), story.tables.events.len()), (4, events + 3));
    }

    #[test]
    fn it_holds_no_claims_and_none_of_itself() {
        let mut story = Story::new();
        let claim = story.claim_command("w", 1);
        for command in [Command::from(claim), All { commands: vec![] }.into()] {
            assert_eq!(code(&story.run(All { commands: vec![command] })), "invalid");
        }
    }
}
