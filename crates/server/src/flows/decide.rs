//! Decides the turns of one run, one after the other, for a while.
//!
//! What is cheap is decided on the spot. What is not goes aside; and what could be dear enough to end the server is written
//! down before it is begun.

use super::{
    begun::{self, Begun},
    facts::{self, Stored},
    jobs, start,
};
use crate::{
    app::App,
    aside::Large,
    planned::Unit,
    problem::{Code, Problem, Result},
    schema::Part,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_core::{
    Job, JobId, JobKey, Namespace, RunId, State,
    commands::{
        advance::{Advance, Move},
        submit_run::RunNode,
    },
    record::Kind,
    stage::{Hold, PlanPart},
};
use windlass_engine::{Error, ids, records::Kept, store::RecordQuery};
use windlass_plan::{
    Budget, Meter,
    plan::{Bundle, Done, Plan, StepTurn},
};

/// Moves in one transaction.
const MOVES_MAX: usize = 200;
const MOVE_BYTES_MAX: usize = 8 << 20;
/// After so long the other runs have their turn.
const WHILE: Duration = Duration::from_secs(1);
/// Bytes of a plan that are read on the spot; and so many that reading them is written down first.
const PLAN_SMALL: usize = 16 << 10;
const PLAN_LARGE: usize = 1 << 20;

/// How many turns were decided; others were over by the time they were looked at, or are left for the next time.
pub async fn advance(app: &App, unit: Unit) -> Result<usize> {
    let Unit { namespace, run, jobs, .. } = unit;
    let turns = Turns { app, namespace: &namespace, run };
    let began = Instant::now();
    let (mut done, mut bytes, mut advance, mut plan) = (0, 0, turns.empty(), None);
    for turn in jobs {
        if done > 0 && (began.elapsed() > WHILE || app.drain.is_cancelled()) {
            break;
        }
        match turn {
            None => advance.undo = Some(turns.undo(&mut plan).await?),
            Some(id) => {
                let job = app.engine.store().job(&JobKey::new(&namespace, id)).await?;
                let Some(hold) = in_turn(job.as_ref()) else { continue };
                let (wanted, begun) = turns.decide(job.as_ref(), hold, &mut plan).await?;
                bytes += size(&wanted);
                advance.moves.push((id, hold, wanted));
                if let Some(begun) = begun {
                    // Written before the mark goes.
                    turns.end(begun, std::mem::replace(&mut advance, turns.empty())).await?;
                    bytes = 0;
                }
            }
        }
        done += 1;
        if advance.moves.len() >= MOVES_MAX || bytes >= MOVE_BYTES_MAX {
            turns.apply(std::mem::replace(&mut advance, turns.empty())).await?;
            bytes = 0;
        }
    }
    turns.apply(advance).await?;
    Ok(done)
}

/// What holds a step back, if it is its turn indeed. From then on nothing that is looked at changes any more, but by somebody
/// who decides the same turn; whoever comes second is ignored. What has ended or is gone has no turn any more: its record goes
/// with an answer that nobody heeds.
pub fn in_turn(job: Option<&Job>) -> Option<Hold> {
    let Some(job) = job.filter(|job| !job.state.is_final()) else { return Some(Hold::Plan) };
    let turn = job.state == State::Blocked && job.live.waiting == 1;
    job.live.hold.filter(|hold| turn && *hold != Hold::Event)
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

/// The store is away or full, or the server stops: nobody's fault, and to be tried again.
fn passes(problem: &Problem) -> bool {
    matches!(problem.0.status, 503 | 507)
}

fn fail(why: impl Into<Arc<str>>) -> Move {
    Move::Fail { why: why.into() }
}

type Planned = Result<Arc<Large<Plan>>>;

struct Turns<'a> {
    app: &'a App,
    namespace: &'a Namespace,
    run: RunId,
}

impl Turns<'_> {
    fn empty(&self) -> Advance {
        Advance { namespace: self.namespace.clone(), run: self.run, moves: Vec::new(), undo: None, strict: false }
    }

    /// What a turn may cost here.
    fn budget(&self) -> Budget {
        let settings = self.app.engine.settings();
        let most = Budget::default();
        Budget {
            payload: settings.limits.payload_bytes_max as u64,
            sent: most.sent.min(settings.queue_bytes_max as u64 / 4),
            ..most
        }
    }

    async fn decide(&self, job: Option<&Job>, hold: Hold, plan: &mut Option<Planned>) -> Result<(Move, Option<Begun>)> {
        let over = || Ok((fail("its turn is over"), None));
        // Of a run that was cancelled meanwhile, nothing is worked out.
        let Some(job) = job.filter(|job| !job.state.is_final()) else { return over() };
        let Some(node) = job.spec.node.clone() else { return over() };
        let plan = match self.plan(Some(job.key.id), plan).await? {
            Ok(plan) => plan,
            Err(problem) => return Ok((fail(problem.0.to_string()), None)),
        };
        let asked = StepTurn { name: &node.name, job: job.key.id, gathers: hold == Hold::Members };
        let decided = async {
            match facts::load(self.app, &plan, job, asked).await? {
                Err(why) => Ok((fail(why), None)),
                Ok(stored) => self.work_out(&plan, job, asked, stored).await,
            }
        };
        match decided.await {
            Err(problem) if !passes(&problem) => Ok((fail(problem.0.to_string()), None)),
            decided => decided,
        }
    }

    /// On the spot, then aside, then written down, as dear as it turns out to be.
    async fn work_out(
        &self,
        plan: &Arc<Large<Plan>>,
        job: &Job,
        asked: StepTurn<'_>,
        stored: Stored,
    ) -> Result<(Move, Option<Begun>)> {
        let budget = self.budget();
        if stored.room < budget.tiny().room {
            let meter = Meter::new(budget.tiny());
            let wanted = plan.decide(asked, &stored.read(), &mut ids::job_id, &meter);
            if !meter.is_over() {
                return Ok((self.checked(job, wanted).await?, None));
            }
        }
        if stored.room < budget.small().room {
            let (wanted, over) = self.aside(plan, asked, stored.clone(), budget.small()).await?;
            if !over {
                return Ok((self.checked(job, wanted).await?, None));
            }
        }
        let Some(begun) = begun::turn(self.app, self.namespace, self.run, Some(asked.job)).await? else {
            return Ok((fail(begun::why()), None));
        };
        let wanted = async {
            let (wanted, _) = self.aside(plan, asked, stored, budget).await?;
            self.checked(job, wanted).await
        };
        let wanted = tokio::select! {
            wanted = wanted => wanted,
            () = self.app.drain.cancelled() => Err(Problem::new(Code::Unavailable, "the server stops").retry_after(500)),
        };
        match wanted {
            Err(problem) => {
                begun.given_up().await;
                Err(problem)
            }
            Ok(wanted) => Ok((wanted, Some(begun))),
        }
    }

    async fn aside(
        &self,
        plan: &Arc<Large<Plan>>,
        asked: StepTurn<'_>,
        stored: Stored,
        budget: Budget,
    ) -> Result<(Move, bool)> {
        let (plan, name) = (plan.clone(), asked.name.to_owned());
        let (job, gathers) = (asked.job, asked.gathers);
        let work = move || {
            let meter = Meter::new(budget);
            let wanted = plan.decide(StepTurn { name: &name, job, gathers }, &stored.read(), &mut ids::job_id, &meter);
            (wanted, meter.is_over())
        };
        self.app.aside.run(self.namespace, work).await
    }

    /// What the step's definition says about payloads holds for those that were worked out, too.
    async fn checked(&self, job: &Job, mut wanted: Move) -> Result<Move> {
        let (app, namespace) = (self.app, self.namespace);
        let unfit = |problem: Problem| fail(format!("its payload does not fit: {}", problem.0));
        match &mut wanted {
            Move::Go { payload } => {
                let Some(definition) = &job.spec.definition else { return Ok(wanted) };
                let definition = app.schemas.get(namespace, definition).await?;
                match app.schemas.check(namespace, &definition, Part::Payload, payload).await {
                    Err(problem) if !passes(&problem) => Ok(unfit(problem)),
                    checked => checked.map(|()| wanted),
                }
            }
            Move::Expand { nodes, .. } => {
                nodes.iter_mut().for_each(|node| node.job.owner = job.spec.owner.clone());
                match start::check_payloads(app, namespace, nodes).await? {
                    Err((_, problem)) => Ok(unfit(problem)),
                    Ok(()) => Ok(wanted),
                }
            }
            Move::Skip { .. } | Move::Complete { .. } | Move::Fail { .. } => Ok(wanted),
        }
    }

    /// What undoes a run that failed. What cannot be worked out is not undone; the run ends.
    async fn undo(&self, plan: &mut Option<Planned>) -> Result<Vec<RunNode>> {
        let plan = match self.plan(None, plan).await? {
            Ok(plan) => plan,
            Err(problem) => {
                tracing::warn!(run = %self.run, problem = %problem.0, "the run is not compensated");
                return Ok(Vec::new());
            }
        };
        let Some(begun) = begun::turn(self.app, self.namespace, self.run, None).await? else {
            tracing::warn!(run = %self.run, why = &*begun::why(), "the run is not compensated");
            return Ok(Vec::new());
        };
        let undone = self.undo_with(&plan).await;
        match &undone {
            Ok(_) => begun.ended().await,
            Err(_) => begun.given_up().await,
        }
        undone
    }

    async fn undo_with(&self, plan: &Arc<Large<Plan>>) -> Result<Vec<RunNode>> {
        let all = jobs(self.app, self.namespace, self.run).await?;
        let owner = all.first().and_then(|job| job.spec.owner.clone());
        let done = all.iter().filter(|job| job.state == State::Completed).filter_map(|job| {
            let name = job.spec.node.as_ref()?.name.to_string();
            Some(Done { name, job: job.key.id, at: job.live.finished_at.unwrap_or_default() })
        });
        let (plan, done, budget): (_, Vec<Done>, _) = (plan.clone(), done.collect(), self.budget());
        let work = move || plan.undo(&done, &mut ids::job_id, &Meter::new(budget));
        let made = self.app.aside.run(self.namespace, work).await?;
        let mut nodes = made.unwrap_or_else(|why| {
            tracing::warn!(run = %self.run, why, "the run is not compensated");
            Vec::new()
        });
        nodes.iter_mut().for_each(|node| node.job.owner = owner.clone());
        Ok(nodes)
    }

    /// The run's plan, read once for all its turns. The inner error is the run's own.
    async fn plan(&self, job: Option<JobId>, known: &mut Option<Planned>) -> Result<Planned> {
        if let Some(known) = known {
            return Ok(known.clone());
        }
        match self.load(job).await {
            Err(problem) if passes(&problem) => Err(problem),
            loaded => Ok(known.insert(loaded).clone()),
        }
    }

    async fn load(&self, job: Option<JobId>) -> Planned {
        if let Some(plan) = self.app.plans.get(self.run) {
            return Ok(plan);
        }
        let parts = parts(self.app, self.namespace, self.run).await?;
        let bytes = parts.iter().map(|part| part.len()).sum();
        if bytes < PLAN_LARGE {
            return self.read(parts, bytes).await;
        }
        let Some(begun) = begun::turn(self.app, self.namespace, self.run, job).await? else {
            return Err(Problem::new(Code::Internal, &*begun::why()));
        };
        let read = self.read(parts, bytes).await;
        match &read {
            Err(problem) if passes(problem) => begun.given_up().await,
            _ => begun.ended().await,
        }
        read
    }

    async fn read(&self, parts: Vec<Arc<str>>, bytes: usize) -> Planned {
        let join = move || Bundle::join(parts.iter().map(|part| &**part));
        let bundle = if bytes < PLAN_SMALL { join() } else { self.app.aside.run(self.namespace, join).await? };
        let bundle = bundle.map_err(|why| Problem::new(Code::Damaged, why))?;
        let plan = Arc::new(start::plan(self.app, self.namespace, bundle, self.run).await?);
        self.app.plans.put(self.run, bytes, plan.clone());
        Ok(plan)
    }

    async fn end(&self, begun: Begun, advance: Advance) -> Result<()> {
        let applied = self.apply(advance).await;
        match applied {
            Ok(()) => begun.ended().await,
            Err(_) => begun.given_up().await,
        }
        applied
    }

    /// What the rules refuse (a run that got too many jobs) fails its step, and nobody else's.
    async fn apply(&self, advance: Advance) -> Result<()> {
        if advance.moves.is_empty() && advance.undo.is_none() {
            return Ok(());
        }
        let refusal = match self.app.engine.run(advance.clone()).await {
            Ok(_) => return Ok(()),
            Err(Error::Refused(refusal)) => refusal,
            Err(error) => return Err(error.into()),
        };
        if advance.moves.len() + usize::from(advance.undo.is_some()) > 1 {
            let alone = |moves, undo| Advance { moves, undo, ..advance.clone() };
            for wanted in advance.moves.clone() {
                Box::pin(self.apply(alone(vec![wanted], None))).await?;
            }
            if advance.undo.is_some() {
                Box::pin(self.apply(alone(Vec::new(), advance.undo.clone()))).await?;
            }
            return Ok(());
        }
        tracing::warn!(run = %advance.run, %refusal, "the planned steps were refused");
        let why: Arc<str> = refusal.to_string().into();
        let failed = advance.moves.iter().map(|(id, hold, _)| (*id, *hold, fail(why.clone()))).collect();
        let undo = advance.undo.as_ref().map(|_| Vec::new());
        self.app.engine.run(Advance { moves: failed, undo, ..advance }).await?;
        Ok(())
    }
}

/// The pieces of a run's plan, in order.
pub async fn parts(app: &App, namespace: &Namespace, run: RunId) -> Result<Vec<Arc<str>>> {
    let all = RecordQuery::all(namespace.clone(), PlanPart::KIND);
    let query = RecordQuery { parent: Some(run.to_string().into()), limit: 100, ..all };
    let mut parts = Vec::new();
    let push = |part: Kept<PlanPart>| {
        parts.push(part.value.text);
        true
    };
    app.engine.each_record(query, push).await?;
    Ok(parts)
}
