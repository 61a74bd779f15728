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
        life,
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

    fn plan(&self, desk: &Desk) -> Result<Graph<'_>, Refusal> {
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
        Graph::check(&self.nodes, &limits)
    }
}

/// Nodes that can run to their end.
pub(crate) struct Graph<'a> {
    nodes: &'a [RunNode],
    /// By position, without repetitions.
    parents: Vec<Vec<usize>>,
    /// Items and steps of a staged node that are there from the start, since they were in the run that is retried.
    members: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
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
        life::pass_on(desk, ended)
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

impl Graph<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, after, code, graph, once},
        model::{
            job::{State, UniqueKey, UniqueUntil},
            policy::ParentPolicy,
            run::RunState,
            time::Millis,
        },
    };

    fn run(story: &Story) -> Run {
        story.typed(&RunId::from_u128(1).to_string()).expect("there is a run")
    }

    type Names<'a> = &'a [&'a str];
    type Case<'a> = (Names<'a>, Names<'a>, Names<'a>, &'a str, RunState);

    /// Which nodes fail or run anyway, and how everything ends.
    #[test]
    fn a_graph_runs_to_its_end() {
        let diamond = ["a", "b: a", "c: a", "d: b c"];
        let table: &[Case] = &[
            (&diamond, &[], &[], "completed completed completed completed", RunState::Completed),
            (&diamond, &["a"], &[], "failed skipped skipped skipped", RunState::Failed),
            (&diamond, &["b"], &[], "completed failed completed skipped", RunState::Failed),
            (&diamond, &["b"], &["d"], "completed failed completed completed", RunState::Failed),
            (&diamond, &["a"], &["d"], "failed skipped skipped completed", RunState::Failed),
            (&["c: a b", "a", "b"], &["a"], &[], "skipped failed completed", RunState::Failed),
            (&["a: a2 a2", "a2"], &[], &[], "completed completed", RunState::Completed),
        ];
        for (lines, fails, anyway, expected, state) in table {
            let mut story = Story::new();
            let shape = |name: &str, job: &mut NewJob| {
                if anyway.contains(&name) {
                    job.policy.parents = ParentPolicy::RunAnyway;
                }
            };
            story.run(graph(1, lines, shape)).unwrap();
            while let Some(&lease) = story.claims("w", 1).first() {
                let name = story.tables.jobs.values().find(|job| job.key.id == lease.job).unwrap();
                let name = name.spec.node.as_ref().unwrap().name.clone();
                let answer = if fails.contains(&&*name) { story.fail(lease) } else { story.complete(lease) };
                answer.unwrap();
            }
            assert_eq!(story.states(lines.len() as u128).join(" "), *expected, "{lines:?}, {fails:?} fail");
            assert_eq!(run(&story).state(), *state);
        }
    }

    #[test]
    fn a_node_that_cancels_the_run_cancels_what_other_nodes_would_still_do() {
        // All of them wait for `a`; whatever order they are looked at, the run is cancelled once and stays so.
        for cancelling in ["b", "c", "d"] {
            let mut story = Story::new();
            let shape = |name: &str, job: &mut NewJob| {
                job.policy.parents = match name {
                    _ if name == cancelling => ParentPolicy::CancelRun,
                    "d" => ParentPolicy::RunAnyway,
                    _ => ParentPolicy::Skip,
                };
            };
            story.run(graph(1, &["a", "b: a", "c: a", "d: a", "e"], shape)).unwrap();
            let lease = story.claim("w");
            story.fail(lease).unwrap();
            assert_eq!(story.state(1), State::Failed);
            assert_eq!(story.state(5), State::Cancelled);
            let run = run(&story);
            assert_eq!((run.open, run.failed, run.cancelled + run.skipped), (0, 1, 4), "each counted once");
            assert_eq!(story.events(None).iter().filter(|name| **name == "run_finished").count(), 1);
        }
    }

    #[test]
    fn graphs_that_cannot_run_are_refused_whole() {
        let plain = |_: &str, _: &mut NewJob| {};
        let table: Vec<(SubmitRun, &str)> = vec![
            (graph(1, &[], plain), "invalid"),
            (graph(1, &["a: a"], plain), "cycle"),
            (graph(1, &["x", "a: c x", "b: a", "c: b"], plain), "cycle"),
            (graph(1, &["a: nobody"], plain), "invalid"),
            (graph(1, &["a", "a"], plain), "invalid"),
            (graph(1, &["a", "b"], |_, job| job.id = JobId::from_u128(1)), "invalid"),
            (graph(1, &["a"], |_, job| job.id = JobId::from_u128(77)), "exists"),
            (graph(1, &["a"], |_, job| job.parents = vec![JobId::from_u128(77)]), "invalid"),
            (graph(1, &[&"a".repeat(255)], |_, job| job.policy.retry.form = RetryForm::NewJob), "too-large"),
            (graph(1, &["a"], |_, job| job.unique = Some(key())), "invalid"),
            (graph(9, &["a"], plain), "exists"),
            (SubmitRun { extra: Some("x".repeat(100_000).into()), ..graph(1, &["a"], plain) }, "too-large"),
        ];
        for (command, expected) in table {
            let mut story = Story::new();
            story.submit(once(77));
            story.run(graph(9, &["a"], |_, job| job.id = JobId::from_u128(78))).unwrap();
            let before = story.tables.events.len();
            assert_eq!(code(&story.run(command.clone())), expected, "{command:?}");
            assert_eq!((story.tables.events.len(), story.tables.jobs.len()), (before, 2), "nothing is left of it");
        }
    }

    fn key() -> UniqueKey {
        UniqueKey { key: "u".into(), body_hash: "h".into(), until: UniqueUntil::Final }
    }

    #[test]
    fn a_cycle_is_told_by_its_path() {
        let answer = Story::new().run(graph(1, &["x", "a: c x", "b: a", "c: b"], |_, _| {}));
        let Err(Refusal::Cycle { path }) = answer else { panic!("{answer:?}") };
        assert_eq!((path.len(), path.first(), path.contains(&"x".to_string())), (4, path.last(), false));
    }

    /// A wide or a deep graph: `0` before all.
    fn large(count: usize, deep: bool) -> SubmitRun {
        let node = |at: usize| {
            let needs = match at {
                0 => vec![],
                _ if deep => vec![(at - 1).to_string()],
                _ => vec!["0".to_string()],
            };
            let needs = needs.into_iter().map(Into::into).collect();
            RunNode { name: at.to_string().into(), needs, job: once(at as u128 + 1) }
        };
        SubmitRun { nodes: (0..count).map(node).collect(), ..graph(1, &[], |_, _| {}) }
    }

    /// Rows that are loaded until a run of so many jobs has ended, and how often some are asked for.
    fn cost(count: usize, deep: bool) -> usize {
        let mut story = Story::new();
        story.run(large(count, deep)).unwrap();
        let mut completed = 0;
        while completed < count {
            let claim = story.claim_command("w", 500);
            let claimed = story.tables.run(story.now, vec![claim.into()]).remove(0);
            let leases: Vec<_> = crate::commands::testing::leases(&claimed).iter().map(|leased| leased.lease).collect();
            completed += leases.len();
            assert!(!leases.is_empty(), "{completed} completed");
            let holder = |lease| crate::commands::holder::Holder::lease(&story.namespace(), lease);
            let complete = |lease| crate::commands::complete::Complete { holder: holder(lease), result: "1".into() };
            let commands = leases.into_iter().map(|lease| complete(lease).into()).collect();
            story.tables.run(story.now, commands);
        }
        assert_eq!(run(&story).state(), RunState::Completed);
        story.tables.loaded_jobs + story.tables.loads
    }

    #[test]
    fn a_large_run_takes_work_in_proportion() {
        for deep in [false, true] {
            let (small, large) = (cost(300, deep), cost(3_000, deep));
            assert!(large < small * 12, "{small} for 300 jobs, {large} for 3,000; deep: {deep}");
        }
    }

    #[test]
    fn a_failure_at_the_root_skips_a_large_run_in_few_round_trips() {
        for deep in [false, true] {
            let mut story = Story::new();
            story.run(large(10_000, deep)).unwrap();
            let lease = story.claim("w");
            let before = story.tables.loads;
            story.fail(lease).unwrap();
            assert!(story.tables.loads - before < 12, "deep: {deep}, {} loads", story.tables.loads - before);
            story.sweep();
            let run = run(&story);
            assert_eq!((run.state(), run.skipped, run.open), (RunState::Failed, 9_999, 0), "deep: {deep}");
        }
    }

    #[test]
    fn a_failure_that_few_wait_for_loads_few_rows() {
        let lines: Vec<String> = (0..400).flat_map(|at| [format!("a{at}"), format!("b{at}: a{at}")]).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut story = Story::new();
        story.run(graph(1, &lines, |_, _| {})).unwrap();
        let leases = story.claims("w", 400);
        let before = story.tables.loaded_jobs;
        leases.into_iter().for_each(|lease| drop(story.fail(lease).unwrap()));
        assert!(story.tables.loaded_jobs - before <= 400 * 3, "{}", story.tables.loaded_jobs - before);
        assert_eq!(run(&story).state(), RunState::Failed);
    }

    #[test]
    fn jobs_outside_may_wait_for_a_job_of_a_run() {
        let mut story = Story::new();
        story.run(graph(1, &["a", "b: a"], |_, _| {})).unwrap();
        story.submit(after(10, &[2]));
        let lease = story.claim("w");
        story.fail(lease).unwrap();
        assert_eq!(story.state(10), State::Skipped);
    }

    #[test]
    fn a_run_outlives_the_key_it_was_started_under() {
        let mut story = Story::new();
        story.tables.limits.retention = Millis(1_000);
        let keep_until = Some(story.now + Millis(5_000));
        let plan = RunPlan { keep_until, ..RunPlan::default() };
        story.run(SubmitRun { plan, ..graph(1, &["a"], |_, _| {}) }).unwrap();
        let lease = story.claim("w");
        story.fail(lease).unwrap();
        story.wait(4_999);
        story.sweep();
        assert_eq!(run(&story).state(), RunState::Failed);
        story.wait(1);
        story.sweep();
        assert!(story.typed::<Run>(&RunId::from_u128(1).to_string()).is_none());
    }

    #[test]
    fn what_is_there_for_failures_does_not_run_behind_steps_that_were_kept() {
        let mut story = Story::new();
        let shape = |name: &str, job: &mut NewJob| match name {
            "a" => job.kept = Some("1".into()),
            "alarm" => job.policy.parents = ParentPolicy::OnFailure,
            _ => {}
        };
        story.run(graph(1, &["a", "alarm: a", "b", "calm: alarm"], shape)).unwrap();
        assert_eq!(story.states(4), ["completed", "skipped", "pending", "skipped"]);
        assert!(story.job(1).live.kept && !story.job(2).live.kept);
    }
}
