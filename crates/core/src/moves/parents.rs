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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{
            submit::NewJob,
            testing::{Story, after, id, once},
        },
        model::id::LeaseId,
    };
    use ParentPolicy::{CancelRun, OnFailure, RunAnyway, Skip};

    const CHILD: u128 = 50;
    const KINDS: [&str; 5] = ["completed", "failed", "cancelled", "not needed", "skipped for a failure"];
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

    /// Jobs 1 to 3, each of which ends in its own way when it is told to. Those that are skipped have somebody before them.
    struct Family {
        story: Story,
        kinds: [&'static str; 3],
        /// The number of each one's job: ids in another order than they are talked about.
        numbers: [u128; 3],
        leases: Vec<LeaseId>,
    }

    impl Family {
        fn new(kinds: [&'static str; 3], numbers: [u128; 3]) -> Self {
            let mut story = Story::new();
            for (kind, number) in kinds.into_iter().zip(numbers) {
                let policy = if kind == "not needed" { OnFailure } else { Skip };
                match kind {
                    "not needed" | "skipped for a failure" => {
                        story.submit(once(number + 10));
                        let mut job = after(number, &[number + 10]);
                        job.policy.parents = policy;
                        story.submit(job);
                    }
                    _ => drop(story.submit(once(number))),
                }
            }
            let leases = story.claims("w", 3);
            Self { story, kinds, numbers, leases }
        }

        fn lease(&self, number: u128) -> LeaseId {
            *self.leases.iter().find(|lease| lease.job == id(number)).expect("it was claimed")
        }

        fn end(&mut self, at: usize) {
            let number = self.numbers[at];
            match self.kinds[at] {
                "completed" => drop(self.story.complete(self.lease(number)).unwrap()),
                "failed" => drop(self.story.fail(self.lease(number)).unwrap()),
                "cancelled" => drop(self.story.cancel(number).unwrap()),
                "not needed" => drop(self.story.complete(self.lease(number + 10)).unwrap()),
                _ => drop(self.story.fail(self.lease(number + 10)).unwrap()),
            }
            assert!(self.story.state(number).is_final());
        }

        fn child(&mut self, policy: ParentPolicy) {
            let mut job: NewJob = after(CHILD, &self.numbers);
            job.policy.parents = policy;
            self.story.submit(job);
        }
    }

    /// In other words than the rule's.
    fn expected(policy: ParentPolicy, kinds: [&str; 3]) -> (State, Option<Reason>) {
        let failed = kinds.iter().any(|kind| !matches!(*kind, "completed" | "not needed"));
        let completed = kinds.iter().all(|kind| *kind == "completed");
        match policy {
            RunAnyway => (State::Pending, None),
            OnFailure if failed => (State::Pending, None),
            OnFailure => (State::Skipped, Some(Reason::NotNeeded)),
            Skip if failed => (State::Skipped, Some(Reason::ParentNotCompleted)),
            CancelRun if failed => (State::Cancelled, Some(Reason::ParentNotCompleted)),
            Skip | CancelRun if completed => (State::Pending, None),
            Skip | CancelRun => (State::Skipped, Some(Reason::NotNeeded)),
        }
    }

    fn play(policy: ParentPolicy, kinds: [&'static str; 3], order: [usize; 3], numbers: [u128; 3], comes: usize) {
        let told =
            format!("{policy:?} behind {kinds:?} with ids {numbers:?}, ending in order {order:?}, after {comes}");
        let mut family = Family::new(kinds, numbers);
        for (ended, at) in order.into_iter().enumerate() {
            if ended == comes {
                family.child(policy);
            }
            family.end(at);
            if ended < comes {
                continue;
            }
            let failed = order[..=ended].iter().any(|&at| !matches!(kinds[at], "completed" | "not needed"));
            let decided = ended == 2 || failed && matches!(policy, Skip | CancelRun);
            assert_eq!(family.story.state(CHILD) != State::Blocked, decided, "{told}, {} ended", ended + 1);
        }
        if comes == 3 {
            family.child(policy);
        }
        let became = (family.story.state(CHILD), family.story.reason(CHILD));
        assert_eq!(became, expected(policy, kinds), "{told}");
    }

    #[test]
    fn what_becomes_of_a_job_depends_on_how_its_parents_ended_and_on_nothing_else() {
        for policy in [Skip, RunAnyway, OnFailure, CancelRun] {
            for mix in 0..125 {
                let kinds = [KINDS[mix % 5], KINDS[mix / 5 % 5], KINDS[mix / 25]];
                for order in ORDERS {
                    for comes in 0..=3 {
                        // Two orders of ids suffice: together with those of the kinds they are all.
                        play(policy, kinds, order, [1, 2, 3], comes);
                    }
                    play(policy, kinds, order, [3, 1, 2], mix % 4);
                }
            }
        }
    }
}
