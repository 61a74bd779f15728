//! Submit a run: a graph of jobs, all of them or none.

use super::{
    Decided,
    submit::{NewJob, check_new, check_size},
};
use crate::{
    desk::Desk,
    event::What,
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

    /// Takes nodes away that wait for nothing until none is left; what remains holds a cycle.
    fn check_cycles(&self, parents: &[Vec<usize>]) -> Result<(), Refusal> {
        let mut waiting: Vec<usize> = parents.iter().map(Vec::len).collect();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
        for (at, needs) in parents.iter().enumerate() {
            needs.iter().for_each(|&need| children[need].push(at));
        }
        let mut free: Vec<usize> = (0..parents.len()).filter(|&at| waiting[at] == 0).collect();
        let mut taken = 0;
        while let Some(at) = free.pop() {
            taken += 1;
            for &child in &children[at] {
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    free.push(child);
                }
            }
        }
        if taken == parents.len() {
            return Ok(());
        }
        Err(Refusal::Cycle { path: self.cycle_path(parents, &waiting) })
    }

    /// Walks back along needs that are still waiting until a node comes round again.
    fn cycle_path(&self, parents: &[Vec<usize>], waiting: &[usize]) -> Vec<String> {
        let mut at = (0..parents.len()).find(|&at| waiting[at] > 0).expect("a cycle was found");
        let mut seen = vec![usize::MAX; parents.len()];
        let mut path = Vec::new();
        while seen[at] == usize::MAX {
            seen[at] = path.len();
            path.push(at);
            at = *parents[at]
                .iter()
                .find(|&&need| waiting[need] > 0)
                .expect("what waits, waits for something that waits");
        }
        let mut names: Vec<String> = path[seen[at]..].iter().map(|&at| self.nodes[at].name.to_string()).collect();
        names.push(self.nodes[at].name.to_string());
        names.reverse();
        names
    }
}

/// Parents of each node, by position.
struct Plan {
    parents: Vec<Vec<usize>>,
}
