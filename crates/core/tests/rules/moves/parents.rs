use crate::rules::story::{Story, after, id, once};
use windlass_core::{
    LeaseId, Reason, State,
    commands::submit::NewJob,
    policy::ParentPolicy::{self, CancelRun, OnFailure, RunAnyway, Skip},
};

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
    let told = format!("{policy:?} behind {kinds:?} with ids {numbers:?}, ending in order {order:?}, after {comes}");
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
