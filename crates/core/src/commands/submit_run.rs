//! Submit a run: a graph of jobs, all of them or none.

use super::{
    Decided,
    submit::{NewJob, check_new, check_size},
};
use crate::{
    desk::Desk,
    event::What,
    graph,
    id::{JobId, RunId},
    job::{DefinitionRef, Node},
    keys::Keys,
    life,
    name::{Namespace, check_name},
    policy::RetryForm,
    record,
    refusal::Refusal,
    reply::Reply,
    run::Run,
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
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<Run>(&self.namespace, &self.id.to_string()), true);
        for node in &self.nodes {
            node.job.keys(&self.namespace, keys);
        }
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided {
        let plan = self.plan(desk)?;
        let key = self.id.to_string();
        if desk.get::<Run>(&self.namespace, &key)?.is_some() {
            return Err(Refusal::Exists { what: "run", name: key }.into());
        }
        let total = self.nodes.len() as u32;
        let run = Run {
            created_at: desk.now(),
            owner: self.owner.clone(),
            definition: self.definition.clone(),
            finished_at: None,
            total,
            open: total,
            completed: 0,
            failed: 0,
            cancelled: 0,
            skipped: 0,
            cancel: None,
            purge_at: None,
            extra: self.extra.clone(),
        };
        desk.put(&self.namespace, &key, &run)?;
        desk.tell(&self.namespace, What::RunStarted { run: self.id });
        self.make_jobs(desk, &plan)?;
        Ok(Ok(Reply::Run { id: self.id, run: Box::new(run) }))
    }

    /// In the order given, which is also the order in which equal ones queue.
    fn make_jobs(&self, desk: &mut Desk, plan: &Plan) -> Result<(), crate::desk::Stop> {
        let mut has_children = vec![false; self.nodes.len()];
        plan.parents.iter().flatten().for_each(|&parent| has_children[parent] = true);
        let mut jobs = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            check_new(desk, &self.namespace, &node.job)?;
            let mut new = node.job.clone();
            new.parents = plan.parents[at].iter().map(|&parent| self.nodes[parent].job.id).collect();
            let place = Node { run: self.id, name: node.name.clone() };
            let mut job = new.make(desk, &self.namespace, Some(place));
            job.live.waiting = job.spec.parents.len() as u32;
            job.live.dependents = has_children[at];
            jobs.push(job);
        }
        for (mut job, node) in jobs.into_iter().zip(&self.nodes) {
            for &parent in &job.spec.parents {
                desk.put_edge(&crate::keys::JobKey::new(&self.namespace, parent), &job.key);
            }
            desk.tell(&self.namespace, What::Submitted { job: job.key.id });
            desk.put_payload(&job.key, node.job.payload.clone());
            life::queue(desk, &mut job)?;
            desk.put_job(job);
        }
        Ok(())
    }

    /// Checks the graph in time linear to its size.
    fn plan(&self, desk: &Desk) -> Result<Plan, Refusal> {
        let limits = desk.limits();
        if self.nodes.is_empty() {
            return Err(Refusal::invalid("nodes", "a run needs at least one job".into()));
        }
        check_size("nodes", self.nodes.len(), limits.nodes_max)?;
        check_size("extra", self.extra.as_ref().map_or(0, |extra| extra.len()), limits.extra_bytes_max)?;
        self.owner.as_ref().map_or(Ok(()), |owner| check_name("owner", owner, &limits))?;
        let mut by_name: HashMap<&str, usize> = HashMap::with_capacity(self.nodes.len());
        let mut ids: HashMap<JobId, &str> = HashMap::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            check_name("nodes.name", &node.name, &limits)?;
            node.job.check(&limits)?;
            self.check_node(node)?;
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
        let mut parents = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
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
        }
        self.check_cycles(&parents)?;
        Ok(Plan { parents })
    }

    fn check_node(&self, node: &RunNode) -> Result<(), Refusal> {
        if !node.job.parents.is_empty() {
            return Err(Refusal::invalid("nodes.job.parents", format!("{:?}: use needs inside a run", node.name)));
        }
        if node.job.unique.is_some() {
            let why = format!("{:?}: a job of a run is unique by its node", node.name);
            return Err(Refusal::invalid("nodes.job.unique", why));
        }
        if node.job.policy.retry.form == RetryForm::NewJob {
            let why = format!("{:?}: a job of a run is retried as itself, since its node is unique", node.name);
            return Err(Refusal::invalid("nodes.job.policy.retry.form", why));
        }
        Ok(())
    }

    fn check_cycles(&self, parents: &[Vec<usize>]) -> Result<(), Refusal> {
        let Some(cycle) = graph::cycle(parents) else { return Ok(()) };
        Err(Refusal::Cycle { path: cycle.into_iter().map(|at| self.nodes[at].name.to_string()).collect() })
    }
}

/// Parents of each node, by position.
struct Plan {
    parents: Vec<Vec<usize>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::testing::{Story, after, code, graph, once},
        job::{State, UniqueKey, UniqueUntil},
        policy::ParentPolicy,
        run::RunState,
    };
    use std::time::{Duration, Instant};

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
            (graph(1, &["a"], |_, job| job.policy.retry.form = RetryForm::NewJob), "invalid"),
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

    /// A wide and a deep graph of 10,000 nodes: `0` before all, `last` behind all.
    fn large(deep: bool) -> SubmitRun {
        let node = |at: usize| {
            let needs = match at {
                0 => vec![],
                _ if deep => vec![(at - 1).to_string()],
                _ => vec!["0".to_string()],
            };
            let needs = needs.into_iter().map(Into::into).collect();
            RunNode { name: at.to_string().into(), needs, job: once(at as u128 + 1) }
        };
        SubmitRun { nodes: (0..10_000).map(node).collect(), ..graph(1, &[], |_, _| {}) }
    }

    #[test]
    fn a_large_run_takes_time_in_proportion() {
        for deep in [false, true] {
            let mut story = Story::new();
            let began = Instant::now();
            story.run(large(deep)).unwrap();
            let mut completed = 0;
            while completed < 10_000 {
                let claim = story.claim_command("w", 500);
                let claimed = story.tables.run(story.now, vec![claim.into()]).remove(0);
                let leases: Vec<_> =
                    crate::commands::testing::leases(&claimed).iter().map(|leased| leased.lease).collect();
                completed += leases.len();
                assert!(!leases.is_empty(), "{completed} completed");
                let holder = |lease| crate::commands::holder::Holder::lease(&story.namespace(), lease);
                let complete =
                    |lease| crate::commands::complete::Complete { holder: holder(lease), result: "1".into() };
                let commands = leases.into_iter().map(|lease| complete(lease).into()).collect();
                story.tables.run(story.now, commands);
            }
            assert_eq!(run(&story).state(), RunState::Completed);
            assert!(began.elapsed() < Duration::from_secs(10), "deep: {deep}, {:?}", began.elapsed());
        }
    }

    #[test]
    fn a_failure_at_the_root_skips_a_large_run_in_few_round_trips() {
        for deep in [false, true] {
            let mut story = Story::new();
            story.run(large(deep)).unwrap();
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
}
