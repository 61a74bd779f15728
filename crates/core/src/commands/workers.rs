//! Register, heartbeat, drain and unregister workers.

use super::{Decided, release, submit::check_size};
use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        job::Reason,
        keys::{Keys, WorkerKey},
        link::{Link, TIED},
        name::{Namespace, Tags, WorkerId},
        policy::{OnlineFrom, Unregister, WorkerPolicy},
        record::{self, Kind},
        refusal::Refusal,
        reply::Unregistered,
        worker::{Liveness, Worker},
    },
    moves::{concurrency::KeptPlace, liveness},
};
use std::sync::Arc;

/// Registering again replaces what was registered, and is a sign of life.
#[derive(Clone, Debug)]
pub struct RegisterWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub tags: Tags,
    pub slots: u32,
    pub owner: Option<Arc<str>>,
    pub policy: WorkerPolicy,
    pub extra: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    pub namespace: Namespace,
    pub worker: WorkerId,
    /// Who says so, where tokens are in force: nobody gives signs of life in another's name.
    pub principal: Option<Arc<str>>,
}

/// The worker finishes what it holds and claims no more.
#[derive(Clone, Debug)]
pub struct DrainWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub draining: bool,
    /// None: an operator.
    pub principal: Option<Arc<str>>,
}

/// What becomes of the worker and its jobs is its policy's to say; `how` overrides it (an operator deleting a worker).
#[derive(Clone, Debug)]
pub struct UnregisterWorker {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub how: Option<Unregister>,
    /// Only if it is offline still: whoever cleans up does not race with a sign of life.
    pub only_offline: bool,
    /// None: an operator.
    pub principal: Option<Arc<str>>,
}

pub(crate) fn want(namespace: &Namespace, worker: &WorkerId, keys: &mut Keys) {
    keys.want_record(record::key_of::<Worker>(namespace, worker.as_str()), true);
}

/// The worker, if there is one and the caller may act for it.
pub(crate) fn known(
    desk: &mut Desk,
    namespace: &Namespace,
    worker: &WorkerId,
    principal: Option<&Arc<str>>,
) -> Result<Worker, Stop> {
    let found = desk.get::<Worker>(namespace, worker.as_str())?;
    let found = found.ok_or_else(|| Refusal::not_found("worker", worker))?;
    found.check_owner(principal)?;
    Ok(found)
}

impl RegisterWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Worker>> {
        let limits = desk.limits();
        self.tags.check("tags", limits.worker_tags_max, &limits)?;
        self.policy.check(&limits)?;
        check_size("extra", self.extra.as_ref().map_or(0, |extra| extra.len()), limits.extra_bytes_max)?;
        let before = desk.get::<Worker>(&self.namespace, self.worker.as_str())?;
        let foreign = before.as_ref().is_some_and(|before| before.owner.is_some() && before.owner != self.owner);
        if foreign {
            return Err(
                Refusal::Forbidden { why: format!("the worker {} belongs to somebody else", self.worker) }.into()
            );
        }
        let absent = self.policy.online_from == OnlineFrom::FirstSign;
        let declared = if absent { Liveness::Offline } else { Liveness::Online };
        let mut worker = Worker {
            id: self.worker.clone(),
            tags: self.tags.clone(),
            slots: self.slots,
            owner: self.owner.clone(),
            registered_at: desk.now(),
            last_seen: before.as_ref().map_or(desk.now(), |before| before.last_seen),
            doubt_until: None,
            declared: before.as_ref().map_or(declared, |before| before.declared),
            away: before.as_ref().map_or(absent, |before| before.away),
            draining: false,
            policy: self.policy,
            extra: self.extra.clone(),
        };
        desk.tell(&self.namespace, What::WorkerRegistered { worker: self.worker.clone() });
        match self.policy.online_from {
            OnlineFrom::Registration => liveness::seen(desk, &self.namespace, &mut worker)?,
            OnlineFrom::FirstSign => desk.put(&self.namespace, self.worker.as_str(), &worker)?,
        }
        Ok(Ok(Box::new(worker)))
    }
}

impl Heartbeat {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Worker>> {
        let mut worker = known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        liveness::seen(desk, &self.namespace, &mut worker)?;
        Ok(Ok(Box::new(worker)))
    }
}

impl DrainWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Worker>> {
        let mut worker = known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        if worker.draining != self.draining {
            worker.draining = self.draining;
            let id = self.worker.clone();
            let told =
                if self.draining { What::WorkerDraining { worker: id } } else { What::WorkerUndrained { worker: id } };
            desk.tell(&self.namespace, told);
            desk.put(&self.namespace, self.worker.as_str(), &worker)?;
        }
        Ok(Ok(Box::new(worker)))
    }
}

