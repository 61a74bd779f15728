//! From a batch of commands to a set of changes, without I/O: the store loads what is needed and writes what comes out.

use crate::{
    commands::{Command, Decided, claim::Claim, credential::Credentials},
    desk::{Desk, Stop},
    model::{
        change::Decision,
        credential::Credential,
        job::Job,
        keys::{HeadQuery, Keys, Rows},
        limits::Limits,
        refusal::Refusal,
        reply::Reply,
        stall::Stalls,
        time::Timestamp,
    },
};
use std::sync::Arc;

/// A command with the randomness it may use, drawn before the batch so that repeating the batch decides the same.
#[derive(Clone, Debug)]
pub struct Item {
    pub command: Command,
    pub seed: u64,
    /// What its sender was admitted with. None: the server itself, or a caller that needs no token.
    pub by: Option<Arc<Credential>>,
}

/// What the store supplies once per batch.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub now: Timestamp,
    /// Places in the queue from here on belong to this batch.
    pub first_seq: i64,
    pub limits: Limits,
    /// When this server did not respond.
    pub stalls: Stalls,
}

/// A claim that waits for work.
#[derive(Clone, Debug)]
pub struct WaitingClaim {
    pub claim: Claim,
    pub seed: u64,
    /// The line it stands in.
    pub line: HeadQuery,
    pub by: Option<Arc<Credential>>,
}

/// What waiting claims need to be decided.
fn keys_of_waiting(claims: &[WaitingClaim], keys: &mut Keys) {
    Credentials::keys(claims.iter().filter_map(|waiting| waiting.by.as_ref()), keys);
    claims.iter().for_each(|waiting| waiting.claim.keys_in_line(&waiting.line, keys));
}

/// All claims that wait. Those that fit what a batch made ready are decided with it, as its last commands.
pub trait WaitingClaims: Send + Sync + std::fmt::Debug {
    /// Those that have joined this batch already, when it is decided again.
    fn joined(&self) -> Vec<WaitingClaim>;

    /// Lets more of them join for jobs that can be claimed since this batch, in claim order. Gives those that came.
    fn join(&self, ready: &mut dyn Iterator<Item = &Job>) -> Vec<WaitingClaim>;
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
    /// Numbered on from the last of `items`.
    joined: Vec<WaitingClaim>,
    waiting: Option<&'a dyn WaitingClaims>,
    /// How many of `order` are decided.
    decided: usize,
    replies: Vec<Option<Result<Reply, Refusal>>>,
    desk: Desk,
    credentials: Credentials,
    asked: Keys,
}

impl<'a> Decider<'a> {
    pub fn new(items: &'a [Item], context: Context) -> Self {
        let (claims, others): (Vec<usize>, Vec<usize>) =
            (0..items.len()).partition(|&at| matches!(items[at].command, Command::Claim(_)));
        Self {
            items,
            order: others.into_iter().chain(claims).collect(),
            joined: Vec::new(),
            waiting: None,
            decided: 0,
            replies: items.iter().map(|_| None).collect(),
            desk: Desk::new(context.now, context.first_seq, context.limits).after(context.stalls),
            credentials: Credentials::new(),
            asked: Keys::default(),
        }
    }

    /// Waiting claims may take what the batch makes ready. They are answered behind the commands, in the order in which they came.
    pub fn joined_by(mut self, waiting: Option<&'a dyn WaitingClaims>) -> Self {
        self.waiting = waiting;
        self.add(waiting.map(WaitingClaims::joined).unwrap_or_default());
        self
    }

    fn add(&mut self, claims: Vec<WaitingClaim>) {
        let first = self.items.len() + self.joined.len();
        self.order.extend(first..first + claims.len());
        self.replies.extend(claims.iter().map(|_| None));
        self.joined.extend(claims);
    }

    /// The keys every command is known to need before any of them is decided.
    pub fn first_keys(&mut self) -> Keys {
        let mut keys = Keys::default();
        Credentials::keys(self.items.iter().filter_map(|item| item.by.as_ref()), &mut keys);
        self.items.iter().for_each(|item| item.command.keys(&mut keys));
        keys_of_waiting(&self.joined, &mut keys);
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
                    self.items.get(at).into_iter().for_each(|item| self.credentials.decided(&item.command));
                }
                None => return self.ask(),
            }
        }
        if let Some(keys) = self.let_join() {
            self.asked = keys;
            return Step::Need(self.asked.clone());
        }
        let desk = std::mem::replace(&mut self.desk, Desk::new(Timestamp(0), 0, Limits::default()));
        let mut decision = desk.finish();
        decision.replies = self.replies.drain(..).map(|reply| reply.expect("every command was decided")).collect();
        Step::Done(decision)
    }

    /// Once: what waiting claims make ready by themselves is for those who look later. What the new ones need, if any came.
    fn let_join(&mut self) -> Option<Keys> {
        let came = self.waiting.take()?.join(&mut self.desk.made_ready());
        let mut keys = Keys::default();
        keys_of_waiting(&came, &mut keys);
        self.add(came);
        (!keys.is_empty()).then_some(keys)
    }

    /// None: rows are missing and the desk has noted them.
    fn try_command(&mut self, at: usize) -> Option<Result<Reply, Refusal>> {
        let decided = match at.checked_sub(self.items.len()) {
            None => {
                let Item { command, seed, by } = &self.items[at];
                self.desk.begin(*seed);
                let stands = self.credentials.check(&mut self.desk, by.as_ref());
                stands.and_then(|()| command.decide(&mut self.desk))
            }
            Some(at) => self.decide_joined(at),
        };
        match decided {
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

    fn decide_joined(&mut self, at: usize) -> Decided<Reply> {
        let WaitingClaim { claim, seed, by, .. } = &self.joined[at];
        self.desk.begin(*seed);
        self.credentials.check(&mut self.desk, by.as_ref())?;
        let leases = claim.decide(&mut self.desk)?;
        if leases.as_ref().is_ok_and(Vec::is_empty) {
            // It goes on waiting, as if it had not been here.
            self.desk.roll_back();
        }
        Ok(leases.map(Reply::Leases))
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
pub fn drive<E>(mut decider: Decider<'_>, mut load: impl FnMut(&Keys) -> Result<Rows, E>) -> Result<Decision, E> {
    let mut keys = decider.first_keys();
    loop {
        let rows = if keys.is_empty() { Rows::default() } else { load(&keys)? };
        match decider.step(rows) {
            Step::Need(more) => keys = more,
            Step::Done(decision) => return Ok(decision),
        }
    }
}
