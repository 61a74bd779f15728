//! Decides the steps whose turn has come.
//!
//! Turns are records, written by the transaction that ends a job, so whoever finds one may decide it: this server at once,
//! because it is woken, or any server later, because it looks. Of two that decide the same turn the second changes nothing.
//! An idle planner waits and reads nothing.

use super::{jobs, start};
use crate::{app::App, problem::Problem};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};
use windlass_core::{
    Job, JobId, JobKey, Namespace, Payload, Reason, RunId, State,
    commands::{
        advance::{Advance, Move},
        submit_run::RunNode,
    },
    record::Kind,
    stage::{self, Hold, PlanPart, Turn},
};
use windlass_engine::{Error, ids, store::RecordQuery};
use windlass_plan::plan::{self, Asked, Bundle, Done, Fact, Facts, Plan};

const PAGE: usize = 500;
/// Moves in one transaction.
const MOVES_MAX: usize = 200;
const MOVE_BYTES_MAX: usize = 8 << 20;
/// Where other servers may have left turns behind, they are found by looking.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// After a failure: the store is away.
const RETRY: Duration = Duration::from_secs(5);
/// Plans kept for the next turn of their run.
const PLANS_KEPT: usize = 64;

/// Plans of runs that were decided for lately. A run's plan never changes.
#[derive(Default)]
pub struct Plans(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    uses: u64,
    plans: HashMap<RunId, (u64, Arc<Plan>)>,
}

impl Plans {
    fn get(&self, run: RunId) -> Option<Arc<Plan>> {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.uses += 1;
        let now = kept.uses;
        let (used, plan) = kept.plans.get_mut(&run)?;
        *used = now;
        Some(plan.clone())
    }

    fn put(&self, run: RunId, plan: Arc<Plan>) {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.plans.len() >= PLANS_KEPT {
            let oldest = kept.plans.iter().min_by_key(|(_, (used, _))| *used).map(|(run, _)| *run);
            oldest.and_then(|oldest| kept.plans.remove(&oldest));
        }
        let now = kept.uses;
        kept.plans.insert(run, (now, plan));
    }
}

/// Runs until it is aborted.
pub async fn run(app: App) {
    loop {
        let waiter = app.engine.planner();
        let again = match tick(&app).await {
            Ok(left) => (left > 0).then_some(RETRY),
            Err(problem) => {
                tracing::warn!(problem = %problem.0, "runs could not be planned");
                Some(RETRY)
            }
        };
        let shared = app.engine.settings().poll_every.map(|_| LOOK_EVERY);
        let until = [again, shared].into_iter().flatten().min().map(|wait| Instant::now() + wait);
        tokio::select! {
            () = waiter.woken() => waiter.used(),
            () = sleep(until) => {}
        }
    }
}

/// For ever, where there is nothing to wait for.
async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Decides all there is. How many turns are left, because something went wrong with them.
pub async fn tick(app: &App) -> Result<usize, Problem> {
    loop {
        let (mut done, mut left, mut after) = (0, 0, None);
        loop {
            let turns = turns(app, after.take()).await?;
            let Some((last, _)) = turns.last() else { break };
            after = Some(last.clone());
            for ((namespace, run), jobs) in by_run(turns) {
                let count = jobs.len();
                match advance(app, &namespace, run, jobs).await {
                    Ok(decided) => done += decided,
                    Err(problem) => {
                        tracing::warn!(%namespace, %run, problem = %problem.0, "the run could not be planned");
                        left += count;
                    }
                }
            }
        }
        // What was decided may have brought the next turns.
        if done == 0 {
            return Ok(left);
        }
    }
}

async fn turns(app: &App, after: Option<Arc<str>>) -> Result<Vec<(Arc<str>, Turn)>, Problem> {
    let query = RecordQuery {
        namespace: stage::home(),
        kind: Turn::KIND.into(),
        parent: None,
        facet: None,
        after,
        limit: PAGE,
    };
    let found = app.engine.store().records(&query).await?;
    let turn = |text: &str| serde_json::from_str(text).map_err(|error| Problem::new("damaged", error.to_string()));
    found.into_iter().map(|record| Ok((record.key.key, turn(&record.value)?))).collect()
}

type Jobs = Vec<Option<JobId>>;

fn by_run(turns: Vec<(Arc<str>, Turn)>) -> BTreeMap<(Namespace, RunId), Jobs> {
    let mut found: BTreeMap<(Namespace, RunId), Jobs> = BTreeMap::new();
    for (_, turn) in turns {
        found.entry((turn.namespace, turn.run)).or_default().push(turn.job);
    }
    found
}

