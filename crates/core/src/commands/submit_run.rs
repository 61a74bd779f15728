//! Submit a run: a graph of jobs, all of them or none.

use super::{
    Decided,
    submit::{NewJob, check_new, check_size},
};
use crate::{
    desk::{Desk, Stop},
    model::{
        event::What,
        graph,
        id::{JobId, RunId},
        job::{DefinitionRef, Job, Node, State},
        keys::{JobKey, Keys},
        limits::Limits,
        name::{Namespace, check_name},
        policy::RetryForm,
        record,
        refusal::Refusal,
        reply::KnownRun,
        run::Run,
        stage::{self, EarlyPlan, Hold, PlanPart, RunIndex, Stage},
        time::Timestamp,
    },
    moves::{
        dependents, life,
        parents::{self, Heard, Verdict},
        steps,
    },
};
use std::{collections::HashMap, sync::Arc};

#[derive(Clone, Debug)]
pub struct SubmitRun {
    pub namespace: Namespace,
    pub id: RunId,
    pub owner: Option<Arc<str>>,
    pub definition: Option<DefinitionRef>,
    pub nodes: Vec<RunNode>,
    pub extra: Option<Arc<str>>,
    pub plan: RunPlan,
}

/// What a run has beside its jobs, if some of it is decided while it goes on.
#[derive(Clone, Debug, Default)]
pub struct RunPlan {
    /// Parts of what its planner works from that were kept before, by [`super::keep_part::KeepPart`].
    pub early: u32,
    /// The other parts; each fits a record.
    pub parts: Vec<Arc<str>>,
    /// Some of its steps can be undone.
    pub compensates: bool,
    pub retry_of: Option<RunId>,
    /// Kept at least until then, whatever the retention: the idempotency key it was started under lives so long, and
    /// whoever repeats the start is told what became of the run.
    pub keep_until: Option<Timestamp>,
}

/// One job of the graph. Its `parents` are filled in from `needs`.
#[derive(Clone, Debug)]
pub struct RunNode {
    pub name: Arc<str>,
    pub needs: Vec<Arc<str>>,
    pub job: NewJob,
}

impl RunNode {
    pub(crate) fn weight(&self) -> usize {
        self.job.weight() + self.needs.len() * 64
    }
}

impl SubmitRun {
    /// Nobody's, of no definition, and all of it decided when it is submitted.
    pub fn new(namespace: Namespace, id: RunId, nodes: Vec<RunNode>) -> Self {
        Self { namespace, id, owner: None, definition: None, nodes, extra: None, plan: RunPlan::default() }
    }

    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Run>(&self.namespace, &self.id.to_string()), true);
        keys.want_record(record::key_of::<RunIndex>(&self.namespace, &stage::index_key(self.id)), true);
        if self.plan.early > 0 {
            keys.want_record(record::key_of::<EarlyPlan>(&self.namespace, &self.id.to_string()), true);
        }
        for (part, _) in self.parts() {
            keys.want_record(record::key_of::<PlanPart>(&self.namespace, &stage::part_key(self.id, part)), true);
        }
        for node in &self.nodes {
            node.job.keys(&self.namespace, keys);
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<KnownRun> {
        let plan = self.plan(desk)?;
        let key = self.id.to_string();
        if desk.get::<Run>(&self.namespace, &key)?.is_some() {
            return Err(Refusal::Exists { what: "run", name: key }.into());
        }
        let total = self.nodes.len() as u32;
        let kept = self.nodes.iter().filter(|node| node.job.kept.is_some()).count() as u32;
        let run = Run {
            created_at: desk.now(),
            owner: self.owner.clone(),
            definition: self.definition.clone(),
            finished_at: None,
            total,
            open: total - kept,
            completed: kept,
            failed: 0,
            cancelled: 0,
            skipped: 0,
            cancel: None,
            purge_at: None,
            keep_until: self.plan.keep_until,
            compensates: self.plan.compensates,
            undone: false,
            retry_of: self.plan.retry_of,
            extra: self.extra.clone(),
        };
        desk.put(&self.namespace, &key, &run)?;
        self.take_early(desk)?;
        self.put_beside(desk)?;
        desk.tell(&self.namespace, What::RunStarted { run: self.id });
        plan.make_jobs(desk, &self.namespace, self.id, None)?;
        Ok(Ok(KnownRun { id: self.id, run: Box::new(run) }))
    }

    /// The parts that are new, each with its number.
    fn parts(&self) -> impl Iterator<Item = (usize, &Arc<str>)> {
        (self.plan.early as usize..).zip(&self.plan.parts)
    }

    /// From here on, the parts that were kept before are this run's.
    fn take_early(&self, desk: &mut Desk) -> Result<(), Stop> {
        if self.plan.early == 0 {
            return Ok(());
        }
        let key = self.id.to_string();
        let kept = desk.get::<EarlyPlan>(&self.namespace, &key)?.map_or(0, |early| early.parts);
        if kept != self.plan.early {
            let why = format!("{kept} of its {} parts are kept; start the run again", self.plan.early);
            return Err(Refusal::invalid("plan", why).into());
        }
        desk.remove::<EarlyPlan>(&self.namespace, &key)
    }

    fn put_beside(&self, desk: &mut Desk) -> Result<(), Stop> {
        let workflow = self.definition.as_ref().map(|definition| definition.name.clone());
        desk.put(&self.namespace, &stage::index_key(self.id), &RunIndex { run: self.id, workflow })?;
        for (at, text) in self.parts() {
            let part = PlanPart { run: self.id, text: text.clone() };
            desk.put(&self.namespace, &stage::part_key(self.id, at), &part)?;
        }
        Ok(())
    }

    fn plan(&self, desk: &Desk) -> Result<Nodes<'_>, Refusal> {
        let limits = desk.limits();
        if self.nodes.is_empty() {
            return Err(Refusal::invalid("nodes", "a run needs at least one job".into()));
        }
        if self.nodes.iter().all(|node| node.job.kept.is_some()) {
            return Err(Refusal::invalid("nodes", "a run needs at least one job that is not done".into()));
        }
        check_size("extra", self.extra.as_ref().map_or(0, |extra| extra.len()), limits.extra_bytes_max)?;
        for part in &self.plan.parts {
            check_size("plan", part.len(), limits.record_bytes_max)?;
        }
        check_size("plan", self.plan.early as usize + self.plan.parts.len(), limits.nodes_max)?;
        self.owner.as_ref().map_or(Ok(()), |owner| check_name("owner", owner, &limits))?;
        Nodes::check(&self.nodes, &limits)
    }
}