impl UnregisterWorker {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        want(&self.namespace, &self.worker, keys);
        keys.held.insert(WorkerKey { namespace: self.namespace.clone(), worker: self.worker.clone() });
        for kind in [KeptPlace::KIND, Link::KIND, TIED] {
            keys.siblings.insert((self.namespace.clone(), kind.into(), self.worker.as_str().into()));
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Unregistered> {
        let mut worker = known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        if self.only_offline && worker.liveness(desk.now()) != Liveness::Offline {
            let why = format!("the worker {} is not offline any more", self.worker);
            return Err(Refusal::Forbidden { why }.into());
        }
        let mut lost = 0;
        match self.how.unwrap_or(worker.policy.unregister) {
            Unregister::Requeue => {
                let release = |desk: &mut Desk, job| release::release(desk, job).map(drop);
                liveness::for_each_held(desk, &self.namespace, &self.worker, false, release)?;
                liveness::delete(desk, &self.namespace, &self.worker, Reason::WorkerRemoved)?;
            }
            Unregister::Fail => lost = liveness::delete(desk, &self.namespace, &self.worker, Reason::WorkerRemoved)?,
            Unregister::Offline => {
                // The next sweep declares it, a ping brings it back.
                worker.away = true;
                worker.last_seen = desk.now();
                desk.put(&self.namespace, self.worker.as_str(), &worker)?;
            }
        }
        Ok(Ok(Unregistered { lost }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, bound, code, graph, ns, once, registration, tries, worker},
        model::{
            job::State,
            policy::{AliveBy, MayClaim},
            time::Millis,
            worker::FormerWorker,
        },
    };

    /// Unreachable after 10 s, offline after 20 s, deleted after 60 s.
    fn cascade() -> WorkerPolicy {
        WorkerPolicy {
            alive_by: AliveBy::Heartbeat,
            may_claim: MayClaim::OnlineOnly,
            unregister: Unregister::Offline,
            unreachable_after: Some(Millis(10_000)),
            offline_after: Millis(20_000),
            delete_after: Some(Millis(60_000)),
            ..WorkerPolicy::default()
        }
    }

    fn story(policy: WorkerPolicy) -> Story {
        let mut story = Story::new();
        story.register("w", policy).unwrap();
        story
    }

    #[test]
    fn a_silent_worker_ages_step_by_step() {
        let mut story = story(cascade());
        for (seconds, expected) in
            [(9, "online"), (10, "unreachable"), (19, "unreachable"), (20, "offline"), (59, "offline")]
        {
            story.now = Timestamp(1_000_000 + seconds * 1_000);
            assert_eq!(
                story.worker("w").unwrap().liveness(story.now).name(),
                expected,
                "before the sweep, at {seconds} s"
            );
            story.sweep();
            assert_eq!(story.worker("w").unwrap().declared.name(), expected, "at {seconds} s");
        }
        story.wait(1_000);
        story.sweep();
        assert!(story.worker("w").is_none());
        let expected = ["worker_registered", "worker_unreachable", "worker_offline", "worker_deleted"];
        assert_eq!(story.events(None), expected);
        assert_eq!(code(&story.ping("w")), "not-found");
    }

    #[test]
    fn a_sign_of_life_brings_a_worker_back() {
        let mut story = story(cascade());
        for seconds in [5, 15, 25] {
            story.wait(seconds * 1_000);
            story.sweep();
            story.ping("w").unwrap();
            assert_eq!(story.worker("w").unwrap().declared, Liveness::Online);
            story.sweep();
        }
        story.wait(9_999);
        story.sweep();
        assert_eq!(story.worker("w").unwrap().declared, Liveness::Online);
    }

    #[test]
    fn only_jobs_tied_to_the_worker_are_lost_with_it() {
        let mut story = story(WorkerPolicy { offline_after: Millis(10_000), ..WorkerPolicy::default() });
        story.submit(bound(1));
        story.submit(once(2));
        assert_eq!(story.claims("w", 2).len(), 2);
        story.wait(10_000);
        story.sweep();
        assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::WorkerLost)));
        assert_eq!(story.state(2), State::Claimed, "its lease ends at its own time");
    }

    /// How it unregisters; what becomes of a tied job, of one with its own time, and of the worker.
    #[test]
    fn what_unregistering_means() {
        use State::*;
        let table = [
            (Unregister::Requeue, Pending, Pending, false),
            (Unregister::Fail, Failed, Failed, false),
            (Unregister::Offline, Failed, Claimed, true),
        ];
        for (how, tied, own, stays) in table {
            let mut story = story(cascade());
            story.submit(bound(1));
            story.submit(once(2));
            story.claims("w", 2);
            story.unregister("w", how).unwrap();
            story.sweep();
            assert_eq!((story.state(1), story.state(2)), (tied, own), "{how:?}");
            assert_eq!(story.worker("w").is_some(), stays, "{how:?}");
            assert_eq!(code(&story.unregister("x", how)), "not-found");
        }
    }

    #[test]
    fn one_that_unregistered_but_stays_is_offline_until_it_pings_or_its_time_is_over() {
        let mut story = story(cascade());
        story.wait(1_000);
        story.unregister("w", Unregister::Offline).unwrap();
        let away = story.worker("w").unwrap();
        assert_eq!(
            (away.liveness(story.now), away.last_seen),
            (Liveness::Offline, story.now),
            "leaving is the last that was heard of it"
        );
        story.submit(once(1));
        let claim = story.claim_command("w", 1);
        assert_eq!(code(&story.run(claim)), "worker-not-online");
        story.sweep();
        story.wait(59_000);
        story.sweep();
        assert_eq!(story.worker("w").unwrap().declared, Liveness::Offline, "kept as long as any silent one");
        story.ping("w").unwrap();
        assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Online);
        story.unregister("w", Unregister::Offline).unwrap();
        story.wait(60_000);
        story.sweep();
        assert!(story.worker("w").is_none());
    }

    #[test]
    fn one_that_is_offline_can_be_cleared_away_and_one_that_came_back_cannot() {
        let mut story = story(cascade());
        story.submit(bound(1));
        story.claims("w", 1);
        let leave = || UnregisterWorker {
            namespace: ns(),
            worker: worker("w"),
            how: Some(Unregister::Fail),
            only_offline: true,
            principal: None,
        };
        story.wait(19_999);
        assert_eq!(code(&story.run(leave())), "forbidden");
        story.wait(1);
        let reply = story.run(leave());
        assert!(matches!(reply, Ok(crate::Reply::Unregistered(Unregistered { lost: 1 }))), "{reply:?}");
        assert_eq!((story.state(1), code(&story.ping("w"))), (State::Failed, "not-found"));
    }

    #[test]
    fn one_whose_policy_says_so_is_remembered_for_a_while_after_its_end() {
        for how in [Some(Unregister::Fail), Some(Unregister::Requeue), None] {
            let mut story = story(WorkerPolicy { kept_after: Some(Millis(5_000)), ..cascade() });
            match how {
                Some(how) => drop(story.unregister("w", how).unwrap()),
                None => {
                    story.wait(60_000);
                    story.sweep();
                }
            }
            let former = story.typed::<FormerWorker>("w").expect("remembered");
            assert_eq!((former.deleted_at, former.until), (story.now, story.now + Millis(5_000)), "{how:?}");
            assert_eq!(code(&story.ping("w")), "not-found", "{how:?}");
            story.wait(5_000);
            story.sweep();
            assert!(story.typed::<FormerWorker>("w").is_none(), "{how:?}");
        }
    }

    #[test]
    fn one_that_is_never_deleted_stays() {
        let mut story = story(WorkerPolicy { delete_after: None, ..cascade() });
        story.wait(1_000_000_000);
        story.sweep();
        assert_eq!(story.worker("w").unwrap().declared, Liveness::Offline);
    }

    #[test]
    fn one_registered_for_somebody_is_offline_until_it_comes() {
        let policy = WorkerPolicy { online_from: OnlineFrom::FirstSign, may_claim: MayClaim::Always, ..cascade() };
        let mut story = story(policy);
        assert_eq!(story.worker("w").unwrap().liveness(story.now), Liveness::Offline);
        story.sweep();
        story.ping("w").unwrap();
        assert_eq!(story.events(None), ["worker_registered", "worker_online"]);
    }

    #[test]
    fn an_offline_worker_that_may_still_claim_cannot_hold_a_job_for_ever() {
        let mut story = story(WorkerPolicy { may_claim: MayClaim::Always, delete_after: None, ..cascade() });
        story.wait(30_000);
        story.sweep();
        story.submit_and_claim(bound(1));
        story.wait(1);
        story.sweep();
        assert_eq!((story.state(1), story.reason(1)), (State::Failed, Some(Reason::WorkerLost)));
    }

    #[test]
    fn a_lease_that_ran_out_before_its_worker_left_counts_as_run_out() {
        for how in [Unregister::Requeue, Unregister::Fail] {
            let mut story = story(WorkerPolicy::default());
            story.submit_and_claim(tries(1, 1));
            story.wait(30_000);
            story.unregister("w", how).unwrap();
            assert_eq!(story.reason(1), Some(Reason::LeaseExpired), "{how:?}");
        }
    }

    #[test]
    fn a_job_whose_run_ended_with_another_of_the_same_worker_ends_once() {
        for how in [Unregister::Requeue, Unregister::Fail] {
            let mut story = story(WorkerPolicy::default());
            let shape = |name: &str, job: &mut crate::commands::submit::NewJob| match name {
                "first" => job.policy.hard_deadline = Some(Millis(10)),
                "child" => job.policy.parents = crate::model::policy::ParentPolicy::CancelRun,
                _ => job.policy.retry.attempts = 3,
            };
            story.run(graph(1, &["first", "child: first", "second"], shape)).unwrap();
            assert_eq!(story.claims("w", 2).len(), 2);
            story.wait(10);
            story.unregister("w", how).unwrap();
            assert_eq!(story.states(3), ["failed", "cancelled", "cancelled"], "{how:?}");
        }
    }

    #[test]
    fn many_jobs_of_one_worker_are_lost_in_few_round_trips() {
        let mut story = story(WorkerPolicy::default());
        for number in 1..=50 {
            let mut job = tries(number, 2);
            job.policy.retry.form = crate::model::policy::RetryForm::NewJob;
            job.concurrency = Some(crate::model::job::ConcurrencyKey { key: format!("k{number}").into(), limit: 1 });
            story.submit(job);
        }
        assert_eq!(story.claims("w", 50).len(), 50);
        let before = story.tables.loads;
        story.unregister("w", Unregister::Fail).unwrap();
        assert!(story.tables.loads - before < 6, "{} loads", story.tables.loads - before);
        assert_eq!(story.tables.jobs.len(), 100);
    }

    #[test]
    fn a_draining_worker_claims_no_more_and_a_foreign_one_is_not_taken_over() {
        let mut story = story(WorkerPolicy::default());
        story.submit(once(1));
        let drain = |draining| DrainWorker { namespace: ns(), worker: worker("w"), draining, principal: None };
        story.run(drain(true)).unwrap();
        let claim = story.claim_command("w", 1);
        assert_eq!(code(&story.run(claim)), "worker-draining");
        story.run(drain(false)).unwrap();
        assert_eq!(story.claims("w", 1).len(), 1);
        let own =
            |owner: &str| RegisterWorker { owner: Some(owner.into()), ..registration("w", WorkerPolicy::default()) };
        story.run(own("ann")).unwrap();
        assert_eq!(code(&story.run(own("bob"))), "forbidden");
        assert_eq!(code(&story.run(registration("w", WorkerPolicy::default()))), "forbidden");
    }

    #[test]
    fn thresholds_out_of_order_are_refused() {
        let table = [
            WorkerPolicy { offline_after: Millis(0), ..cascade() },
            WorkerPolicy { unreachable_after: Some(Millis(20_001)), ..cascade() },
            WorkerPolicy { delete_after: Some(Millis(19_999)), ..cascade() },
        ];
        for policy in table {
            assert_eq!(code(&Story::new().register("w", policy)), "invalid", "{policy:?}");
        }
    }

    use crate::model::time::Timestamp;

    #[test]
    fn nobody_acts_for_another_principals_worker() {
        let mut story = Story::new();
        story.run(RegisterWorker { owner: Some("ann".into()), ..registration("w", cascade()) }).unwrap();
        story.register("free", cascade()).unwrap();
        let table =
            [(Some("ann"), "w", "ok"), (Some("bob"), "w", "forbidden"), (None, "w", "ok"), (Some("bob"), "free", "ok")];
        for (caller, name, expected) in table {
            let (namespace, principal) = (ns(), caller.map(Arc::from));
            let beat = Heartbeat { namespace: namespace.clone(), worker: worker(name), principal: principal.clone() };
            assert_eq!(code(&story.run(beat)), expected, "{caller:?} for {name}: heartbeat");
            let drain = DrainWorker {
                namespace: namespace.clone(),
                worker: worker(name),
                draining: false,
                principal: principal.clone(),
            };
            assert_eq!(code(&story.run(drain)), expected, "{caller:?} for {name}: drain");
            let how = Some(Unregister::Offline);
            let leave = UnregisterWorker { namespace, worker: worker(name), how, only_offline: false, principal };
            assert_eq!(code(&story.run(leave)), expected, "{caller:?} for {name}: unregister");
        }
    }
}
