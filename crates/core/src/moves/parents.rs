//! What becomes of a job whose parents end. It follows from how they ended and from nothing else: not from their ids, not
//! from which of them was first, not from whether the job was submitted before or after.
//!
//! A job is decided as soon as nothing can change it any more. A failure decides a job that needs all of its parents; that
//! one was not needed decides nothing while another may still fail.

use crate::model::{
    job::{Job, Live, Reason, State},
    policy::ParentPolicy,
    stage::Hold,
};

/// How a parent has ended, as far as those behind it care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    /// It was not needed, or was skipped because something before it was not. No failure.
    NotNeeded,
    Failed,
}

impl End {
    pub fn of(parent: &Job) -> Self {
        match parent.state {
            State::Completed => End::Completed,
            _ if parent.is_failure() => End::Failed,
            _ => End::NotNeeded,
        }
    }
}

/// What is known of all parents together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    pub open: u32,
    pub failed: bool,
    pub needless: bool,
}

impl Heard {
    pub fn of(live: &Live) -> Self {
        let open = live.waiting.saturating_sub(u32::from(live.hold.is_some()));
        Self { open, failed: live.parent_failed, needless: live.needless }
    }
}

/// Notes the end of one parent.
pub(crate) fn hear(live: &mut Live, end: End) {
    // What a step is made of, once its turn has come, is for the planner to look at.
    if live.hold == Some(Hold::Members) {
        return;
    }
    live.parent_failed |= end == End::Failed;
    live.needless |= end == End::NotNeeded;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Wait,
    Go,
    Skip(Reason),
    /// With its run, if it has one.
    Cancel,
}

pub(crate) fn verdict(policy: ParentPolicy, heard: Heard) -> Verdict {
    match (policy, heard) {
        (ParentPolicy::Skip, Heard { failed: true, .. }) => Verdict::Skip(Reason::ParentNotCompleted),
        (ParentPolicy::CancelRun, Heard { failed: true, .. }) => Verdict::Cancel,
        (_, Heard { open: 1.., .. }) => Verdict::Wait,
        (ParentPolicy::Skip | ParentPolicy::CancelRun, Heard { needless: true, .. }) => {
            Verdict::Skip(Reason::NotNeeded)
        }
        (ParentPolicy::OnFailure, Heard { failed: false, .. }) => Verdict::Skip(Reason::NotNeeded),
        _ => Verdict::Go,
    }
}
