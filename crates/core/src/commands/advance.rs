//! Apply what a run's planner decided: for steps whose turn had come, and for a run that failed and can be undone.
//!
//! Each move is done only if it still is the step's turn. What a turn is decided on no longer changes, so a planner that
//! comes second, or once more after a crash, has decided the same, and nothing is left to do.

use super::{
    Decided,
    submit::check_size,
    submit_run::{Nodes, RunNode},
};
use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        id::{JobId, RunId},
        job::{Job, Outcome, Reason, State},
        keys::{JobKey, Keys},
        name::Namespace,
        payload::Payload,
        record,
        refusal::Refusal,
        run::Run,
        stage::{self, Hold, Turn},
    },
    moves::{dependents, life, runs, steps},
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Advance {
    pub namespace: Namespace,
    pub run: RunId,
    /// Each with what held the step back when it was decided: a step may have two turns, and an answer that comes late to
    /// the first is none to the second.
    pub moves: Vec<(JobId, Hold, Move)>,
    /// After everything has ended: what to undo, in this order. Empty: nothing.
    pub undo: Option<Vec<RunNode>>,
    /// Refused unless it is the turn of every step: for what was decided ahead and goes with the report that brings the turn.
    pub strict: bool,
}

/// What becomes of a step.
#[derive(Clone, Debug)]
pub enum Move {
    /// It goes on, as a job with this payload or as the wait it is.
    Go {
        payload: Payload,
    },
    Skip {
        why: Arc<str>,
    },
    Complete {
        result: Payload,
    },
    Fail {
        why: Arc<str>,
    },
    /// It waits for these; then its turn comes once more. The payload is what the planner wants to know then.
    Expand {
        nodes: Vec<RunNode>,
        payload: Payload,
    },
}

impl Advance {
    /// Jobs it makes.
    pub(crate) fn jobs(&self) -> usize {
        let made = self.moves.iter().map(|(_, _, wanted)| match wanted {
            Move::Expand { nodes, .. } => nodes.len(),
            Move::Go { .. } | Move::Skip { .. } | Move::Complete { .. } | Move::Fail { .. } => 0,
        });
        made.sum::<usize>() + self.undo.as_ref().map_or(0, Vec::len)
    }

