//! `/api/v1/jobs/{id}/why`: why is this job not running?
//!
//! What bears on a job is read first, all of it bounded; [`explain`] then says what it means, and looks at nothing else.

use super::convert;
use crate::{
    app::App,
    ask::{Answer, Ask, Path, ok},
    problem::Problem,
    route::{Access, Route},
    wire_time::text,
};
use axum::extract::State;
use windlass_api::{
    Uuid,
    why::{Cause, Why},
};
use windlass_core::{
    Job, JobId, JobKey, State as JobState, Timestamp,
    record::Kind,
    stage::Hold,
    worker::{Liveness, Worker},
};
use windlass_engine::store::{JobQuery, RecordQuery};

/// Jobs ahead are counted exactly up to this.
const AHEAD_MAX: usize = 1_000;
/// Workers, parents and holders of a key looked at.
const LOOK_MAX: usize = 1_000;
const NAMED_MAX: usize = 10;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/jobs/{id}/why", Access::Viewer, why)
            .says("Why a job is not running, or what it is doing")
            .answers::<Why>(200)
            .refuses(&["not-found"]),
    ]
}

/// Everything that bears on a job.
struct Facts {
    job: Job,
    now: Timestamp,
    /// Parents that have not ended.
    parents: Vec<Job>,
    /// Jobs that have a place under its concurrency key.
    rivals: Vec<JobId>,
    workers: Vec<Worker>,
    /// Jobs before it in its lane, counted no further than [`AHEAD_MAX`].
    ahead: usize,
}

async fn why(State(app): State<App>, ask: Ask, Path(id): Path<Uuid>) -> Result<Answer<Why>, Problem> {
    let key = JobKey::new(&ask.namespace, JobId(id));
    let job = app.engine.store().job(&key).await?.ok_or_else(|| Problem::not_found("job", id))?;
    Ok(ok(explain(&gather(&app, job).await?)))
}

async fn gather(app: &App, job: Job) -> Result<Facts, Problem> {
    let mut facts = Facts {
        now: app.engine.now().await?,
        parents: Vec::new(),
        rivals: Vec::new(),
        workers: Vec::new(),
        ahead: 0,
        job,
    };
    match facts.job.state {
        JobState::Blocked if facts.job.live.waiting > 0 => facts.parents = parents(app, &facts.job).await?,
        JobState::Blocked => facts.rivals = rivals(app, &facts.job).await?,
        JobState::Pending => {
            facts.workers = workers(app, &facts.job).await?;
            facts.ahead = app.engine.store().ahead(&facts.job, AHEAD_MAX).await?;
        }
        _ => {}
    }
    Ok(facts)
}

async fn parents(app: &App, job: &Job) -> Result<Vec<Job>, Problem> {
    let mut open = Vec::new();
    for &id in &job.spec.parents {
        let mut parent = app.engine.store().job(&JobKey::new(&job.key.namespace, id)).await?;
        // Whoever waits for a job that is retried as another one waits for that one.
        while let Some(next) = parent.as_ref().and_then(|parent| parent.live.retry_job) {
            parent = app.engine.store().job(&JobKey::new(&job.key.namespace, next)).await?;
        }
        open.extend(parent.filter(|parent| !parent.state.is_final()));
        if open.len() > NAMED_MAX {
            break;
        }
    }
    Ok(open)
}

async fn rivals(app: &App, job: &Job) -> Result<Vec<JobId>, Problem> {
    let Some(own) = &job.spec.concurrency else { return Ok(Vec::new()) };
    let query = JobQuery {
        namespace: Some(job.key.namespace.clone()),
        states: vec![JobState::Pending, JobState::Claimed, JobState::Running],
        limit: LOOK_MAX,
        ..JobQuery::default()
    };
    let found = app.engine.store().jobs(&query).await?;
    let holds = |job: &&Job| job.live.slot && job.spec.concurrency.as_ref().is_some_and(|key| key.key == own.key);
    Ok(found.iter().filter(holds).map(|job| job.key.id).collect())
}

async fn workers(app: &App, job: &Job) -> Result<Vec<Worker>, Problem> {
    let query = RecordQuery {
        namespace: job.key.namespace.clone(),
        kind: Worker::KIND.into(),
        parent: None,
        facet: None,
        after: None,
        limit: LOOK_MAX,
    };
    let found = app.engine.store().records(&query).await?;
    Ok(found.iter().filter_map(|record| serde_json::from_str(&record.value).ok()).collect())
}

