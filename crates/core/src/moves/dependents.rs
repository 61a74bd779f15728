//! Passes the end of jobs on to the jobs that wait for them, and theirs, level by level.
//!
//! Outside runs this goes in pieces: one transaction changes a bounded number of jobs, marks the jobs whose dependents have
//! not all heard (`Live::must_pass_on`) and makes them due now, so that the sweep goes on where this left off, also after a
//! crash. Until then their dependents are blocked as before. A run is one piece, up to a bound that few runs reach.

use crate::{
    desk::{Desk, Stop},
    model::{
        id::JobId,
        job::{Job, PassedOn, Reason, State},
        keys::ChildrenFrom,
        stage::Hold,
    },
    moves::{
        life::{self, needless, parent_outcome},
        parents::{self, End, Heard, Verdict},
        runs, steps,
    },
};

/// Jobs of runs that one command may change. A run with fewer steps ends in the transaction that decides it.
const OF_RUNS_MAX: usize = 5_000;

/// From this depth on, what is left of a run is loaded in one go: level by level a long chain would take a round trip
/// for each link, and the whole run at once would be too much for a failure that few wait for.
const WHOLE_RUN_DEPTH: usize = 3;

/// Levels outside runs in one transaction are this part of the jobs: each of them is a round trip, and after each the
/// command is decided from its start.
const JOBS_PER_LEVEL: usize = 4;

/// After so many full pieces in one batch, other commands of it only begin to pass on.
const FULL_PIECES: usize = 4;
const BEGINNING: usize = 16;

/// What may still be done in this transaction.
struct PieceBudget {
    levels: usize,
    alone: usize,
    of_runs: usize,
}

impl PieceBudget {
    fn new(desk: &Desk) -> Self {
        let full = desk.limits().pass_on_max.max(1);
        let alone = if desk.passed_on() < full * FULL_PIECES { full } else { (full / BEGINNING).max(1) };
        Self { levels: (full / JOBS_PER_LEVEL).max(1), alone, of_runs: OF_RUNS_MAX }
    }

    /// Of how many dependents each of these parents may be relieved now, if it is in no run.
    fn share(&self, parents: &[Job]) -> usize {
        let alone = parents.iter().filter(|parent| parent.run().is_none()).count();
        if self.levels == 0 { 0 } else { self.alone.div_ceil(alone.max(1)) }
    }

    fn left(&mut self, parent: &Job) -> &mut usize {
        if parent.run().is_some() { &mut self.of_runs } else { &mut self.alone }
    }

    fn most(&mut self, parent: &Job, share: usize) -> usize {
        let left = *self.left(parent);
        if parent.run().is_some() { left } else { left.min(share) }
    }
}

/// Those that have not heard of the end of this job.
pub(crate) fn rest_of(parent: &Job) -> ChildrenFrom {
    let first = parent.live.passed_on.map_or(JobId::from_u128(0), |passed| passed.next);
    ChildrenFrom { parent: parent.key.clone(), first }
}

/// Asks for those that hear first when this job ends.
pub(crate) fn want_first(desk: &mut Desk, job: &Job) -> Result<(), Stop> {
    let most = PieceBudget::new(desk).most(job, usize::MAX);
    desk.want_children([(rest_of(job), most)])
}

pub(crate) fn pass_on(desk: &mut Desk, ended: Vec<Job>) -> Result<(), Stop> {
    let (mut parents, mut budget) = (ended, PieceBudget::new(desk));
    for depth in 0.. {
        parents.retain(|parent| parent.live.dependents);
        if parents.is_empty() {
            break;
        }
        if depth == WHOLE_RUN_DEPTH {
            load_runs(desk, &parents)?;
        }
        let share = budget.share(&parents);
        want_level(desk, &parents, &budget, share)?;
        let mut ended = Vec::new();
        desk.for_all(parents, |desk, parent| pass_on_one(desk, parent, share, &mut budget, &mut ended))?;
        budget.levels = budget.levels.saturating_sub(1);
        parents = ended;
    }
    Ok(())
}

