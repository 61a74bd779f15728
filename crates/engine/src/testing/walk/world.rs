//! What the walker knows: names to choose from, and what earlier replies brought.

use super::dice::Dice;
use std::{collections::HashMap, sync::Arc};
use uuid::Uuid;
use windlass_core::{
    Command, JobId, JobKey, LeaseId, Limits, Millis, Namespace, Refusal, Reply, RunId, Timestamp, WorkerId,
    commands::{advance::Move, submit_run::RunNode},
    decider::Item,
    reply::{Ended, KnownRun, Submitted},
    schedule::{Rule, Schedule},
};

pub(super) const WORKERS: [&str; 6] = ["w1", "w2", "w3", "w4", "w5", "Arbeiter ✓"];
pub(super) const PRINCIPALS: [&str; 4] = ["alice", "bob", "carol", "dave"];
pub(super) const RECORD_KIND: &str = "note";

pub(super) struct World {
    pub dice: Dice,
    pub now: Timestamp,
    pub namespaces: [Namespace; 2],
    pub jobs: Vec<JobKey>,
    pub leases: Vec<Known>,
    /// Final reports that were accepted, to be sent again.
    pub reports: Vec<Command>,
    pub runs: Vec<(Namespace, RunId)>,
    /// Steps that are decided while their run goes on.
    pub staged: Vec<(Namespace, RunId, JobId, Arc<str>)>,
    /// Plans whose run is yet to come, each with the number of its parts.
    pub early: Vec<(Namespace, RunId, u32)>,
    /// Jobs that have not ended.
    pub crowd: usize,
    /// When calendar schedules are due, as far as known.
    pub calendars: HashMap<(Namespace, Arc<str>), Timestamp>,
    drawn: u64,
}

#[derive(Clone)]
pub(super) struct Known {
    pub namespace: Namespace,
    pub lease: LeaseId,
    pub worker: WorkerId,
    pub principal: Option<Arc<str>>,
}

/// Small enough that every limit is met now and then.
pub(super) fn limits() -> Limits {
    Limits {
        payload_bytes_max: 200,
        extra_bytes_max: 60,
        record_bytes_max: 100,
        message_bytes_max: 60,
        name_bytes_max: 64,
        job_tags_max: 3,
        facets_max: 2,
        parents_max: 4,
        nodes_max: 9,
        attempts_max: 9,
        pass_on_max: 2,
        retries_per_second: 2,
        claim_max: 6,
        log_piece_bytes_max: 80,
        log_bytes_max: 150,
        retention: Millis::from_secs(300),
        ..Limits::default()
    }
}

impl World {
    pub fn new(seed: u64, now: Timestamp) -> Self {
        let other = Namespace::new("other").expect("a plain word is a namespace");
        Self {
            dice: Dice::new(seed),
            now,
            namespaces: [Namespace::default(), other],
            jobs: Vec::new(),
            leases: Vec::new(),
            reports: Vec::new(),
            runs: Vec::new(),
            staged: Vec::new(),
            early: Vec::new(),
            crowd: 0,
            calendars: HashMap::new(),
            drawn: 0,
        }
    }

    pub fn namespace(&mut self) -> Namespace {
        self.namespaces[usize::from(self.dice.percent(25))].clone()
    }

    /// The right namespace, or rarely the other one.
    pub fn perhaps_foreign(&mut self, right: &Namespace) -> Namespace {
        if self.dice.percent(3) { self.namespace() } else { right.clone() }
    }

    pub fn id(&mut self) -> u128 {
        self.drawn += 1;
        let random = u128::from(self.dice.bits()) & 0xfff;
        let millis = self.now.0 as u128;
        (millis << 80) | (0x7 << 76) | (random << 64) | (0b10 << 62) | u128::from(self.drawn)
    }

    pub fn secret(&mut self) -> Uuid {
        Uuid::from_u128((u128::from(self.dice.bits()) << 64) | u128::from(self.dice.bits()))
    }

    pub fn item(&mut self, command: Command) -> Item {
        Item { command, seed: self.dice.bits(), by: None }
    }