fn explain(facts: &Facts) -> Why {
    let reasons = match facts.job.state {
        JobState::Completed | JobState::Failed | JobState::Cancelled | JobState::Skipped => vec![ended(&facts.job)],
        JobState::Claimed | JobState::Running => vec![running(facts)],
        JobState::Scheduled => vec![scheduled(&facts.job)],
        JobState::Blocked if facts.job.live.waiting == 1 && facts.job.live.hold.is_some() => vec![held(&facts.job)],
        JobState::Blocked if facts.job.live.waiting > 0 => vec![waits_for_jobs(facts)],
        JobState::Blocked => vec![concurrency_full(facts)],
        JobState::Pending => pending(facts),
    };
    Why {
        job: facts.job.key.id.0,
        state: convert::state(facts.job.state),
        summary: reasons.first().map(|cause| cause.text.clone()).unwrap_or_default(),
        reasons,
    }
}

fn cause(code: &str, text: String) -> Cause {
    Cause { code: code.into(), text, jobs: Vec::new(), workers: Vec::new() }
}

fn ended(job: &Job) -> Cause {
    let at = job.live.finished_at.map(|at| format!(" at {}", text(at))).unwrap_or_default();
    let why = match job.live.outcome.as_ref().filter(|_| job.state != JobState::Completed) {
        Some(outcome) if !outcome.message.is_empty() => format!(": {}", outcome.message),
        _ => String::new(),
    };
    let mut cause = cause("ended", format!("The job ended {}{at}{why}.", job.state.name()));
    if let Some(next) = job.live.retry_job {
        cause.text += &format!(" It is tried again as {next}.");
        cause.jobs.push(next.0);
    }
    cause
}

/// A step of a run that waits for no other step.
fn held(job: &Job) -> Cause {
    let wait = job.spec.stage.wait.as_ref();
    let until = job.live.hold_until.map(|at| format!(", until {} at the latest", text(at))).unwrap_or_default();
    match (job.live.hold, wait.and_then(|wait| wait.event.as_ref())) {
        (Some(Hold::Event), Some(event)) => cause("waits_for_event", format!("It waits for the event {event}{until}.")),
        (Some(Hold::Event), None) if wait.is_some_and(|wait| wait.approval) => {
            cause("waits_for_approval", format!("It waits for somebody's approval{until}."))
        }
        (Some(Hold::Event), None) => cause("waits_for_time", format!("It waits for a time{until}.")),
        _ => cause("waits_for_plan", "It is its turn; the planner decides what becomes of it.".into()),
    }
}

fn running(facts: &Facts) -> Cause {
    let job = &facts.job;
    let worker = job.holder().map(ToString::to_string).unwrap_or_default();
    let since = job.live.claimed_at.map(|at| format!(" since {}", text(at))).unwrap_or_default();
    let until = match job.live.lease.as_ref().and_then(|lease| lease.until) {
        Some(until) if until <= facts.now => format!("; its lease ran out at {} and will be taken away", text(until)),
        Some(until) => format!("; its lease holds until {}", text(until)),
        None => "; its lease holds as long as the worker is alive".into(),
    };
    let cancel = job.live.cancel.as_ref().map(|cancel| format!("; {} asked for its end", cancel.by));
    let words = format!("{worker} works on it{since}{until}{}.", cancel.unwrap_or_default());
    Cause { workers: vec![worker], ..cause("running", words) }
}

fn scheduled(job: &Job) -> Cause {
    let at = job.live.run_at.map(text).unwrap_or_default();
    let after = match job.live.attempt {
        0 => String::new(),
        attempt => format!(", after attempt {attempt} did not succeed"),
    };
    cause("scheduled", format!("It waits for its time, {at}{after}."))
}

fn waits_for_jobs(facts: &Facts) -> Cause {
    // What holds a step back beside others counts among what it waits for.
    let count = facts.job.live.waiting - u32::from(facts.job.live.hold.is_some());
    let named: Vec<String> =
        facts.parents.iter().take(3).map(|job| format!("{} ({})", job.key.id, job.state.name())).collect();
    let jobs = if count == 1 { "another job".to_owned() } else { format!("{count} other jobs") };
    let words =
        format!("It waits for {jobs} to end: {}{}.", named.join(", "), if count > 3 { " and others" } else { "" });
    let jobs = facts.parents.iter().take(NAMED_MAX).map(|job| job.key.id.0).collect();
    Cause { jobs, ..cause("waits_for_jobs", words) }
}