/// How many turns were decided; others were over by the time they were looked at.
async fn advance(app: &App, namespace: &Namespace, run: RunId, turns: Jobs) -> Result<usize, Problem> {
    let plan = match load(app, namespace, run).await {
        // A store that is away is no reason to fail anybody.
        Err(problem) if problem.0.status == 503 => return Err(problem),
        plan => plan,
    };
    let mut done = 0;
    let empty = || Advance { namespace: namespace.clone(), run, moves: Vec::new(), undo: None };
    let mut advance = empty();
    let mut bytes = 0;
    for turn in turns {
        let Some(id) = turn else {
            advance.undo = Some(match &plan {
                Ok(plan) => undo(app, namespace, plan, run).await?,
                Err(_) => Vec::new(),
            });
            done += 1;
            continue;
        };
        let job = app.engine.store().job(&JobKey::new(namespace, id)).await?;
        let Some(hold) = in_turn(job.as_ref()) else { continue };
        let wanted = match (&plan, &job) {
            (Ok(plan), Some(job)) => decide(app, plan, job, hold).await?,
            (Err(problem), _) => Move::Fail { why: problem.0.to_string().into() },
            (Ok(_), None) => Move::Fail { why: "it is gone".into() },
        };
        bytes += size(&wanted);
        advance.moves.push((id, hold, wanted));
        done += 1;
        if advance.moves.len() >= MOVES_MAX || bytes >= MOVE_BYTES_MAX {
            apply(app, std::mem::replace(&mut advance, empty())).await?;
            bytes = 0;
        }
    }
    apply(app, advance).await?;
    Ok(done)
}

fn size(wanted: &Move) -> usize {
    match wanted {
        Move::Go { payload } => payload.len(),
        Move::Complete { result } => result.len(),
        Move::Skip { why } | Move::Fail { why } => why.len(),
        Move::Expand { nodes, payload } => {
            payload.len() + nodes.iter().map(|node| 512 + node.job.payload.len()).sum::<usize>()
        }
    }
}

/// What the rules refuse (a payload that came out too large) fails its step, and nobody else's.
async fn apply(app: &App, advance: Advance) -> Result<(), Problem> {
    if advance.moves.is_empty() && advance.undo.is_none() {
        return Ok(());
    }
    let refusal = match app.engine.run(advance.clone()).await {
        Ok(_) => return Ok(()),
        Err(Error::Refused(refusal)) => refusal,
        Err(error) => return Err(error.into()),
    };
    if advance.moves.len() + usize::from(advance.undo.is_some()) > 1 {
        let alone = |moves, undo| Advance { moves, undo, ..advance.clone() };
        for wanted in advance.moves.clone() {
            Box::pin(apply(app, alone(vec![wanted], None))).await?;
        }
        if advance.undo.is_some() {
            Box::pin(apply(app, alone(Vec::new(), advance.undo.clone()))).await?;
        }
        return Ok(());
    }
    tracing::warn!(run = %advance.run, %refusal, "what was planned was refused");
    let why: Arc<str> = refusal.to_string().into();
    let failed = advance.moves.iter().map(|(id, hold, _)| (*id, *hold, Move::Fail { why: why.clone() })).collect();
    let undo = advance.undo.as_ref().map(|_| Vec::new());
    app.engine.run(Advance { moves: failed, undo, ..advance }).await?;
    Ok(())
}

async fn load(app: &App, namespace: &Namespace, run: RunId) -> Result<Arc<Plan>, Problem> {
    if let Some(plan) = app.native.plans.get(run) {
        return Ok(plan);
    }
    let parts = parts(app, namespace, run).await?;
    let bundle = Bundle::join(parts.iter().map(|part| &**part)).map_err(|why| Problem::new("damaged", why))?;
    let plan = Arc::new(start::plan(app, namespace, &bundle, run).await?);
    app.native.plans.put(run, plan.clone());
    Ok(plan)
}

/// The pieces of a run's plan, in order.
pub async fn parts(app: &App, namespace: &Namespace, run: RunId) -> Result<Vec<Arc<str>>, Problem> {
    let mut query = RecordQuery {
        namespace: namespace.clone(),
        kind: PlanPart::KIND.into(),
        parent: Some(run.to_string().into()),
        facet: None,
        after: None,
        limit: 100,
    };
    let mut parts = Vec::new();
    loop {
        let found = app.engine.store().records(&query).await?;
        for record in &found {
            let part: PlanPart =
                serde_json::from_str(&record.value).map_err(|error| Problem::new("damaged", error.to_string()))?;
            parts.push(part.text);
        }
        match found.last() {
            Some(last) if found.len() == query.limit => query.after = Some(last.key.key.clone()),
            _ => return Ok(parts),
        }
    }
}

/// What holds a step back, if it is its turn indeed. From then on nothing that is looked at changes any more, but by somebody
/// who decides the same turn; whoever comes second is ignored. What has ended or is gone has no turn any more: its record goes
/// with an answer that nobody heeds.
fn in_turn(job: Option<&Job>) -> Option<Hold> {
    let Some(job) = job.filter(|job| !job.state.is_final()) else { return Some(Hold::Plan) };
    let turn = job.state == State::Blocked && job.live.waiting == 1;
    job.live.hold.filter(|hold| turn && *hold != Hold::Event)
}

