//! Who is writing: the different ways a report can name the attempt it is about, and the one check they all pass.

use crate::{
    desk::{Desk, Stop},
    model::{
        id::{JobId, LeaseId},
        job::{Job, Said, State},
        keys::{JobKey, Keys},
        name::{Namespace, WorkerId},
        refusal::Refusal,
        worker::Worker,
    },
    moves::{concurrency, life, liveness},
};
use std::sync::Arc;

/// What a report is addressed by. A lease id is proof by itself; the others are for dialects whose wire names only the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Lease(LeaseId),
    Worker { job: JobId, worker: WorkerId },
    Owner { job: JobId, principal: Arc<str> },
    Job(JobId),
}

/// An address, and the principal that used it where tokens are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub namespace: Namespace,
    pub address: Address,
    pub principal: Option<Arc<str>>,
}

pub(crate) enum Found {
    Held(Job),
    /// This very report was accepted before.
    Replayed(Job),
    /// Refused, and what ran out is now written on the job.
    Late(Refusal),
}

impl Holder {
    pub fn lease(namespace: &Namespace, lease: LeaseId) -> Self {
        Self { namespace: namespace.clone(), address: Address::Lease(lease), principal: None }
    }

    pub fn job_key(&self) -> JobKey {
        let id = match &self.address {
            Address::Lease(lease) => lease.job,
            Address::Worker { job, .. } | Address::Owner { job, .. } | Address::Job(job) => *job,
        };
        JobKey::new(&self.namespace, id)
    }

    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.jobs.insert(self.job_key());
    }

    /// The job this holder may write to now. A lease that has run out is refused even if no sweep ran yet: otherwise the
    /// outcome would depend on how often the sweep runs. Once an attempt has ended, only the very report that ended it is
    /// heard again.
    pub(crate) fn find(&self, desk: &mut Desk, said: Option<Said>) -> Result<Found, Stop> {
        let key = self.job_key();
        let job = desk.job(&key)?.ok_or_else(|| Refusal::not_found("job", key.id))?;
        self.check_identity(&job)?;
        if !job.state.is_held() {
            if said.is_some_and(|said| job.live.was_told(said)) {
                return Ok(Found::Replayed(job));
            }
            let refusal = Refusal::LeaseLost { state: job.state };
            return match said {
                Some(_) if job.live.place_until.is_some() => Ok(self.stopped(desk, job)?),
                _ => Err(refusal.into()),
            };
        }
        match life::expire(desk, &job)? {
            Some(after) => Ok(Found::Late(Refusal::LeaseLost { state: after.state })),
            None => Ok(Found::Held(job)),
        }
    }

    /// The job was taken from this holder, who says now that its work has stopped: too late for anything but its place.
    fn stopped(&self, desk: &mut Desk, job: Job) -> Result<Found, Stop> {
        let refusal = Refusal::LeaseLost { state: job.state };
        concurrency::free_place(desk, job)?;
        Ok(Found::Late(refusal))
    }

    /// The job this holder hands back.
    pub(crate) fn handed_back(&self, desk: &mut Desk) -> Result<Result<Job, Refusal>, Stop> {
        let key = self.job_key();
        let kept = desk.job(&key)?.filter(|job| job.state.is_final() && job.live.place_until.is_some());
        if let Some(job) = kept.filter(|job| self.check_identity(job).is_ok()) {
            return match self.stopped(desk, job)? {
                Found::Late(refusal) => Ok(Err(refusal)),
                Found::Held(job) | Found::Replayed(job) => Ok(Ok(job)),
            };
        }
        self.held(desk)
    }

    /// The job this holder may go on with, for all that is not a final report. Also a sign of life of its worker, where
    /// any call counts; a final report is none, since the worker's next claim tells soon enough and costs no extra row.
    pub(crate) fn held(&self, desk: &mut Desk) -> Result<Result<Job, Refusal>, Stop> {
        let job = match self.find(desk, None)? {
            Found::Held(job) | Found::Replayed(job) => job,
            Found::Late(refusal) => return Ok(Err(refusal)),
        };
        let holder = job.holder().expect("a held job has a holder").clone();
        if let Some(worker) = desk.peek::<Worker>(&self.namespace, holder.as_str())? {
            liveness::called(desk, &self.namespace, &worker)?;
        }
        Ok(Ok(job))
    }

    /// The job about which this holder may still say something. What names nothing but the job may come after its end: that is
    /// how its work is told about, and nothing else follows from it.
    pub(crate) fn heard(&self, desk: &mut Desk) -> Result<Result<Job, Refusal>, Stop> {
        let key = self.job_key();
        let ended = desk.job(&key)?.filter(|job| matches!(self.address, Address::Job(_)) && job.state.is_final());
        match ended.filter(|job| self.check_identity(job).is_ok()) {
            Some(job) => Ok(Ok(job)),
            None => self.held(desk),
        }
    }

    /// Whether this is, or was last, the one at work on the job.
    fn check_identity(&self, job: &Job) -> Result<(), Refusal> {
        let Some(lease) = &job.live.lease else {
            return Err(Refusal::NotHeld { state: job.state });
        };
        let foreign = match (&self.principal, &lease.principal) {
            (Some(caller), Some(claimer)) => caller != claimer,
            _ => false,
        };
        if foreign {
            return Err(Refusal::NotHolder);
        }
        match &self.address {
            Address::Lease(id) if lease.secret != id.secret => Err(Refusal::LeaseLost { state: job.state }),
            Address::Worker { worker, .. } if lease.worker != *worker => Err(stranger(job)),
            Address::Owner { principal, .. } if lease.principal.as_ref() != Some(principal) => Err(stranger(job)),
            _ => Ok(()),
        }
    }
}

