//! Draws what is decided while a run goes on: turns of steps, events, approvals.

use super::{draw::new_job, world::World};
use std::sync::Arc;
use windlass_core::{
    Command, JobId, Namespace, Payload, RecordKey, RunId,
    commands::{
        advance::{Advance, Move},
        keep_part::KeepPart,
        records::{Expect, PutRecord},
        remind::Remind,
        signal::{Judge, Signal},
        stop_work::StopWork,
        submit::NewJob,
        submit_run::RunNode,
    },
    stage::{Hold, OF_RUN, Stage, Wait},
};

const EVENTS: [&str; 2] = ["go", "stop"];

/// Makes a step of a run one that is decided later, now and then.
pub(super) fn shape(world: &mut World, job: &mut NewJob) {
    let wait = world.dice.percent(20).then(|| Wait {
        event: world.dice.percent(30).then(|| Arc::from(*world.dice.pick(&EVENTS))),
        approval: false,
        timeout: world.dice.maybe_millis(40, 60_000),
        then_complete: world.dice.percent(30),
    });
    let wait = wait.map(|wait| Wait { approval: wait.event.is_none(), ..wait });
    let plan = world.dice.percent(15);
    if plan {
        job.payload = Payload::default();
    }
    job.stage = Stage { plan, wait, of: None };
}

/// The next part of a plan that was begun, the first of a new one, or one that is there.
pub(super) fn keep_part(world: &mut World) -> Command {
    let (namespace, run, at) = match early(world) {
        Some(known) if world.dice.percent(60) => known,
        _ => (world.namespace(), RunId::from_u128(world.id()), 0),
    };
    let at = if world.dice.percent(5) { at.saturating_sub(1) } else { at };
    KeepPart { namespace, run, at, text: "part".into() }.into()
}

/// A plan whose run is yet to come, with the number of its parts at some time.
pub(super) fn early(world: &mut World) -> Option<(Namespace, RunId, u32)> {
    world.dice.recent(&world.early, 3).cloned()
}

fn staged(world: &mut World) -> (Namespace, RunId, JobId, Arc<str>) {
    let known = world.dice.recent(&world.staged, 12).cloned();
    known.unwrap_or_else(|| (Namespace::default(), RunId::from_u128(1), JobId::from_u128(1), "n0".into()))
}

pub(super) fn advance(world: &mut World) -> Command {
    let (namespace, run, job, name) = staged(world);
    let why: Arc<str> = "drawn".into();
    let wanted = match world.dice.below(6) {
        0 => Move::Skip { why },
        1 => Move::Fail { why },
        2 => Move::Complete { result: "[1]".into() },
        3 => Move::Expand { nodes: members(world, &namespace, job, &name), payload: "{}".into() },
        _ => Move::Go { payload: "{\"late\":1}".into() },
    };
    let undo = world.dice.percent(30).then(Vec::new);
    let hold = *world.dice.pick(&[Hold::Plan, Hold::Plan, Hold::Members]);
    let (namespace, strict) = (world.perhaps_foreign(&namespace), world.dice.percent(20));
    Advance { namespace, run, moves: vec![(job, hold, wanted)], undo, strict }.into()
}

fn members(world: &mut World, namespace: &Namespace, of: JobId, name: &str) -> Vec<RunNode> {
    let count = 1 + world.dice.below(3);
    let member = |at| {
        let mut job = new_job(world, namespace);
        job.parents.clear();
        job.unique = None;
        shape(world, &mut job);
        job.stage.of = Some(of);
        RunNode { name: format!("{name}[{at}]").into(), needs: Vec::new(), job }
    };
    (0..count).map(member).collect()
}

fn some_run(world: &mut World) -> (Namespace, RunId) {
    let known = world.dice.recent(&world.runs, 4).cloned();
    let (namespace, run) = known.unwrap_or_else(|| (Namespace::default(), RunId::from_u128(1)));
    (world.perhaps_foreign(&namespace), run)
}

pub(super) fn stop_work(world: &mut World) -> Command {
    let (namespace, run) = some_run(world);
    StopWork { namespace, run, by: "drawn".into() }.into()
}

pub(super) fn remind(world: &mut World) -> Command {
    let (namespace, run, job, _) = staged(world);
    let job = (!world.dice.percent(20)).then_some(job);
    Remind { namespace: world.perhaps_foreign(&namespace), run, job }.into()
}

/// What goes with a run.
pub(super) fn beside(world: &mut World) -> Command {
    let (namespace, run) = some_run(world);
    let key = RecordKey { namespace, kind: OF_RUN.into(), key: world.dice.name(&["b1", "b2"]) };
    let (expect, parent) = (Expect::Anything, Some(run.to_string().into()));
    PutRecord { key, expect, parent, value: "{}".into(), facets: Vec::new(), expires_at: None }.into()
}

pub(super) fn signal(world: &mut World) -> Command {
    let (namespace, run) = some_run(world);
    let event = (*world.dice.pick(&EVENTS)).into();
    Signal { namespace, run, event, payload: "{\"e\":1}".into() }.into()
}

pub(super) fn judge(world: &mut World) -> Command {
    let (namespace, run, _, step) = staged(world);
    let approved = world.dice.percent(70).then(|| Payload::from("true"));
    Judge { namespace: world.perhaps_foreign(&namespace), run, step, approved, why: "no".into() }.into()
}