    pub(crate) fn weight(&self) -> usize {
        let nodes = |nodes: &[RunNode]| nodes.iter().map(|node| 256 + node.weight()).sum();
        let moves = self.moves.iter().map(|(_, _, wanted)| match wanted {
            Move::Go { payload } => payload.len(),
            Move::Complete { result } => result.len(),
            Move::Skip { why } | Move::Fail { why } => why.len(),
            Move::Expand { nodes: made, payload } => payload.len() + nodes(made),
        });
        moves.sum::<usize>() + self.undo.as_ref().map_or(0, |undo| nodes(undo))
    }

    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Run>(&self.namespace, &self.run.to_string()), true);
        for (job, _, wanted) in &self.moves {
            keys.jobs.insert(JobKey::new(&self.namespace, *job));
            self.turn_key(keys, Some(*job));
            if let Move::Expand { nodes, .. } = wanted {
                nodes.iter().for_each(|node| node.job.keys(&self.namespace, keys));
            }
        }
        if let Some(undo) = &self.undo {
            self.turn_key(keys, None);
            undo.iter().for_each(|node| node.job.keys(&self.namespace, keys));
        }
    }

    fn turn_key(&self, keys: &mut Keys, job: Option<JobId>) {
        keys.want_record(
            record::key_of::<Turn>(&stage::system_namespace(), &stage::turn_key(&self.namespace, self.run, job)),
            true,
        );
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        check_size("moves", self.moves.len(), desk.limits().nodes_max)?;
        // Whatever order they come in, each is about a step of its own.
        desk.for_all(&self.moves, |desk, (id, hold, wanted)| {
            let found = desk.job(&JobKey::new(&self.namespace, *id))?.filter(|job| job.run() == Some(self.run));
            let over = found.as_ref().is_none_or(|job| job.state.is_final());
            let job = found.filter(|job| is_turn(job, *hold));
            if self.strict && job.is_none() {
                return Err(Refusal::not_found("turn", id).into());
            }
            if over || job.is_some() {
                desk.remove::<Turn>(
                    &stage::system_namespace(),
                    &stage::turn_key(&self.namespace, self.run, Some(*id)),
                )?;
            }
            job.map_or(Ok(()), |job| self.apply(desk, job, wanted))
        })?;
        if let Some(undo) = &self.undo {
            desk.remove::<Turn>(&stage::system_namespace(), &stage::turn_key(&self.namespace, self.run, None))?;
            self.last_word(desk, undo)?;
        }
        Ok(Ok(()))
    }

    fn apply(&self, desk: &mut Desk, mut job: Job, wanted: &Move) -> Result<(), Stop> {
        // Its payload is written already, and payloads are written once.
        if job.live.hold == Some(Hold::Members) && matches!(wanted, Move::Go { .. } | Move::Expand { .. }) {
            return Err(Refusal::invalid("moves", "a step that has members can only end".into()).into());
        }
        let ended = |reason, why: &Arc<str>| Some(Outcome::new(reason, why.clone()));
        match wanted {
            Move::Go { payload } => self.go(desk, job, payload)?,
            Move::Skip { why } => drop(life::end(desk, job, State::Skipped, ended(Reason::NotNeeded, why))?),
            Move::Fail { why } => drop(life::end(desk, job, State::Failed, ended(Reason::PlanFailed, why))?),
            Move::Complete { result } => {
                check_size("result", result.len(), desk.limits().payload_bytes_max)?;
                let ended = steps::finish(desk, job, result.clone())?;
                dependents::pass_on(desk, vec![ended])?;
            }
            Move::Expand { nodes, payload } => {
                check_size("payload", payload.len(), desk.limits().payload_bytes_max)?;
                desk.put_payload(&job.key, payload.clone());
                self.grow(desk, nodes)?;
                job.live.hold = Some(Hold::Members);
                job.live.waiting = 1 + nodes.len() as u32;
                let key = job.key.clone();
                desk.put_job(job);
                self.make(desk, nodes, Some(&key))?;
            }
        }
        Ok(())
    }

    fn go(&self, desk: &mut Desk, mut job: Job, payload: &Payload) -> Result<(), Stop> {
        check_size("payload", payload.len(), desk.limits().payload_bytes_max)?;
        desk.put_payload(&job.key, payload.clone());
        if job.spec.stage.wait.is_some() {
            job.live.hold = Some(Hold::Event);
            let ended = steps::begin_wait(desk, job)?;
            return dependents::pass_on(desk, ended.into_iter().collect());
        }
        job.live.hold = None;
        job.live.waiting = 0;
        life::requeue_waiting(desk, job)?;
        Ok(())
    }

    fn grow(&self, desk: &mut Desk, nodes: &[RunNode]) -> Result<(), Stop> {
        let key = self.run.to_string();
        let mut run = desk.get::<Run>(&self.namespace, &key)?.ok_or_else(|| Refusal::not_found("run", self.run))?;
        if nodes.is_empty() {
            return Err(Refusal::invalid("nodes", "nothing is added by no jobs".into()).into());
        }
        check_size("nodes", run.total as usize + nodes.len(), desk.limits().nodes_max)?;
        run.total += nodes.len() as u32;
        run.open += nodes.len() as u32;
        desk.put(&self.namespace, &key, &run)?;
        desk.tell(&self.namespace, What::RunGrew { run: self.run, jobs: nodes.len() as u32 });
        Ok(())
    }

    fn make(&self, desk: &mut Desk, nodes: &[RunNode], behind: Option<&JobKey>) -> Result<(), Stop> {
        let graph = Nodes::check(nodes, &desk.limits())?;
        graph.make_jobs(desk, &self.namespace, self.run, behind)
    }

    fn last_word(&self, desk: &mut Desk, undo: &[RunNode]) -> Result<(), Stop> {
        let key = self.run.to_string();
        let Some(mut run) = desk.get::<Run>(&self.namespace, &key)? else { return Ok(()) };
        if run.finished_at.is_some() || run.open > 0 || run.undone {
            return Ok(());
        }
        run.undone = true;
        if undo.is_empty() || run.cancel.is_some() {
            runs::finish(desk, &self.namespace, self.run, &mut run);
            return desk.put(&self.namespace, &key, &run);
        }
        desk.put(&self.namespace, &key, &run)?;
        self.grow(desk, undo)?;
        self.make(desk, undo, None)
    }
}

fn is_turn(job: &Job, hold: Hold) -> bool {
    job.state == State::Blocked && job.live.hold == Some(hold) && hold != Hold::Event && job.live.waiting == 1
}