    /// A job that was submitted before, or rarely one that never was.
    pub fn job(&mut self) -> JobKey {
        if let Some(key) = self.dice.recent(&self.jobs, 30).cloned().filter(|_| !self.dice.percent(2)) {
            return key;
        }
        let (namespace, id) = (self.namespace(), self.id());
        JobKey::new(&namespace, JobId::from_u128(id))
    }

    pub fn worker(&mut self) -> WorkerId {
        WorkerId::trusted(self.dice.pick::<&str>(&WORKERS))
    }

    /// Remembers what a reply brought.
    pub fn learn(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::Submit(submit), Reply::Submitted(Submitted { job, .. })) => {
                self.jobs.push(JobKey::new(&submit.namespace, *job));
            }
            (Command::Retry(retry), Reply::Submitted(Submitted { job, .. })) => {
                self.jobs.push(JobKey::new(&retry.namespace, *job));
            }
            (Command::SubmitRun(run), Reply::Run(KnownRun { id, .. })) => {
                self.runs.push((run.namespace.clone(), *id));
                self.learn_staged(&run.namespace, *id, &run.nodes);
                self.jobs.extend(run.nodes.iter().map(|node| JobKey::new(&run.namespace, node.job.id)));
            }
            (Command::KeepPart(part), Reply::Done) => {
                self.early.push((part.namespace.clone(), part.run, part.at + 1));
            }
            (Command::Advance(advance), Reply::Done) => {
                let expanded = advance.moves.iter().filter_map(|(_, _, wanted)| match wanted {
                    Move::Expand { nodes, .. } => Some(nodes),
                    _ => None,
                });
                for nodes in expanded.chain(&advance.undo) {
                    self.learn_staged(&advance.namespace, advance.run, nodes);
                }
            }
            (Command::Claim(claim), Reply::Leases(leases)) => self.leases.extend(leases.iter().map(|leased| Known {
                namespace: claim.namespace.clone(),
                lease: leased.lease,
                worker: claim.worker.clone(),
                principal: claim.principal.clone(),
            })),
            (Command::Complete(_) | Command::Fail(_), Reply::Ended(Ended { replayed: false, .. })) => {
                self.reports.push(command.clone());
            }
            (Command::PutSchedule(put), Reply::Done) => {
                let Schedule { name, next_at, rule, .. } = &put.schedule;
                if matches!(rule, Rule::Calendar(_)) {
                    self.calendars.insert((put.namespace.clone(), name.clone()), *next_at);
                }
            }
            (Command::Fire(fire), Reply::Done) => {
                self.calendars.insert((fire.namespace.clone(), fire.name.clone()), fire.next_at);
            }
            (Command::All(all), Reply::All(replies)) => {
                all.commands.iter().zip(replies).for_each(|(command, reply)| self.learn(command, reply));
            }
            _ => {}
        }
        self.forget();
    }

    fn learn_staged(&mut self, namespace: &Namespace, run: RunId, nodes: &[RunNode]) {
        let staged = nodes.iter().filter(|node| node.job.stage != Default::default());
        self.staged.extend(staged.map(|node| (namespace.clone(), run, node.job.id, node.name.clone())));
    }

    /// A lease that is of no use any more is mostly forgotten, so that the walk spends its time on live ones.
    pub fn learn_dead(&mut self, command: &Command, reply: &Result<Reply, Refusal>) {
        let ended = matches!(reply, Ok(Reply::Ended(_)) | Err(Refusal::LeaseLost { .. } | Refusal::NotFound { .. }))
            || matches!((command, reply), (Command::Release(_), Ok(_)));
        let Some(holder) = super::ledger::holder_of(command).filter(|_| ended) else { return };
        if self.dice.percent(75) {
            let job = holder.job_key().id;
            self.leases.retain(|known| known.lease.job != job);
        }
    }

    fn forget(&mut self) {
        let excess = |length: usize, most: usize| length.saturating_sub(most);
        self.jobs.drain(..excess(self.jobs.len(), 400));
        self.leases.drain(..excess(self.leases.len(), 120));
        self.reports.drain(..excess(self.reports.len(), 20));
        self.runs.drain(..excess(self.runs.len(), 30));
        self.staged.drain(..excess(self.staged.len(), 40));
    }
}
