//! Turns that are decided ahead: in the transaction of the report that brings them, where nothing has to be looked up or worked
//! out. What cannot be decided so is left to the planner, and so is everything that this server does not have at hand.

use super::{
    begin::payload,
    bundle::Plan,
    read::{self, Made, Member},
    row::{Row, Status},
    submit::{Near, plain, work},
};
use crate::dialects::neops::{Neops, job, namespace, results::SMALL};
use serde_json::Value;
use std::sync::Arc;
use windlass_core::{
    Command, JobId, Payload, RunId, Timestamp,
    commands::{
        advance::{Advance, Move},
        records::Expect,
        submit_run::RunNode,
    },
    stage::Hold,
};
use windlass_engine::ids;
use windlass_plan::neops::reference::EntityType;

/// Bytes of a plan that is kept at hand.
const PLAN_BYTES: usize = 16 << 10;

/// What the report of a job leads to, known before it comes.
#[derive(Clone)]
pub struct Course {
    plan: Arc<Plan>,
    /// As it stands in the store, and under which version.
    row: Arc<Row>,
    version: u64,
    main: JobId,
    owner: Option<Arc<str>>,
    /// Of the work, before it was made; after that there is nothing left to make.
    parameters: Option<Arc<Value>>,
    bytes: usize,
}

/// What goes into the transaction of a report, and what is known after it.
pub struct Ahead {
    pub commands: Vec<Command>,
    then: Option<(JobId, Course)>,
}

/// Where the run has one step, which is about no entity and has nothing to be worked out.
pub fn of_new(near: Near, plan: &Arc<Plan>, row: &Row) -> Option<(JobId, Course)> {
    let ([step], [block], [acquire]) = (plan.course.steps.as_slice(), plan.blocks.as_slice(), near.acquires.as_slice())
    else {
        return None;
    };
    let about_none = plan.bundle.ids.is_empty() || matches!(plan.course.seed, EntityType::Global | EntityType::Client);
    let unconditional = step.conditions.is_empty() && step.asserts.is_empty();
    let acquires_none = step.acquire.is_empty() && plan.course.acquire.is_empty();
    let is_global = plan.bundle.blocks[0].on() == EntityType::Global;
    if !(about_none && unconditional && acquires_none && is_global && near.bytes <= PLAN_BYTES) {
        return None;
    }
    let parameters = Some(Arc::new(plain(step, block)?));
    let (plan, row, owner) = (plan.clone(), Arc::new(row.clone()), near.owner);
    let course = Course { plan, row, version: 1, main: near.main, owner, parameters, bytes: 4 * near.bytes };
    Some((*acquire, course))
}

pub fn remember(neops: &Neops, (job, course): (JobId, Course)) {
    let bytes = course.bytes;
    neops.own.ahead.lock().put(job, course, bytes);
}

/// A job went well and gave this. None: what follows from it is the planner's to decide.
pub fn decide(neops: &Neops, job: JobId, result: &[u8], now: Timestamp) -> Option<Ahead> {
    let course = neops.own.ahead.lock().get(&job).filter(|_| result.len() <= SMALL)?;
    match &course.parameters {
        Some(parameters) => course.begin(neops, parameters, result, now),
        None => course.end(neops, result, now),
    }
}

/// It was written.
pub fn done(neops: &Neops, job: JobId, ahead: Ahead) {
    neops.own.ahead.lock().forget(&job);
    if let Some(then) = ahead.then {
        remember(neops, then);
    }
}

impl Course {
    fn begin(&self, neops: &Neops, parameters: &Value, result: &[u8], now: Timestamp) -> Option<Ahead> {
        read::acquires_none(result).then_some(())?;
        let mut row = Row::clone(&self.row);
        (row.status, row.started_at) = (Status::Running, Some(now));
        let node = self.piece(neops, parameters);
        let id = node.job.id;
        let made = payload(&Made { members: vec![Member(id, None)] });
        let mut commands = row.put(neops, Expect::Version(self.version), now);
        commands.push(self.advance(Hold::Plan, Move::Expand { nodes: vec![node], payload: made }));
        let next = Course { row: Arc::new(row), version: self.version + 1, parameters: None, ..self.clone() };
        Some(Ahead { commands, then: Some((id, next)) })
    }

    fn piece(&self, neops: &Neops, parameters: &Value) -> RunNode {
        let shape = job::Shape {
            id: ids::job_id(),
            run: self.row.uuid,
            kind: job::Type::Execute,
            block: &self.plan.blocks[0],
            label: &self.plan.course.steps[0].label,
            run_on: EntityType::Global,
            entity: None,
            parameters,
            context: None,
            lane: None,
        };
        let mut node = work(neops, "step.0.g".into(), &shape, self.owner.clone());
        node.job.stage.of = Some(self.main);
        node
    }

    fn end(&self, neops: &Neops, result: &[u8], now: Timestamp) -> Option<Ahead> {
        let changed = read::changed(Some(&self.plan.blocks[0]), result, true)?.ok()?;
        changed.is_empty().then_some(())?;
        let mut row = Row::clone(&self.row);
        row.end(Status::CompletedAck, now);
        let mut commands = row.put(neops, Expect::Version(self.version), now);
        commands.push(self.advance(Hold::Members, Move::Complete { result: Payload::default() }));
        Some(Ahead { commands, then: None })
    }

    fn advance(&self, hold: Hold, wanted: Move) -> Command {
        let moves = vec![(self.main, hold, wanted)];
        Advance { namespace: namespace(), run: RunId(self.row.uuid), moves, undo: None, strict: true }.into()
    }
}