fn concurrency_full(facts: &Facts) -> Cause {
    let key = facts.job.spec.concurrency.as_ref();
    let (name, limit) = key.map_or((String::new(), 0), |key| (key.key.to_string(), key.limit));
    let words = format!("Its concurrency key {name:?} lets {limit} through at a time, and they are taken or promised.");
    let jobs = facts.rivals.iter().take(NAMED_MAX).map(|id| id.0).collect();
    Cause { jobs, ..cause("concurrency_full", words) }
}

fn pending(facts: &Facts) -> Vec<Cause> {
    let required = &facts.job.spec.tags;
    let able: Vec<&Worker> = facts.workers.iter().filter(|worker| required.subset_of(&worker.tags)).collect();
    let ready = able.iter().any(|worker| !worker.draining && worker.liveness(facts.now) == Liveness::Online);
    let mut causes = Vec::new();
    if able.is_empty() {
        causes.push(no_worker_offers(facts));
    } else if !ready {
        causes.push(workers_offline(facts, &able));
    }
    if facts.ahead > 0 {
        let more = if facts.ahead >= AHEAD_MAX { "at least " } else { "" };
        let words = format!("{more}{} jobs with the same tags go first.", facts.ahead);
        causes.push(cause("jobs_ahead", words));
    }
    if causes.is_empty() {
        causes.push(cause("ready", "It is next: the first worker that asks gets it.".into()));
    }
    causes
}

fn no_worker_offers(facts: &Facts) -> Cause {
    let required = &facts.job.spec.tags;
    if facts.workers.is_empty() {
        return cause("no_worker_offers", "No worker is registered in this namespace.".into());
    }
    let offered = |tag: &&str| !facts.workers.iter().any(|worker| worker.tags.contains(tag));
    let missing: Vec<&str> = required.iter().filter(offered).collect();
    let words = match missing.as_slice() {
        [] => {
            format!("No registered worker offers all of {} together.", required.iter().collect::<Vec<_>>().join(", "))
        }
        missing => format!("No registered worker offers {}.", missing.join(", ")),
    };
    cause("no_worker_offers", words)
}

