//! `/api/v1/jobs/{id}/why`: why is this job not running?
//!
//! What bears on a job is read first, all of it bounded; [`explain`] then says what it means, and looks at nothing else.

pub mod explain;
mod pending;

use crate::{
    app::App,
    ask::{Answer, Ask, Path, ok},
    problem::{Code, Problem, Result},
    route::{Access, Route},
};
use axum::extract::State;
use std::collections::HashSet;
use windlass_api::{Uuid, why::Why};
use windlass_core::{
    Job, JobId, JobKey, Outcome, State as JobState, Timestamp, WorkerId,
    record::Kind,
    worker::{Liveness, Worker},
};
use windlass_engine::store::{JobQuery, RecordQuery};

/// Jobs ahead are counted exactly up to this.
pub const AHEAD_MAX: usize = 1_000;
/// Workers and holders of a key looked at.
const LOOK_MAX: usize = 1_000;
/// Workers whose jobs are looked at one by one, and workers that are named without being registered.
const HANDS_MAX: usize = 20;
/// Jobs retried as others that are followed to the one that counts.
const RETRIES_MAX: usize = 20;
const NAMED_MAX: usize = 10;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/jobs/{id}/why", Access::Viewer, why)
            .says("Why a job is not running, or what it is doing")
            .answers::<Why>(200)
            .refuses(&[Code::NotFound]),
    ]
}

/// Everything that bears on a job.
pub struct Facts {
    pub job: Job,
    pub now: Timestamp,
    /// Parents that have not ended.
    pub parents: Vec<Job>,
    /// Jobs that have a place under its concurrency key.
    pub rivals: Vec<Job>,
    /// How the last attempt went, of a job that waits for the next one.
    pub last: Option<Outcome>,
    pub workers: Vec<Seen>,
    /// Jobs with its tags, or more, that are held by workers of which nothing else is known: those workers fit as well.
    pub strangers: Vec<Job>,
    /// Claimers that wait on this server for a job like this one.
    pub waiting: usize,
    /// What to start for it, where that is not our own worker.
    pub start: Option<String>,
    /// Jobs before it in its lane, counted no further than [`AHEAD_MAX`].
    pub ahead: usize,
}

/// A worker that is known: it registered, or it has claimed before.
pub struct Seen {
    pub worker: Worker,
    /// What it holds, as far as that bears on the job; empty for those that could not take it.
    pub held: Vec<Job>,
    /// Whether that is known.
    pub looked: bool,
    /// It holds a job with the tags of this one, or more: so it takes such jobs, whatever it registered.
    pub holds_alike: bool,
}

impl Seen {
    fn fits(&self, job: &Job) -> bool {
        job.spec.tags.subset_of(&self.worker.tags) || self.holds_alike
    }

    fn takes_jobs(&self, now: Timestamp) -> bool {
        !self.worker.draining && self.worker.liveness(now) == Liveness::Online
    }

    /// It never registered, holds nothing like this job, and is silent: it may never come again.
    fn is_forgotten(&self, now: Timestamp) -> bool {
        self.worker.unregistered && !self.holds_alike && self.worker.liveness(now) == Liveness::Offline
    }

    /// It claims without having registered, so that only its claims say which tags it has.
    fn is_unknown(&self, now: Timestamp) -> bool {
        self.worker.unregistered && self.takes_jobs(now)
    }

    fn slots(&self) -> usize {
        self.worker.slots.max(1) as usize
    }

    /// Of what it can do at a time nothing is left.
    fn is_busy(&self) -> bool {
        self.looked && self.held.len() >= self.slots()
    }
}

