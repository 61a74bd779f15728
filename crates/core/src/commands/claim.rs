//! Claim up to so many jobs under fresh leases.

use super::Decided;
use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        id::LeaseId,
        is_default,
        job::{Job, Lease, State},
        keys::{HeadQuery, JobKey, Keys},
        name::{Namespace, Tags, WorkerId, check_name},
        policy::{LeaseEnd, LeaseLength, MayClaim, WorkerPolicy, check_length},
        record::{self, Kind},
        refusal::Refusal,
        reply::Leased,
        time::{Millis, Timestamp},
        worker::{Liveness, Worker},
    },
    moves::{life, liveness},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

#[derive(Clone)]
pub struct Claim {
    pub namespace: Namespace,
    pub worker: WorkerId,
    pub offer: Offer,
    /// One unguessable secret for each job that may be claimed.
    pub secrets: Vec<Uuid>,
    /// Asked lease length; counts where the job leaves it to the claimer.
    pub lease: Option<Millis>,
    pub unknown: Unknown,
    pub principal: Option<Arc<str>>,
    /// Asking again under the same id, while a lease it got is live, gives the same leases.
    pub request_id: Option<Arc<str>>,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim({}/{} up to {} of {:?})", self.namespace, self.worker, self.secrets.len(), self.offer)
    }
}

/// Which tags count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// These, whatever the worker registered.
    Tags(Tags),
    /// Those the worker registered.
    Registered,
    /// Those the worker registered that are also in here.
    Narrowed(Tags),
}

impl Offer {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Offer::Tags(tags) | Offer::Narrowed(tags) => tags.bytes(),
            Offer::Registered => 0,
        }
    }
}

/// What to make of a worker nobody registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    Refuse,
    Create(WorkerPolicy),
}

/// Remembers what a request id got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClaimRequest {
    leases: Vec<(crate::model::id::JobId, Uuid)>,
    #[serde(default, skip_serializing_if = "is_default")]
    until: Option<Timestamp>,
}

impl Kind for ClaimRequest {
    const KIND: &'static str = "claim_request";
    fn due(&self) -> Option<Timestamp> {
        self.until
    }
}

impl Claim {
    pub fn new(namespace: &Namespace, worker: WorkerId, offered: Tags, secrets: Vec<Uuid>) -> Self {
        Self {
            namespace: namespace.clone(),
            worker,
            offer: Offer::Tags(offered),
            secrets,
            lease: None,
            unknown: Unknown::Create(WorkerPolicy::default()),
            principal: None,
            request_id: None,
        }
    }

    fn query(&self, offered: Tags) -> HeadQuery {
        HeadQuery { namespace: self.namespace.clone(), offered }
    }

    fn request_key(&self, request: &str) -> String {
        format!("{}\n{request}", self.worker)
    }

    pub(crate) fn keys(&self, keys: &mut Keys) {
        self.record_keys(keys);
        if let (None, Offer::Tags(offered)) = (&self.request_id, &self.offer) {
            keys.want_heads(self.query(offered.clone()), self.secrets.len());
        }
    }

    /// The same for one that waits in this line and joins a batch that has work for it.
    pub(crate) fn keys_in_line(&self, line: &HeadQuery, keys: &mut Keys) {
        self.record_keys(keys);
        if !keys.heads.contains_key(line) {
            keys.glances.insert(line.clone());
        }
        keys.want_heads(line.clone(), self.secrets.len());
    }