/// Somebody who never held the job: told so, unless nobody holds it at all.
fn stranger(job: &Job) -> Refusal {
    match job.state {
        State::Blocked | State::Scheduled | State::Pending => Refusal::NotHeld { state: job.state },
        _ => Refusal::NotHolder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{
            Command,
            append_log::AppendLog,
            cancel::Cancel,
            complete::Complete,
            holds::Holds,
            progress::ReportProgress,
            release::Release,
            renew::Renew,
            start::Start,
            testing::{Answer, Story, after, backoff, by, code, failure, id, keyed, ns, once, tries, worker},
        },
        model::policy::CancelPolicy,
    };
    use uuid::Uuid;

    /// Brings job 1 into a state. The lease is its own where it ever had one, made up where not.
    fn in_state(state: &str) -> (Story, LeaseId) {
        let mut story = Story::new();
        let made_up = LeaseId::new(id(1), Uuid::from_u128(99));
        let lease = match state {
            "blocked (parents)" => {
                story.submit(NewJob { priority: 0, ..once(2) });
                story.submit(after(1, &[2]));
                made_up
            }
            "blocked (key)" => {
                story.submit(keyed(2, 1));
                story.submit(keyed(1, 1));
                made_up
            }
            "scheduled" => {
                let lease = story.submit_and_claim(backoff(1, 1_000));
                story.fail(lease).unwrap();
                made_up
            }
            "pending" => {
                story.submit(once(1));
                made_up
            }
            "claimed" | "running" | "draining" | "completed" | "failed" | "cancelled" => {
                let mut job = once(1);
                if state == "draining" {
                    job.policy.cancel = CancelPolicy::Drain;
                }
                let lease = story.submit_and_claim(job);
                match state {
                    "running" => drop(story.start(lease).unwrap()),
                    "draining" | "cancelled" => drop(story.cancel(1).unwrap()),
                    "completed" => drop(story.complete(lease).unwrap()),
                    "failed" => drop(story.fail(lease).unwrap()),
                    _ => {}
                }
                lease
            }
            "skipped" => {
                let parent = story.submit_and_claim(once(2));
                story.submit(after(1, &[2]));
                story.fail(parent).unwrap();
                made_up
            }
            other => panic!("{other}"),
        };
        (story, lease)
    }

    use crate::commands::submit::NewJob;

    fn event(name: &str, lease: LeaseId) -> Command {
        let holder = Holder::lease(&ns(), lease);
        match name {
            "start" => Start { holder }.into(),
            "renew" => Renew { holder, length: None }.into(),
            "progress" => ReportProgress { holder, percent: 5.0, message: None }.into(),
            "log" => AppendLog::new(holder, "line").into(),
            "complete" => Complete { holder, result: "1".into() }.into(),
            "fail" => failure(lease).into(),
            "release" => Release { holder }.into(),
            "holds" => Holds { holder }.into(),
            "cancel" => {
                Cancel { namespace: ns(), job: lease.job, by: "ann".into(), mode: None, message: "".into() }.into()
            }
            other => panic!("{other}"),
        }
    }

    fn told(answer: &Answer) -> &'static str {
        match answer {
            Ok(crate::Reply::Ended(crate::model::reply::Ended { replayed: true, .. })) => "replayed",
            other => code(other),
        }
    }

    /// The table at the top of `job.rs`, event by event: the answer, and the state after it.
    #[test]
    fn every_event_in_every_state() {
        let table: &[(&str, Events)] = &[
            ("blocked (parents)", waiting("blocked", "not-held")),
            ("blocked (key)", waiting("blocked", "not-held")),
            ("scheduled", waiting("scheduled", "lease-lost")),
            ("pending", waiting("pending", "not-held")),
            ("claimed", held("claimed", "running", "ok")),
            ("running", held("running", "running", "already-started")),
            (
                "draining",
                [
                    ("start", "ok", "running"),
                    ("renew", "ok", "claimed"),
                    ("progress", "ok", "running"),
                    ("log", "ok", "claimed"),
                    ("complete", "ok", "cancelled"),
                    ("fail", "ok", "cancelled"),
                    ("release", "ok", "cancelled"),
                    ("holds", "ok", "claimed"),
                    ("cancel", "ok", "claimed"),
                ],
            ),
            ("completed", ended("completed", "lease-lost", "replayed", "lease-lost")),
            ("failed", ended("failed", "lease-lost", "lease-lost", "replayed")),
            ("cancelled", ended("cancelled", "lease-lost", "lease-lost", "lease-lost")),
            ("skipped", ended("skipped", "not-held", "not-held", "not-held")),
        ];
        for (state, events) in table {
            for (name, answer, then) in events {
                let (mut story, lease) = in_state(state);
                let told = told(&story.run(event(name, lease)));
                assert_eq!((told, story.state(1).name()), (*answer, *then), "{name} of a job that is {state}");
            }
        }
    }

    type Events = [(&'static str, &'static str, &'static str); 9];

    fn waiting(state: &'static str, refusal: &'static str) -> Events {
        ["start", "renew", "progress", "log", "complete", "fail", "release", "holds", "cancel"].map(|name| match name {
            "cancel" => (name, "ok", "cancelled"),
            _ => (name, refusal, state),
        })
    }

    fn held(state: &'static str, started: &'static str, start: &'static str) -> Events {
        [
            ("start", start, started),
            ("renew", "ok", state),
            ("progress", "ok", "running"),
            ("log", "ok", state),
            ("complete", "ok", "completed"),
            ("fail", "ok", "failed"),
            ("release", "ok", "pending"),
            ("holds", "ok", state),
            ("cancel", "ok", "cancelled"),
        ]
    }

    fn ended(state: &'static str, other: &'static str, complete: &'static str, fail: &'static str) -> Events {
        ["start", "renew", "progress", "log", "complete", "fail", "release", "holds", "cancel"].map(|name| match name {
            "complete" => (name, complete, state),
            "fail" => (name, fail, state),
            "cancel" => (name, "final", state),
            _ => (name, other, state),
        })
    }

    #[test]
    fn who_may_report_on_a_job() {
        let owner = |name: &str| Address::Owner { job: id(1), principal: name.into() };
        let by_worker = |name: &str| Address::Worker { job: id(1), worker: worker(name) };
        let table = [
            (Address::Job(id(1)), None, "ok"),
            (Address::Job(id(1)), Some("p"), "ok"),
            (Address::Job(id(1)), Some("q"), "not-holder"),
            (Address::Job(id(7)), None, "not-found"),
            (by_worker("w"), None, "ok"),
            (by_worker("x"), None, "not-holder"),
            (owner("p"), None, "ok"),
            (owner("q"), None, "not-holder"),
        ];
        for (address, principal, expected) in table {
            let mut story = Story::new();
            story.submit(once(1));
            let mut claim = story.claim_command("w", 1);
            claim.principal = Some("p".into());
            story.run(claim).unwrap();
            let holder = Holder { principal: principal.map(Into::into), ..by(address.clone()) };
            let answer = story.run(Complete { holder, result: "".into() });
            assert_eq!(code(&answer), expected, "{address:?} by {principal:?}");
        }
    }

    #[test]
    fn a_stranger_hears_whether_anybody_holds_the_job() {
        let mut story = Story::new();
        let lease = story.submit_and_claim(tries(1, 2));
        let stranger = || by(Address::Worker { job: id(1), worker: worker("x") });
        assert_eq!(code(&story.run(Start { holder: stranger() })), "not-holder");
        story.fail(lease).unwrap();
        assert_eq!(code(&story.run(Start { holder: stranger() })), "not-held");
    }

    #[test]
    fn a_late_report_is_refused_before_any_sweep_and_the_job_says_so() {
        for (attempts, then) in [(1, State::Failed), (2, State::Pending)] {
            let mut story = Story::new();
            let lease = story.submit_and_claim(tries(1, attempts));
            story.wait(29_999);
            story.renew(lease).unwrap();
            story.wait(30_000);
            assert_eq!(story.complete(lease), Err(Refusal::LeaseLost { state: then }));
            assert_eq!(story.state(1), then);
            assert_eq!(story.complete(lease), Err(Refusal::LeaseLost { state: then }), "and again");
        }
    }

    #[test]
    fn an_old_lease_is_worth_nothing_once_there_is_a_new_one() {
        let mut story = Story::new();
        let old = story.submit_and_claim(tries(1, 3));
        story.wait(30_000);
        story.sweep();
        let new = story.claim("x");
        for name in ["start", "renew", "progress", "log", "complete", "fail", "release", "holds"] {
            assert_eq!(told(&story.run(event(name, old))), "lease-lost", "{name}");
        }
        assert_eq!(story.job(1).live.attempt, 2);
        story.complete(new).unwrap();
        assert_eq!(story.events(Some(1)), ["submitted", "claimed", "requeued", "claimed", "completed"]);
    }

    #[test]
    fn any_report_keeps_a_worker_alive_where_any_call_counts() {
        for name in ["start", "renew", "progress", "log", "holds"] {
            let mut story = Story::new();
            let lease = story.submit_and_claim(crate::commands::testing::bound(1));
            story.wait(80_000);
            story.run(event(name, lease)).unwrap();
            story.wait(80_000);
            story.sweep();
            assert!(story.state(1).is_held(), "{name} was a sign of life");
            story.wait(90_000);
            story.sweep();
            assert_eq!(story.state(1), State::Failed);
        }
    }
}