async fn why(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<Why>> {
    let key = JobKey::new(&ask.namespace, JobId(id));
    let job = app.engine.store().job(&key).await?.ok_or_else(|| Problem::not_found("job", id))?;
    Ok(ok(of(&app, job).await?))
}

pub async fn of(app: &App, job: Job) -> Result<Why> {
    Ok(explain::explain(&gather(app, job).await?))
}

async fn gather(app: &App, job: Job) -> Result<Facts> {
    let mut facts = Facts {
        now: app.engine.now().await?,
        parents: Vec::new(),
        rivals: Vec::new(),
        last: None,
        workers: Vec::new(),
        strangers: Vec::new(),
        waiting: 0,
        start: None,
        ahead: 0,
        job,
    };
    match facts.job.state {
        JobState::Blocked if facts.job.live.waiting > 0 => facts.parents = parents(app, &facts.job).await?,
        JobState::Blocked => facts.rivals = rivals(app, &facts.job).await?,
        JobState::Scheduled if facts.job.live.attempt > 0 => {
            let body = app.engine.store().body(&facts.job.key).await?;
            facts.last = body.and_then(|mut body| body.attempts.pop()).map(|attempt| attempt.outcome);
        }
        JobState::Pending => {
            let running = held(app, &facts.job, None, vec![JobState::Claimed, JobState::Running], LOOK_MAX).await?;
            facts.workers = workers(app, &facts.job, facts.now, &running).await?;
            facts.strangers = strangers(&facts.job, &facts.workers, running);
            facts.waiting = app.engine.waiting_for(&facts.job.key.namespace, &facts.job.spec.tags);
            let tags: Vec<&str> = facts.job.spec.tags.iter().collect();
            facts.start = app.dialects.start_worker(&facts.job.key.namespace, &tags);
            facts.ahead = app.engine.store().ahead(&facts.job, AHEAD_MAX).await?;
        }
        _ => {}
    }
    Ok(facts)
}

async fn parents(app: &App, job: &Job) -> Result<Vec<Job>> {
    let mut open = Vec::new();
    for &id in &job.spec.parents {
        let mut parent = app.engine.store().job(&JobKey::new(&job.key.namespace, id)).await?;
        // Whoever waits for a job that is retried as another one waits for that one.
        for _ in 0..RETRIES_MAX {
            let Some(next) = parent.as_ref().and_then(|parent| parent.live.retry_job) else { break };
            parent = app.engine.store().job(&JobKey::new(&job.key.namespace, next)).await?;
        }
        open.extend(parent.filter(|parent| !parent.state.is_final()));
        if open.len() > NAMED_MAX {
            break;
        }
    }
    Ok(open)
}

/// Those that run first: they say when it goes on.
async fn rivals(app: &App, job: &Job) -> Result<Vec<Job>> {
    let Some(own) = &job.spec.concurrency else { return Ok(Vec::new()) };
    let mut rivals = Vec::new();
    // One that was taken from its worker has its place until that has stopped.
    for states in [vec![JobState::Claimed, JobState::Running], vec![JobState::Cancelled], vec![JobState::Pending]] {
        let found = held(app, job, None, states, LOOK_MAX).await?;
        let holds =
            |job: &Job| job.live.has_place && job.spec.concurrency.as_ref().is_some_and(|key| key.key == own.key);
        rivals.extend(found.into_iter().filter(holds));
        if rivals.len() >= own.limit as usize {
            break;
        }
    }
    Ok(rivals)
}

/// Jobs of the same namespace in these states, of one worker or of all.
async fn held(app: &App, job: &Job, holder: Option<WorkerId>, states: Vec<JobState>, limit: usize) -> Result<Vec<Job>> {
    let namespace = Some(job.key.namespace.clone());
    Ok(app.engine.store().jobs(&JobQuery { namespace, states, holder, limit, ..JobQuery::default() }).await?)
}

/// `running`: what is held in the namespace, or the first [`LOOK_MAX`] of it.
async fn workers(app: &App, job: &Job, now: Timestamp, running: &[Job]) -> Result<Vec<Seen>> {
    let query = RecordQuery { limit: LOOK_MAX, ..RecordQuery::all(job.key.namespace.clone(), Worker::KIND) };
    let found = app.engine.store().records(&query).await?;
    let known = found.iter().filter_map(|record| serde_json::from_str(&record.value).ok());
    let is_all = running.len() < LOOK_MAX;
    let alike = |other: &&Job| job.spec.tags.subset_of(&other.spec.tags);
    let holders: HashSet<&WorkerId> = running.iter().filter(alike).filter_map(Job::holder).collect();
    let seen = |worker: Worker| {
        let holds_alike = holders.contains(&worker.id);
        Seen { worker, held: Vec::new(), looked: is_all, holds_alike }
    };
    let mut workers: Vec<Seen> = known.map(seen).collect();
    let mut able: Vec<&mut Seen> = workers.iter_mut().filter(|seen| seen.fits(job) && seen.takes_jobs(now)).collect();
    for seen in &mut able {
        let own = running.iter().filter(|job| job.holder() == Some(&seen.worker.id));
        seen.held = own.take(seen.slots()).cloned().collect();
        seen.looked |= seen.held.len() >= seen.slots();
    }
    for seen in able.into_iter().filter(|seen| !seen.looked).take(HANDS_MAX) {
        seen.held = held(app, job, Some(seen.worker.id.clone()), Vec::new(), seen.slots().min(LOOK_MAX)).await?;
        seen.looked = true;
    }
    Ok(workers)
}

fn strangers(job: &Job, workers: &[Seen], running: Vec<Job>) -> Vec<Job> {
    let known = |worker: &WorkerId| workers.iter().any(|seen| seen.worker.id == *worker);
    let fits = |other: &Job| job.spec.tags.subset_of(&other.spec.tags) && other.holder().is_some_and(|by| !known(by));
    running.into_iter().filter(fits).take(HANDS_MAX).collect()
}