fn workers_offline(facts: &Facts, able: &[&Worker]) -> Cause {
    let state = |worker: &Worker| match (worker.draining, worker.liveness(facts.now)) {
        (true, Liveness::Online) => format!("{} is draining", worker.id),
        (_, liveness) => format!("{} is {} since {}", worker.id, liveness.name(), text(worker.last_seen)),
    };
    let named: Vec<String> = able.iter().take(3).map(|worker| state(worker)).collect();
    let more = if able.len() > 3 { format!(" and {} others", able.len() - 3) } else { String::new() };
    let words = format!("Workers offer what it needs, but none of them takes jobs now: {}{more}.", named.join(", "));
    let workers = able.iter().take(NAMED_MAX).map(|worker| worker.id.to_string()).collect();
    Cause { workers, ..cause("workers_offline", words) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use windlass_core::{
        Lane, Lease, Millis, Namespace, Outcome, Reason, Spec, Tags, WorkerId,
        job::{CancelRequest, ConcurrencyKey, Live},
        policy::WorkerPolicy,
    };

    const NOW: Timestamp = Timestamp(1_763_208_000_000);

    fn job(state: JobState, tags: &[&str], live: Live) -> Job {
        let (namespace, tags) = (Namespace::default(), tags.iter().copied().collect::<Tags>());
        let concurrency = Some(ConcurrencyKey { key: "k".into(), limit: 2 });
        Job {
            lane: Lane::of(&namespace, &tags),
            key: JobKey::new(&namespace, JobId::from_u128(1)),
            priority: 0,
            seq: 0,
            state,
            due: None,
            spec: Arc::new(Spec { tags, concurrency, ..Spec::default() }),
            live,
        }
    }

    fn worker(name: &str, tags: &[&str], silent: i64, draining: bool) -> Worker {
        Worker {
            id: WorkerId::trusted(name),
            tags: tags.iter().copied().collect(),
            slots: 1,
            owner: None,
            registered_at: NOW,
            last_seen: Timestamp(NOW.0 - silent),
            declared: Liveness::Online,
            away: false,
            draining,
            policy: WorkerPolicy::default(),
            extra: None,
        }
    }

    fn facts(job: Job, workers: Vec<Worker>, ahead: usize) -> Facts {
        Facts { job, now: NOW, parents: Vec::new(), rivals: Vec::new(), workers, ahead }
    }

    fn told(facts: &Facts) -> (Vec<String>, String) {
        let why = explain(facts);
        (why.reasons.iter().map(|cause| cause.code.clone()).collect(), why.summary)
    }

    #[test]
    fn a_pending_job_waits_for_workers_or_for_its_turn() {
        let gpu = |silent, draining| worker("g", &["gpu"], silent, draining);
        let table: Vec<(Vec<Worker>, usize, &[&str], &str)> = vec![
            (vec![], 0, &["no_worker_offers"], "No worker is registered"),
            (vec![worker("c", &["cpu"], 0, false)], 0, &["no_worker_offers"], "offers gpu."),
            (vec![gpu(0, false)], 0, &["ready"], "It is next"),
            (vec![gpu(0, false)], 7, &["jobs_ahead"], "7 jobs"),
            (vec![gpu(0, false)], AHEAD_MAX, &["jobs_ahead"], "at least 1000 jobs"),
            (vec![gpu(600_000, false)], 0, &["workers_offline"], "g is offline since 2025-11-15T11:50:00.000Z"),
            (vec![gpu(0, true)], 3, &["workers_offline", "jobs_ahead"], "g is draining"),
            (vec![gpu(600_000, false), worker("h", &["gpu", "x"], 0, false)], 0, &["ready"], "It is next"),
        ];
        for (workers, ahead, codes, words) in table {
            let (found, summary) = told(&facts(job(JobState::Pending, &["gpu"], Live::default()), workers, ahead));
            assert_eq!(found, codes, "{summary}");
            assert!(summary.contains(words), "{summary}");
        }
        let both = job(JobState::Pending, &["cpu", "gpu"], Live::default());
        let apart = vec![worker("c", &["cpu"], 0, false), worker("g", &["gpu"], 0, false)];
        assert!(told(&facts(both, apart, 0)).1.contains("all of cpu, gpu together"));
    }

    #[test]
    fn every_other_state_says_what_it_is_about() {
        let lease = |until: i64| Lease {
            secret: Uuid::from_u128(9),
            worker: WorkerId::trusted("w"),
            principal: None,
            length: Millis(1),
            until: Some(NOW + Millis(until)),
            deadline: None,
        };
        let held = |until| Live { lease: Some(lease(until)), claimed_at: Some(NOW), ..Live::default() };
        let cancel = Some(CancelRequest { by: "ann".into(), at: NOW });
        let outcome = Some(Outcome::new(Reason::Reported, "no disk"));
        let table = [
            (JobState::Failed, Live { outcome, finished_at: Some(NOW), ..Live::default() }, "ended", "no disk"),
            (JobState::Completed, Live::default(), "ended", "ended completed"),
            (
                JobState::Running,
                held(5_000),
                "running",
                "w works on it since 2025-11-15T12:00:00.000Z; its lease holds until",
            ),
            (JobState::Claimed, held(-1), "running", "ran out"),
            (JobState::Running, Live { cancel, ..held(5_000) }, "running", "ann asked for its end"),
            (
                JobState::Scheduled,
                Live { run_at: Some(NOW), attempt: 1, ..Live::default() },
                "scheduled",
                "after attempt 1",
            ),
            (JobState::Blocked, Live { waiting: 1, ..Live::default() }, "waits_for_jobs", "another job"),
            (JobState::Blocked, Live { waiting: 4, ..Live::default() }, "waits_for_jobs", "4 other jobs"),
            (
                JobState::Blocked,
                Live { waiting: 1, hold: Some(Hold::Plan), ..Live::default() },
                "waits_for_plan",
                "turn",
            ),
            (
                JobState::Blocked,
                Live { waiting: 1, hold: Some(Hold::Event), ..Live::default() },
                "waits_for_time",
                "time",
            ),
            (
                JobState::Blocked,
                Live { waiting: 2, hold: Some(Hold::Plan), ..Live::default() },
                "waits_for_jobs",
                "another job",
            ),
            (JobState::Blocked, Live::default(), "concurrency_full", "\"k\" lets 2 through"),
        ];
        for (state, live, code, words) in table {
            let (codes, summary) = told(&facts(job(state, &[], live), Vec::new(), 0));
            assert_eq!(codes, [code], "{summary}");
            assert!(summary.contains(words), "{summary}");
        }
    }
}
