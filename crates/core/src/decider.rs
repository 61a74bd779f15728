//! From a batch of commands to a set of changes, without I/O: the store loads what is needed and writes what comes out.

use crate::{
    commands::Command,
    desk::{Desk, Stop},
    model::{
        change::Decision,
        keys::{Keys, Rows},
        limits::Limits,
        refusal::Refusal,
        reply::Reply,
        time::Timestamp,
    },
};

/// A command with the randomness it may use, drawn before the batch so that repeating the batch decides the same.
#[derive(Clone, Debug)]
pub struct Item {
    pub command: Command,
    pub seed: u64,
}

/// What the store supplies once per batch.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub now: Timestamp,
    /// Places in the queue from here on belong to this batch.
    pub first_seq: i64,
    pub limits: Limits,
}

pub enum Step {
    /// Load these and call again.
    Need(Keys),
    Done(Decision),
}

pub struct Decider<'a> {
    items: &'a [Item],
    /// Claims come last, so that they see all the work this batch made.
    order: Vec<usize>,
    /// How many of `order` are decided.
    decided: usize,
    replies: Vec<Option<Result<Reply, Refusal>>>,
    desk: Desk,
    asked: Keys,
}

impl<'a> Decider<'a> {
    pub fn new(items: &'a [Item], context: Context) -> Self {
        let (claims, others): (Vec<usize>, Vec<usize>) =
            (0..items.len()).partition(|&at| matches!(items[at].command, Command::Claim(_)));
        Self {
            items,
            order: others.into_iter().chain(claims).collect(),
            decided: 0,
            replies: items.iter().map(|_| None).collect(),
            desk: Desk::new(context.now, context.first_seq, context.limits),
            asked: Keys::default(),
        }
    }

    /// The keys every command is known to need before any of them is decided.
    pub fn first_keys(&mut self) -> Keys {
        let mut keys = Keys::default();
        for item in self.items {
            item.command.keys(&mut keys);
        }
        self.asked = keys.clone();
        keys
    }

    /// Goes as far as the rows reach. `rows` answers the keys asked for last.
    pub fn step(&mut self, rows: Rows) -> Step {
        let asked = std::mem::take(&mut self.asked);
        self.desk.absorb(&asked, rows);
        while self.decided < self.order.len() {
            let at = self.order[self.decided];
            match self.try_command(at) {
                Some(reply) => {
                    self.replies[at] = Some(reply);
                    self.decided += 1;
                }
                None => return self.ask(),
            }
        }
        let desk = std::mem::replace(&mut self.desk, Desk::new(Timestamp(0), 0, Limits::default()));
        let mut decision = desk.finish();
        decision.replies = self.replies.drain(..).map(|reply| reply.expect("every command was decided")).collect();
        Step::Done(decision)
    }

    /// None: rows are missing and the desk has noted them.
    fn try_command(&mut self, at: usize) -> Option<Result<Reply, Refusal>> {
        let item = &self.items[at];
        self.desk.begin(item.seed);
        match item.command.decide(&mut self.desk) {
            Ok(reply) => Some(reply),
            Err(stop) => {
                self.desk.roll_back();
                match stop {
                    Stop::Need => None,
                    Stop::Refused(refusal) => Some(Err(refusal)),
                }
            }
        }
    }

    /// One command is stuck. The ones behind it are tried too and taken back, only to learn what they will need, so that
    /// the batch pays one round trip and not one per command.
    fn ask(&mut self) -> Step {
        for next in self.decided + 1..self.order.len() {
            if self.try_command(self.order[next]).is_some() {
                self.desk.roll_back();
            }
        }
        self.asked = self.desk.take_wanted();
        Step::Need(self.asked.clone())
    }
}

/// Runs a batch against anything that can load rows. Stores with blocking access use it as it is.
pub fn drive<E>(
    items: &[Item],
    context: Context,
    mut load: impl FnMut(&Keys) -> Result<Rows, E>,
) -> Result<Decision, E> {
    let mut decider = Decider::new(items, context);
    let mut keys = decider.first_keys();
    loop {
        let rows = if keys.is_empty() { Rows::default() } else { load(&keys)? };
        match decider.step(rows) {
            Step::Need(more) => keys = more,
            Step::Done(decision) => return Ok(decision),
        }
    }
}