fn load_runs(desk: &mut Desk, parents: &[Job]) -> Result<(), Stop> {
    let mut runs: Vec<_> = parents.iter().filter_map(|job| Some((job.key.namespace.clone(), job.run()?))).collect();
    runs.sort();
    runs.dedup();
    for (namespace, run) in runs {
        let open = desk.open_jobs(&namespace, run)?;
        let open = open.iter().filter(|job| job.live.dependents);
        desk.want_children(open.map(|job| (rest_of(job), OF_RUNS_MAX)))?;
    }
    Ok(())
}

/// Asks for all that hear at this level, and for no more than there is room for.
fn want_level(desk: &mut Desk, parents: &[Job], budget: &PieceBudget, share: usize) -> Result<(), Stop> {
    let (mut alone, mut wanted) = (budget.alone, Vec::new());
    for parent in parents {
        let most = match parent.run() {
            Some(_) => budget.of_runs,
            None => share.min(alone),
        };
        if parent.run().is_none() {
            alone -= most;
        }
        if most > 0 {
            wanted.push((rest_of(parent), most));
        }
    }
    desk.want_children(wanted)
}

fn pass_on_one(
    desk: &mut Desk,
    mut parent: Job,
    share: usize,
    budget: &mut PieceBudget,
    ended: &mut Vec<Job>,
) -> Result<(), Stop> {
    let (most, mut next) = (budget.most(&parent, share), Some(rest_of(&parent).first));
    if most > 0 {
        let (children, more) = desk.children(&rest_of(&parent), most)?;
        *budget.left(&parent) -= children.len();
        if parent.run().is_none() {
            desk.count_passed_on(children.len());
        }
        desk.for_all(children, |desk, key| {
            // Looked at one by one, because the end of one child may be the end of the next as well.
            let child = desk.job(&key)?.filter(|job| job.state == State::Blocked && job.live.waiting > 0);
            if let Some(child) = child {
                ended.extend(parent_ended(desk, &parent, child)?);
            }
            Ok(())
        })?;
        next = more.map(|key| key.id);
    }
    let was_marked = parent.live.must_pass_on;
    parent.live.must_pass_on = next.is_some();
    parent.live.passed_on = next.map(|next| PassedOn { at: desk.now(), next });
    if was_marked || parent.live.must_pass_on {
        desk.put_job(parent);
    }
    Ok(())
}

/// One parent of `child` has ended. Gives back the jobs that ended because of it.
fn parent_ended(desk: &mut Desk, parent: &Job, mut child: Job) -> Result<Vec<Job>, Stop> {
    child.live.waiting -= 1;
    parents::hear(&mut child.live, End::of(parent));
    let policy = child.spec.policy.parents;
    let verdict = match child.live.hold {
        // The planner looks at what became of a step's parts.
        Some(Hold::Members) if child.live.waiting == 1 => Verdict::Go,
        Some(Hold::Members) => Verdict::Wait,
        _ => parents::verdict(policy, Heard::of(&child.live)),
    };
    match verdict {
        Verdict::Wait => {
            desk.put_job(child);
            Ok(Vec::new())
        }
        Verdict::Go if child.live.hold.is_some() => Ok(steps::turn(desk, child)?.into_iter().collect()),
        Verdict::Go => life::requeue_waiting(desk, child).map(|_| Vec::new()),
        Verdict::Cancel if child.run().is_some() => runs::cancel_open(desk, &child, &parent_outcome(parent).message),
        Verdict::Cancel => Ok(vec![life::close(desk, child, State::Cancelled, Some(parent_outcome(parent)))?]),
        Verdict::Skip(reason) => {
            let outcome = if reason == Reason::NotNeeded { needless(&child.live) } else { parent_outcome(parent) };
            Ok(vec![life::close(desk, child, State::Skipped, Some(outcome))?])
        }
    }
}
