//! Claim up to so many jobs under fresh leases.

use super::Decided;
use crate::{
    desk::{Desk, Stop},
    event::What,
    id::LeaseId,
    is_default,
    job::{Job, Lease, Outcome, Reason, State},
    keys::{HeadQuery, JobKey, Keys},
    life,
    name::{Namespace, Tags, WorkerId, check_name},
    policy::{LeaseEnd, LeaseLength, MayClaim, WorkerPolicy, check_length},
    record::{self, Kind},
    refusal::Refusal,
    reply::{Leased, Reply},
    time::{Millis, Timestamp},
    worker::{self, Liveness, Worker},
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

/// What to make of a worker nobody registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    Refuse,
    Create(WorkerPolicy),
}

/// Remembers what a request id got.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asked {
    leases: Vec<(crate::id::JobId, Uuid)>,
    #[serde(default, skip_serializing_if = "is_default")]
    until: Option<Timestamp>,
}

impl Kind for Asked {
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
        keys.want_record(record::key_of::<Worker>(&self.namespace, self.worker.as_str()), false);
        if let Some(request) = &self.request_id {
            keys.want_record(record::key_of::<Asked>(&self.namespace, &self.request_key(request)), true);
        } else if let Offer::Tags(offered) = &self.offer {
            keys.want_heads(self.query(offered.clone()), self.secrets.len());
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        self.check(desk)?;
        let worker = self.admit(desk)?;
        if let Some(leases) = self.asked_before(desk)? {
            return Ok(Ok(Reply::Leases(leases)));
        }
        let offered = match &self.offer {
            Offer::Tags(tags) => tags.clone(),
            Offer::Registered => worker.tags.clone(),
            Offer::Narrowed(tags) => worker.tags.intersection(tags),
        };
        let leases = self.take(desk, &self.query(offered))?;
        self.remember(desk, &leases)?;
        Ok(Ok(Reply::Leases(leases)))
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
    fn admit(&self, desk: &mut Desk) -> Result<Worker, Stop> {
        let Some(found) = desk.peek::<Worker>(&self.namespace, self.worker.as_str())? else {
            return self.create(desk);
        };
        if found.draining {
            return Err(Refusal::WorkerDraining { worker: self.worker.to_string() }.into());
        }
        let liveness = found.liveness(desk.now());
        if found.policy.may_claim == MayClaim::OnlineOnly && liveness != Liveness::Online {
            return Err(Refusal::WorkerNotOnline { worker: self.worker.to_string(), liveness: liveness.name() }.into());
        }
        worker::called_by(desk, &self.namespace, &found)?;
        Ok(found)
    }

    fn create(&self, desk: &mut Desk) -> Result<Worker, Stop> {
        let Unknown::Create(policy) = &self.unknown else {
            return Err(Refusal::not_found("worker", &self.worker).into());
        };
        let worker = Worker {
            id: self.worker.clone(),
            tags: Tags::default(),
            slots: 0,
            owner: self.principal.clone(),
            registered_at: desk.now(),
            last_seen: desk.now(),
            declared: Liveness::Online,
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
                if job.pending_until().is_some_and(|until| until <= desk.now()) {
                    never_claimed(desk, job)?;
                } else {
                    leases.push(self.lease(desk, job, self.secrets[leases.len()])?);
                }
            }
        }
        Ok(leases)
    }

    fn lease(&self, desk: &mut Desk, mut job: Job, secret: Uuid) -> Result<Leased, Stop> {
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
        job.live.report = None;
        let told = What::Claimed { job: job.key.id, worker: self.worker.clone(), attempt: job.live.attempt };
        desk.tell(&self.namespace, told);
        let payload = desk.payload(&job.key)?;
        desk.put_job(job.clone());
        Ok(Leased { lease: LeaseId::new(job.key.id, secret), job: Box::new(job), payload })
    }

    /// What the same request got before, as far as it is still live.
    fn asked_before(&self, desk: &mut Desk) -> Result<Option<Vec<Leased>>, Stop> {
        let Some(request) = &self.request_id else { return Ok(None) };
        let Some(asked) = desk.get::<Asked>(&self.namespace, &self.request_key(request))? else { return Ok(None) };
        let keys: Vec<JobKey> = asked.leases.iter().map(|(id, _)| JobKey::new(&self.namespace, *id)).collect();
        desk.want_jobs(&keys)?;
        let mut live = Vec::new();
        for (key, (id, secret)) in keys.iter().zip(&asked.leases) {
            let Some(job) = desk.job(key)? else { continue };
            if job.held_by(*secret).is_ok() && job.overdue(desk.now()).is_none() {
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
        let asked = Asked {
            leases: leases.iter().map(|leased| (leased.lease.job, leased.lease.secret)).collect(),
            until: Some(desk.now() + longest),
        };
        desk.put(&self.namespace, &self.request_key(request), &asked)
    }
}

/// The pending deadline has passed.
pub(crate) fn never_claimed(desk: &mut Desk, job: Job) -> Result<Job, Stop> {
    let outcome = Outcome::new(Reason::PendingDeadlinePassed, "no worker claimed the job in time");
    life::end(desk, job, State::Failed, Some(outcome))
}
