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
            unregistered: true,
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
            deadline: policy
                .hard_deadline
                .map(|deadline| desk.now() + deadline)
                .into_iter()
                .chain(job.live.deadline)
                .min(),
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