    fn record_keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Worker>(&self.namespace, self.worker.as_str()), false);
        if let Some(request) = &self.request_id {
            keys.want_record(record::key_of::<ClaimRequest>(&self.namespace, &self.request_key(request)), true);
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Vec<Leased>> {
        self.check(desk)?;
        let known = desk.peek::<Worker>(&self.namespace, self.worker.as_str())?;
        if let Some(worker) = &known {
            worker.check_owner(self.principal.as_ref())?;
        }
        // Before anything else is asked of the worker: what it was given, it may hear again.
        if let Some(leases) = self.asked_before(desk)? {
            return Ok(Ok(leases));
        }
        let worker = match known {
            Some(known) => self.admit(desk, known)?,
            None => self.create(desk)?,
        };
        let offered = match &self.offer {
            Offer::Tags(tags) => tags.clone(),
            Offer::Registered => worker.tags.clone(),
            Offer::Narrowed(tags) => worker.tags.intersection(tags),
        };
        let leases = self.take(desk, &self.query(offered))?;
        self.remember(desk, &leases)?;
        Ok(Ok(leases))
    }

    fn check(&self, desk: &Desk) -> Result<(), Refusal> {
        let limits = desk.limits();
        if self.secrets.is_empty() || self.secrets.len() > limits.claim_max {
            let why = format!("{} jobs asked for; 1 to {} are possible", self.secrets.len(), limits.claim_max);
            return Err(Refusal::invalid("max", why));
        }
        if let Some(lease) = self.lease {
            check_length("lease", lease, 1, &limits)?;
        }
        if let Some(request) = &self.request_id {
            check_name("request_id", request, &limits)?;
        }
        match &self.offer {
            Offer::Tags(tags) | Offer::Narrowed(tags) => tags.check("tags", limits.worker_tags_max, &limits),
            Offer::Registered => Ok(()),
        }
    }

    /// The worker, if it may claim now.
    fn admit(&self, desk: &mut Desk, found: Worker) -> Result<Worker, Stop> {
        if found.draining {
            return Err(Refusal::WorkerDraining { worker: self.worker.to_string() }.into());
        }
        let liveness = found.liveness(desk.now());
        if found.policy.may_claim == MayClaim::OnlineOnly && liveness != Liveness::Online {
            return Err(Refusal::WorkerNotOnline { worker: self.worker.to_string(), liveness: liveness.name() }.into());
        }
        liveness::called(desk, &self.namespace, &found)?;
        Ok(found)
    }

    fn create(&self, desk: &mut Desk) -> Result<Worker, Stop> {
        let Unknown::Create(policy) = &self.unknown else {
            return Err(Refusal::not_found("worker", &self.worker).into());
        };
        policy.check(&desk.limits())?;
        let worker = Worker {
            id: self.worker.clone(),
            tags: Tags::default(),
            slots: 0,
            owner: self.principal.clone(),
            registered_at: desk.now(),
            last_seen: desk.now(),
            doubt_until: None,
            declared: Liveness::Online,
            away: false,
            draining: false,
            policy: *policy,
            extra: None,
        };
        if desk.get::<Worker>(&self.namespace, self.worker.as_str())?.is_none() {
            desk.put(&self.namespace, self.worker.as_str(), &worker)?;
            desk.tell(&self.namespace, What::WorkerRegistered { worker: self.worker.clone() });
        }
        Ok(worker)
    }

    fn take(&self, desk: &mut Desk, query: &HeadQuery) -> Result<Vec<Leased>, Stop> {
        let mut leases = Vec::new();
        while leases.len() < self.secrets.len() {
            let candidates = desk.select(query, self.secrets.len() - leases.len())?;
            if candidates.is_empty() {
                break;
            }
            for job in candidates {
                if life::expire(desk, &job)?.is_some() {
                    // Its end may have been the end of others too: look again.
                    break;
                }
                leases.push(self.lease(desk, job, self.secrets[leases.len()])?);
            }
        }
        Ok(leases)
    }

    fn lease(&self, desk: &mut Desk, mut job: Job, secret: Uuid) -> Result<Leased, Stop> {
        if job.lives_with_worker() {
            liveness::bind(desk, &self.namespace, &self.worker)?;
        }
        let policy = &job.spec.policy;
        let limits = desk.limits();
        let length = match policy.lease.length {
            LeaseLength::Asked => self.lease.unwrap_or(limits.lease_default),
            LeaseLength::FromDeadline => policy.hard_deadline.unwrap_or(limits.lease_default),
            LeaseLength::Fixed(length) => length,
        };
        let lease = Lease {
            secret,
            worker: self.worker.clone(),
            principal: self.principal.clone(),
            length,
            until: (policy.lease.ends != LeaseEnd::WithWorker).then(|| desk.now() + length),
            deadline: policy.hard_deadline.map(|deadline| desk.now() + deadline),
        };
        job.state = State::Claimed;
        job.live.attempt += 1;
        job.live.lease = Some(lease);
        job.live.claimed_at = Some(desk.now());
        job.live.started_at = None;
        (job.live.report, job.live.said) = (None, None);
        let told = What::Claimed { job: job.key.id, worker: self.worker.clone(), attempt: job.live.attempt };
        desk.tell(&self.namespace, told);
        let payload = desk.payload(&job.key)?;
        desk.put_job(job.clone());
        Ok(Leased { lease: LeaseId::new(job.key.id, secret), job: Box::new(job), payload })
    }

    /// What the same request got before, as far as it is still live.
    fn asked_before(&self, desk: &mut Desk) -> Result<Option<Vec<Leased>>, Stop> {
        let Some(request) = &self.request_id else { return Ok(None) };
        let Some(asked) = desk.get::<ClaimRequest>(&self.namespace, &self.request_key(request))? else {
            return Ok(None);
        };
        let keys: Vec<JobKey> = asked.leases.iter().map(|(id, _)| JobKey::new(&self.namespace, *id)).collect();
        desk.want_jobs(&keys)?;
        let mut live = Vec::new();
        for (key, (id, secret)) in keys.iter().zip(&asked.leases) {
            let Some(job) = desk.job(key)? else { continue };
            let lease = job.live.lease.as_ref().filter(|lease| job.state.is_held() && lease.secret == *secret);
            let mine = lease.is_some_and(|lease| lease.principal == self.principal);
            if mine && job.overdue(desk.now()).is_none() {
                let payload = desk.payload(key)?;
                live.push(Leased { lease: LeaseId::new(*id, *secret), job: Box::new(job), payload });
            }
        }
        Ok((!live.is_empty()).then_some(live))
    }

    fn remember(&self, desk: &mut Desk, leases: &[Leased]) -> Result<(), Stop> {
        let Some(request) = self.request_id.as_ref().filter(|_| !leases.is_empty()) else { return Ok(()) };
        // Kept as long as the longest lease was granted for, and a day for those that end with their worker.
        let length = |leased: &Leased| leased.job.live.lease.as_ref().map_or(Millis(0), |lease| lease.length);
        let longest = leases.iter().map(length).max().unwrap_or_default().max(Millis::from_secs(86_400));
        let asked = ClaimRequest {
            leases: leases.iter().map(|leased| (leased.lease.job, leased.lease.secret)).collect(),
            until: Some(desk.now() + longest),
        };
        desk.put(&self.namespace, &self.request_key(request), &asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{
            submit::{NewJob, Submit},
            testing::{Story, after, backoff, code, leases, ns, once, registration, tags, worker},
            workers::DrainWorker,
        },
        model::job::Reason,
    };

    fn numbers(leases: &[LeaseId]) -> Vec<u128> {
        leases.iter().map(|lease| lease.job.0.as_u128()).collect()
    }

    #[test]
    fn lower_priority_first_then_as_submitted_and_only_what_fits() {
        let mut story = Story::new();
        let job = |number, priority, required: &[&str]| NewJob { priority, tags: tags(required), ..once(number) };
        for job in
            [job(1, 5, &[]), job(2, 5, &["gpu"]), job(3, 1, &["gpu", "big"]), job(4, 0, &["arm"]), job(5, 5, &[])]
        {
            story.submit(job);
        }
        for (offered, expected) in
            [(vec!["gpu"], vec![1, 2, 5]), (vec!["big", "gpu"], vec![3]), (vec![], vec![]), (vec!["arm"], vec![4])]
        {
            let claim = Claim { offer: Offer::Tags(tags(&offered)), ..story.claim_command("w", 9) };
            let answer = story.run(claim);
            let got: Vec<_> = leases(&answer).iter().map(|leased| leased.lease).collect();
            assert_eq!(numbers(&got), expected, "{offered:?}");
        }
    }

    #[test]
    fn a_registered_offer_can_be_narrowed_but_not_widened() {
        let mut story = Story::new();
        story
            .run(crate::commands::workers::RegisterWorker {
                tags: tags(&["a", "b"]),
                ..registration("w", WorkerPolicy::default())
            })
            .unwrap();
        for (number, tag) in [(1, "a"), (2, "b"), (3, "c")] {
            story.submit(NewJob { tags: tags(&[tag]), ..once(number) });
        }
        for (offer, expected) in [(Offer::Narrowed(tags(&["b", "c"])), vec![2]), (Offer::Registered, vec![1])] {
            let claim = Claim { offer: offer.clone(), unknown: Unknown::Refuse, ..story.claim_command("w", 9) };
            let answer = story.run(claim);
            let got: Vec<_> = leases(&answer).iter().map(|leased| leased.lease).collect();
            assert_eq!(numbers(&got), expected, "{offer:?}");
        }
        let stranger = Claim { unknown: Unknown::Refuse, ..story.claim_command("x", 1) };
        assert_eq!(code(&story.run(stranger)), "not-found");
    }

    #[test]
    fn many_claims_in_one_batch_share_what_is_there() {
        let mut story = Story::new();
        for number in 1..=10 {
            story.submit(once(number));
        }
        let mut commands: Vec<crate::Command> = Vec::new();
        for at in 0..8 {
            let offer = if at % 2 == 0 { Offer::Registered } else { Offer::Tags(Tags::default()) };
            commands.push(Claim { offer, ..story.claim_command(&format!("w{at}"), 2) }.into());
        }
        commands.extend((11..=12).map(|number| Submit { namespace: ns(), job: once(number) }.into()));
        let before = story.tables.loads;
        let answers = story.batch(commands);
        let mut got: Vec<u128> = Vec::new();
        for answer in &answers[..8] {
            got.extend(leases(answer).iter().map(|leased| leased.job.key.id.0.as_u128()));
        }
        assert_eq!(got, (1..=12).collect::<Vec<_>>(), "in order, each once, those of the batch last");
        assert!(story.tables.loads - before <= 4, "{} loads", story.tables.loads - before);
    }

    #[test]
    fn jobs_that_become_ready_in_the_batch_are_claimed_in_it_in_few_round_trips() {
        let mut story = Story::new();
        for number in 1..=30 {
            story.submit(backoff(number, 100));
        }
        for lease in story.claims("w", 30) {
            story.fail(lease).unwrap();
        }
        story.wait(100);
        let mut commands: Vec<crate::Command> = story.tables.due(story.now).into_iter().map(Into::into).collect();
        commands.extend((0..30).map(|_| crate::Command::from(story.claim_command("w", 1))));
        let before = story.tables.loads;
        let answers = story.batch(commands);
        assert!(answers[30..].iter().all(|answer| leases(answer).len() == 1));
        assert!(story.tables.loads - before <= 4, "{} loads", story.tables.loads - before);
    }

    #[test]
    fn a_repeated_request_gets_the_same_leases_while_they_live() {
        let mut story = Story::new();
        for number in 1..=4 {
            story.submit(once(number));
        }
        let ask = |story: &mut Story, name: &str, principal: Option<&str>| {
            let claim = story.claim_command(name, 2);
            let claim = Claim { request_id: Some("r".into()), principal: principal.map(Into::into), ..claim };
            let answer = story.run(claim);
            leases(&answer).iter().map(|leased| leased.lease).collect::<Vec<_>>()
        };
        let first = ask(&mut story, "w", None);
        assert_eq!((first.len(), ask(&mut story, "w", None)), (2, first.clone()));
        story.run(DrainWorker { namespace: ns(), worker: worker("w"), draining: true, principal: None }).unwrap();
        assert_eq!(ask(&mut story, "w", None), first, "also when it may claim no more");
        story.run(DrainWorker { namespace: ns(), worker: worker("w"), draining: false, principal: None }).unwrap();
        let other = ask(&mut story, "w", Some("eve"));
        assert_eq!(numbers(&other), [3, 4], "not for another principal");
        story.complete(first[0]).unwrap();
        story.wait(30_000);
        assert!(ask(&mut story, "w", None).is_empty(), "what ran out is not handed out again");
    }

    #[test]
    fn a_request_id_is_remembered_as_long_as_its_last_leases() {
        let mut story = Story::new();
        let ask = |story: &mut Story| Claim { request_id: Some("r".into()), ..story.claim_command("w", 1) };
        story.submit(once(1));
        let claim = ask(&mut story);
        story.run(claim).unwrap();
        story.wait(80_000_000);
        story.sweep();
        story.submit(once(2));
        let claim = ask(&mut story);
        let lease = leases(&story.run(claim))[0].lease;
        for _ in 0..400 {
            story.wait(20_000);
            story.renew(lease).unwrap();
        }
        story.sweep();
        let claim = ask(&mut story);
        assert_eq!(leases(&story.run(claim))[0].lease, lease);
    }

    #[test]
    fn nobody_claims_in_the_name_of_anothers_worker() {
        let mut story = Story::new();
        story.submit(once(1));
        let claim = |story: &mut Story, who: &str| Claim { principal: Some(who.into()), ..story.claim_command("w", 1) };
        let first = claim(&mut story, "ann");
        story.run(first).unwrap();
        let foreign = claim(&mut story, "bob");
        assert_eq!(code(&story.run(foreign)), "forbidden");
    }

    #[test]
    fn leases_are_as_long_as_job_and_claimer_say() {
        let table = [
            (LeaseLength::Asked, None, None, 30_000),
            (LeaseLength::Asked, Some(5), None, 5),
            (LeaseLength::Fixed(Millis(7)), Some(5), None, 7),
            (LeaseLength::FromDeadline, Some(5), Some(9), 9),
        ];
        for (length, asked, deadline, expected) in table {
            let mut story = Story::new();
            let mut job = once(1);
            job.policy.lease.length = length;
            job.policy.hard_deadline = deadline.map(Millis);
            story.submit(job);
            let claim = Claim { lease: asked.map(Millis), ..story.claim_command("w", 1) };
            story.run(claim).unwrap();
            let lease = story.job(1).live.lease.clone().unwrap();
            assert_eq!(lease.until, Some(story.now + Millis(expected)), "{length:?}");
            assert_eq!(lease.deadline, deadline.map(|deadline| story.now + Millis(deadline)));
        }
    }

    #[test]
    fn what_nobody_claimed_in_time_is_not_claimed_late() {
        let mut story = Story::new();
        let deadline = |number| {
            let mut job = once(number);
            job.policy.pending_deadline = Some(Millis(10));
            job
        };
        story.submit(deadline(1));
        story.submit(deadline(2));
        story.submit(after(3, &[1]));
        story.submit(once(4));
        story.wait(10);
        assert_eq!(numbers(&story.claims("w", 3)), [4]);
        assert_eq!(story.states(3), ["failed", "failed", "skipped"]);
        assert_eq!(story.reason(1), Some(Reason::PendingDeadlinePassed));
        story.submit(deadline(5));
        story.wait(10);
        assert_eq!(code(&story.cancel(5)), "final", "nor cancelled late");
        story.submit(deadline(6));
        story.wait(10);
        story.sweep();
        assert_eq!(story.state(6), State::Failed);
    }

    #[test]
    fn a_claim_never_takes_what_the_end_of_another_ended() {
        let mut story = Story::new();
        let shape = |name: &str, job: &mut NewJob| match name {
            "late" => job.policy.pending_deadline = Some(Millis(10)),
            "child" => job.policy.parents = crate::model::policy::ParentPolicy::CancelRun,
            _ => {}
        };
        story.run(crate::commands::testing::graph(1, &["late", "child: late", "free"], shape)).unwrap();
        story.wait(10);
        assert!(story.claims("w", 3).is_empty());
        assert_eq!(story.states(3), ["failed", "cancelled", "cancelled"]);
    }

    #[test]
    fn impossible_claims_are_refused() {
        let mut story = Story::new();
        let claim = |story: &mut Story| story.claim_command("w", 1);
        let table = [
            Claim { secrets: vec![], ..claim(&mut story) },
            Claim { secrets: vec![Uuid::nil(); 1_001], ..claim(&mut story) },
            Claim { lease: Some(Millis(0)), ..claim(&mut story) },
            Claim { lease: Some(Millis(i64::MAX)), ..claim(&mut story) },
            Claim { request_id: Some("a\nb".into()), ..claim(&mut story) },
            Claim {
                unknown: Unknown::Create(WorkerPolicy { offline_after: Millis(0), ..WorkerPolicy::default() }),
                ..claim(&mut story)
            },
        ];
        for claim in table {
            assert_eq!(code(&story.run(claim.clone())), "invalid", "{claim:?}");
        }
        assert!(story.worker("w").is_none());
    }
}