/// Nodes that can run to their end.
pub(crate) struct Nodes<'a> {
    nodes: &'a [RunNode],
    /// By position, without repetitions.
    parents: Vec<Vec<usize>>,
    /// Items and steps of a staged node that are there from the start, since they were in the run that is retried.
    members: Vec<Vec<usize>>,
}

impl<'a> Nodes<'a> {
    /// Checks the graph in time linear to its size.
    pub fn check(nodes: &'a [RunNode], limits: &Limits) -> Result<Self, Refusal> {
        check_size("nodes", nodes.len(), limits.nodes_max)?;
        let mut by_name: HashMap<&str, usize> = HashMap::with_capacity(nodes.len());
        let mut ids: HashMap<JobId, &str> = HashMap::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            check_name("nodes.name", &node.name, limits)?;
            node.job.check(limits)?;
            check_node(node, limits)?;
            if by_name.insert(&node.name, at).is_some() {
                return Err(Refusal::invalid("nodes.name", format!("{:?} is used twice", node.name)));
            }
            if let Some(other) = ids.insert(node.job.id, &node.name) {
                return Err(Refusal::invalid(
                    "nodes.job",
                    format!("{other:?} and {:?} have the same job id", node.name),
                ));
            }
        }
        let mut parents = Vec::with_capacity(nodes.len());
        let mut members = vec![Vec::new(); nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            check_size("nodes.needs", node.needs.len(), limits.parents_max)?;
            let mut needs = Vec::with_capacity(node.needs.len());
            for need in &node.needs {
                needs.push(*by_name.get(&**need).ok_or_else(|| {
                    Refusal::invalid("nodes.needs", format!("{:?} needs {need:?}, which does not exist", node.name))
                })?);
            }
            needs.sort_unstable();
            needs.dedup();
            parents.push(needs);
            let owner = stage::owner(&node.name).and_then(|owner| by_name.get(owner));
            if let Some(&owner) = owner.filter(|&&owner| nodes[owner].job.stage.plan) {
                members[owner].push(at);
            }
        }
        // A payload is written once; that of a step with members is there already.
        let early = |at: &usize| members[*at].is_empty() && nodes[*at].job.kept.is_none();
        let early = |at: &usize| early(at) && nodes[*at].job.stage.plan && !nodes[*at].job.payload.is_empty();
        if let Some(at) = (0..nodes.len()).find(early) {
            let why = format!("{:?}: the planner brings the payload", nodes[at].name);
            return Err(Refusal::invalid("nodes.job.payload", why));
        }
        if let Some(cycle) = graph::cycle(&parents) {
            return Err(Refusal::Cycle { path: cycle.into_iter().map(|at| nodes[at].name.to_string()).collect() });
        }
        Ok(Self { nodes, parents, members })
    }

    fn is_kept(&self, at: usize) -> bool {
        self.nodes[at].job.kept.is_some()
    }

    /// In the order given, which is also the order in which equal ones queue. `behind`: waits for all of them.
    pub fn make_jobs(
        &self,
        desk: &mut Desk,
        namespace: &Namespace,
        run: RunId,
        behind: Option<&JobKey>,
    ) -> Result<(), Stop> {
        let mut waited_for = vec![behind.is_some(); self.nodes.len()];
        self.parents.iter().chain(&self.members).flatten().for_each(|&at| waited_for[at] = true);
        let mut jobs = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            check_new(desk, namespace, &node.job)?;
            let mut new = node.job.clone();
            new.parents = self.parents[at].iter().map(|&parent| self.nodes[parent].job.id).collect();
            let mut job = new.make(desk, namespace, Some(Node { run, name: node.name.clone() }));
            job.live.dependents = waited_for[at];
            self.hold(at, &mut job);
            jobs.push(job);
        }
        let mut ended = Vec::new();
        for (at, job) in jobs.into_iter().enumerate() {
            let waits = self.parents[at].iter().chain(&self.members[at]).filter(|&&parent| !self.is_kept(parent));
            for &parent in waits.filter(|_| !self.is_kept(at)) {
                desk.put_edge(&JobKey::new(namespace, self.nodes[parent].job.id), &job.key);
            }
            if let Some(behind) = behind {
                desk.put_edge(&job.key, behind);
            }
            ended.extend(self.enter(desk, at, job)?);
        }
        dependents::pass_on(desk, ended)
    }

    /// How much the job waits for.
    fn hold(&self, at: usize, job: &mut Job) {
        let open = |of: &[usize]| of.iter().filter(|&&parent| !self.is_kept(parent)).count() as u32;
        job.live.hold = match &job.spec.stage {
            Stage { plan: true, .. } if !self.members[at].is_empty() => Some(Hold::Members),
            Stage { plan: true, .. } => Some(Hold::Plan),
            Stage { wait: Some(_), .. } => Some(Hold::Event),
            _ => None,
        };
        job.live.waiting = open(&self.parents[at]) + open(&self.members[at]) + u32::from(job.live.hold.is_some());
    }

    fn enter(&self, desk: &mut Desk, at: usize, mut job: Job) -> Result<Option<Job>, Stop> {
        let new = &self.nodes[at].job;
        desk.tell(&job.key.namespace, What::Submitted { job: job.key.id });
        // The planner brings the others.
        if !new.stage.plan || !new.payload.is_empty() {
            desk.put_payload(&job.key, new.payload.clone());
        }
        if let Some(result) = &new.kept {
            (job.live.hold, job.live.waiting, job.live.run_at) = (None, 0, None);
            (job.state, job.live.finished_at, job.live.kept) = (State::Completed, Some(desk.now()), true);
            if !result.is_empty() {
                desk.put_result(&job.key, result.clone());
                job.live.has_result = true;
            }
            desk.tell(&job.key.namespace, What::Completed { job: job.key.id });
            desk.put_job(job);
            return Ok(None);
        }
        if self.is_needless(at, &job) {
            let outcome = life::needless(&job.live);
            return life::close(desk, job, State::Skipped, Some(outcome)).map(Some);
        }
        if job.live.hold.is_some() && job.live.waiting == 1 {
            return steps::turn(desk, job);
        }
        life::queue(desk, &mut job)?;
        desk.put_job(job);
        Ok(None)
    }
}

impl Nodes<'_> {
    /// All that it needs was done in the run that is retried, and it is there for failures only.
    fn is_needless(&self, at: usize, job: &Job) -> bool {
        let verdict = parents::verdict(job.spec.policy.parents, Heard::of(&job.live));
        !self.parents[at].is_empty() && self.members[at].is_empty() && matches!(verdict, Verdict::Skip(_))
    }
}

fn check_node(node: &RunNode, limits: &Limits) -> Result<(), Refusal> {
    if !node.job.parents.is_empty() {
        return Err(Refusal::invalid("nodes.job.parents", format!("{:?}: use needs inside a run", node.name)));
    }
    if node.job.unique.is_some() {
        let why = format!("{:?}: a job of a run is unique by its node", node.name);
        return Err(Refusal::invalid("nodes.job.unique", why));
    }
    match node.job.policy.retry.form {
        // Its copies have longer names.
        RetryForm::NewJob => check_name("nodes.name", &stage::copy_name(&node.name, limits.attempts_max), limits),
        RetryForm::SameJob => Ok(()),
    }
}