async fn decide(app: &App, plan: &Arc<Plan>, job: &Job, hold: Hold) -> Result<Move, Problem> {
    let Some(node) = job.spec.node.clone().filter(|_| !job.state.is_final()) else {
        return Ok(Move::Fail { why: "its turn is over".into() });
    };
    let gathers = hold == Hold::Members;
    let facts = facts(app, plan, job, Asked { name: &node.name, job: job.key.id, gathers }).await?;
    let (plan, id, name) = (plan.clone(), job.key.id, node.name.clone());
    // Expressions may take a while, and a fault in them is theirs alone.
    let decided = tokio::task::spawn_blocking(move || {
        plan.decide(Asked { name: &name, job: id, gathers }, &facts, &mut ids::job_id)
    });
    let wanted = decided.await.unwrap_or_else(|_| Move::Fail { why: "its expressions cannot be worked out".into() });
    checked(app, job, wanted).await
}

/// What the step's definition says about payloads holds for those that were worked out, too.
async fn checked(app: &App, job: &Job, mut wanted: Move) -> Result<Move, Problem> {
    let namespace = &job.key.namespace;
    let fail = |problem: Problem| Move::Fail { why: format!("its payload does not fit: {}", problem.0).into() };
    match &mut wanted {
        Move::Go { payload } => {
            if let Some(definition) = &job.spec.definition {
                let definition = app.native.schemas.get(&app.engine, namespace, definition).await?;
                if let Err(problem) = definition.check_payload(payload) {
                    return Ok(fail(problem));
                }
            }
        }
        Move::Expand { nodes, .. } => {
            for node in nodes {
                node.job.owner = job.spec.owner.clone();
                if let Some(definition) = node.job.definition.as_ref().filter(|_| !node.job.stage.plan) {
                    let definition = app.native.schemas.get(&app.engine, namespace, definition).await?;
                    if let Err(problem) = definition.check_payload(&node.job.payload) {
                        return Ok(fail(problem));
                    }
                }
            }
        }
        Move::Skip { .. } | Move::Complete { .. } | Move::Fail { .. } => {}
    }
    Ok(wanted)
}

pub fn value(payload: &Payload) -> Value {
    serde_json::from_slice(payload.as_bytes()).unwrap_or_default()
}

async fn facts(app: &App, plan: &Plan, job: &Job, asked: Asked<'_>) -> Result<Facts, Problem> {
    let store = app.engine.store();
    let namespace = &job.key.namespace;
    let mut facts = Facts::default();
    if let Some(of) = job.spec.stage.of
        && let Some(body) = store.body(&JobKey::new(namespace, of)).await?
    {
        facts.of = (value(&body.payload), body.result.as_ref().map(value).unwrap_or_default());
    }
    let others = match asked.gathers {
        true => {
            let own = store.body(&job.key).await?.map(|body| value(&body.payload)).unwrap_or_default();
            plan::members(&own)
        }
        false => job.spec.parents.clone(),
    };
    let others: Vec<JobKey> = others.into_iter().map(|id| JobKey::new(namespace, id)).collect();
    let others = store.jobs_named(&others).await?;
    let named: Vec<(&Arc<str>, &Job)> =
        others.iter().filter_map(|job| Some((&job.spec.node.as_ref()?.name, job))).collect();
    let wanted = named.iter().filter(|(name, job)| job.live.has_result && plan.wants(asked, name));
    let wanted: Vec<JobKey> = wanted.map(|(_, job)| job.key.clone()).collect();
    let results: HashMap<JobKey, Payload> = store.results(&wanted).await?.into_iter().collect();
    facts.others.extend(named.into_iter().map(|(name, job)| Fact {
        name: name.to_string(),
        state: job.state,
        failure: failure(job),
        output: results.get(&job.key).map(value).unwrap_or_default(),
    }));
    Ok(facts)
}

/// A step that was not needed is no failure.
fn failure(job: &Job) -> bool {
    let needless = job.live.outcome.as_ref().is_some_and(|outcome| outcome.reason == Reason::NotNeeded);
    job.state != State::Completed && !needless
}

async fn undo(app: &App, namespace: &Namespace, plan: &Plan, run: RunId) -> Result<Vec<RunNode>, Problem> {
    let all = jobs(app, namespace, run).await?;
    let owner = all.first().and_then(|job| job.spec.owner.clone());
    let done = all.iter().filter(|job| job.state == State::Completed).filter_map(|job| {
        let name = job.spec.node.as_ref()?.name.to_string();
        Some(Done { name, job: job.key.id, at: job.live.finished_at.unwrap_or_default() })
    });
    let mut nodes = plan.undo(&done.collect::<Vec<_>>(), &mut ids::job_id);
    nodes.iter_mut().for_each(|node| node.job.owner = owner.clone());
    Ok(nodes)
}
