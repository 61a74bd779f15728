//! Random commands from a seed, so that a walk can be repeated.

use super::{Story, ns};
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::{
    Command, Facet, JobId, LeaseId, Millis, RecordKey, RunId, Tags, WorkerId,
    commands::{
        append_log::AppendLog,
        cancel::Cancel,
        claim::Claim,
        complete::Complete,
        fail::Fail,
        holder::Holder,
        progress::ReportProgress,
        records::{Expect, PutRecord},
        release::Release,
        renew::Renew,
        submit::{NewJob, Submit},
        submit_run::{RunNode, SubmitRun},
        workers::Heartbeat,
    },
    job::{ConcurrencyKey, UniqueKey, UniqueUntil},
    policy::ParentPolicy,
};

pub struct Walk {
    state: u64,
    next: u128,
    pub leases: Vec<LeaseId>,
    pub jobs: Vec<JobId>,
    pub story: Story,
}

impl Walk {
    pub fn new(seed: u64) -> Self {
        Self { state: seed, next: 1, leases: Vec::new(), jobs: Vec::new(), story: Story::default() }
    }

    /// A number below `max`.
    pub fn draw(&mut self, max: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % max.max(1) as u64) as usize
    }

    fn id(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    fn tags(&mut self, most: usize) -> Tags {
        let count = self.draw(most + 1);
        (0..count).map(|_| ["a", "b", "c", "d"][self.draw(4)]).collect()
    }

    fn new_job(&mut self) -> NewJob {
        let id = JobId::from_u128(self.id());
        let mut job = NewJob::new(id);
        job.priority = self.draw(3) as i32;
        job.tags = self.tags(2);
        job.payload = if self.draw(4) == 0 { "".into() } else { format!("payload of {id}").as_str().into() };
        job.facets = (0..self.draw(3)).map(|at| Facet::new("room", &format!("é{at}"))).collect();
        if self.draw(6) == 0 {
            job.run_at = Some(super::START + Millis(self.draw(200_000) as i64));
        }
        if self.draw(5) == 0 {
            job.concurrency = Some(ConcurrencyKey { key: ["k1", "k2"][self.draw(2)].into(), limit: 2 });
        }
        job.policy.parents = [ParentPolicy::Skip, ParentPolicy::RunAnyway, ParentPolicy::CancelRun][self.draw(3)];
        if self.draw(4) == 0 {
            job.policy.pending_deadline = Some(Millis(60_000));
        }
        job
    }

    fn some_job(&mut self) -> JobId {
        let at = self.draw(self.jobs.len());
        self.jobs[at]
    }

    fn submit(&mut self) -> Command {
        let mut job = self.new_job();
        if self.draw(4) == 0 && !self.jobs.is_empty() {
            job.parents = vec![self.some_job()];
        }
        if self.draw(6) == 0 {
            let key = format!("unique {}", self.draw(5));
            job.unique = Some(UniqueKey { key: key.into(), body_hash: "same".into(), until: UniqueUntil::Final });
        }
        self.jobs.push(job.id);
        Submit { namespace: ns(), job }.into()
    }

    fn submit_run(&mut self) -> Command {
        let names: Vec<Arc<str>> = ["first", "second", "third"].map(Arc::from).to_vec();
        let node = |walk: &mut Self, at: usize| {
            let mut job = walk.new_job();
            job.run_at = None;
            walk.jobs.push(job.id);
            RunNode { name: names[at].clone(), needs: names[..at].to_vec(), job }
        };
        let nodes = (0..3).map(|at| node(self, at)).collect();
        let id = RunId::from_u128(self.id());
        SubmitRun { namespace: ns(), id, owner: None, definition: None, nodes, extra: None }.into()
    }

    fn claim(&mut self) -> Command {
        let worker = WorkerId::new(["w1", "w2", "w3"][self.draw(3)]).unwrap();
        let secrets = (0..=self.draw(4)).map(|_| Uuid::from_u128(self.id() << 64)).collect();
        let offered = self.tags(6);
        let mut claim = Claim::new(&ns(), worker, offered, secrets);
        if self.draw(4) == 0 {
            claim.request_id = Some(format!("request {}", self.draw(5)).into());
        }
        claim.into()
    }

    fn report(&mut self) -> Command {
        if self.leases.is_empty() {
            return self.claim();
        }
        let at = self.draw(self.leases.len());
        let holder = Holder::lease(&ns(), self.leases[at]);
        match self.draw(8) {
            0..3 => Complete { holder, result: ["", "done"][self.draw(2)].into() }.into(),
            3 => Fail { holder, message: "it broke".into(), retryable: self.draw(2) == 0 }.into(),
            4 => Release { holder }.into(),
            5 => Renew { holder, length: None }.into(),
            6 => ReportProgress { holder, percent: 12.5, message: Some("going on".into()) }.into(),
            _ => AppendLog { holder, data: format!("line {}\n", self.draw(1_000)).as_str().into() }.into(),
        }
    }

    fn put_record(&mut self) -> Command {
        let key = ["a", "B", "é", "Z", "z"][self.draw(5)];
        let facets = (0..self.draw(3)).map(|_| Facet::new("colour", ["red", "blue"][self.draw(2)])).collect();
        let parent = [None, Some("p1"), Some("p2")][self.draw(3)].map(Arc::from);
        let value = format!("{{\"n\":{}}}", self.draw(1_000)).into();
        let key = RecordKey { namespace: ns(), kind: "thing".into(), key: key.into() };
        PutRecord { key, expect: Expect::Anything, parent, value, facets, expires_at: None }.into()
    }

    pub fn command(&mut self) -> Command {
        match self.draw(20) {
            0..6 => self.submit(),
            6 => self.submit_run(),
            7..11 => self.claim(),
            11..17 => self.report(),
            17 if !self.jobs.is_empty() => {
                let job = self.some_job();
                Cancel { namespace: ns(), job, by: "somebody".into() }.into()
            }
            18 => Heartbeat { namespace: ns(), worker: WorkerId::new("w1").unwrap() }.into(),
            _ => self.put_record(),
        }
    }
}
