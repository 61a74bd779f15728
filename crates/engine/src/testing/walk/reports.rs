//! Draws what the holders of leases send, and those who only think they are.

use super::world::{Known, PRINCIPALS, World};
use uuid::Uuid;
use windlass_core::{
    Chunk, Command, JobKey, LeaseId, LogForm, LogStream, Millis, Payload,
    commands::{
        append_log::AppendLog,
        complete::Complete,
        fail::Fail,
        holder::{Address, Holder},
        holds::Holds,
        look::Look,
        progress::ReportProgress,
        release::{PassOn, Release},
        renew::Renew,
        start::Start,
    },
    log::ChunkWriter,
};

/// Mostly a live lease in the right hands; sometimes an old one, a made-up one, or somebody else's.
fn holder(world: &mut World) -> Holder {
    let namespace = world.namespace();
    let stranger = Known { namespace, lease: lease_nobody_has(world), worker: world.worker(), principal: None };
    let known = world.dice.recent(&world.leases, 12).cloned().unwrap_or(stranger);
    let namespace = world.perhaps_foreign(&known.namespace);
    let (mut lease, mut worker) = (known.lease, known.worker.clone());
    if world.dice.percent(3) {
        lease.secret = Uuid::from_u128(world.id());
    }
    if world.dice.percent(5) {
        worker = world.worker();
    }
    let principal = if world.dice.percent(5) { world.dice.maybe_name(100, &PRINCIPALS) } else { known.principal };
    let address = match world.dice.below(10) {
        0 => Address::Worker { job: lease.job, worker },
        1 => Address::Owner { job: lease.job, principal: principal.clone().unwrap_or_else(|| "alice".into()) },
        2 => Address::Job(lease.job),
        _ => Address::Lease(lease),
    };
    Holder { namespace, address, principal: principal.filter(|_| world.dice.percent(70)) }
}

fn lease_nobody_has(world: &mut World) -> LeaseId {
    let job = world.job().id;
    LeaseId::new(job, world.secret())
}

pub(super) fn start(world: &mut World) -> Command {
    Start { holder: holder(world) }.into()
}

pub(super) fn renew(world: &mut World) -> Command {
    let holder = holder(world);
    let length =
        world.dice.maybe_millis(50, 40_000).map(|length| if world.dice.percent(2) { Millis(0) } else { length });
    Renew { holder, length }.into()
}

pub(super) fn progress(world: &mut World) -> Command {
    let holder = holder(world);
    let dice = &mut world.dice;
    let percent = if dice.percent(3) { f64::NAN } else { dice.between(-1, 101) as f64 };
    ReportProgress { holder, percent, message: dice.percent(50).then(|| dice.text(40).into()) }.into()
}

pub(super) fn append_log(world: &mut World) -> Command {
    let holder = holder(world);
    let text = world.dice.text(70);
    let form = match text.len() % 4 {
        0 => LogForm::Text(LogStream::Err),
        1 => LogForm::Chunks,
        _ => LogForm::default(),
    };
    let data = if form == LogForm::Chunks { chunks(&text) } else { Payload::from(text.as_str()) };
    AppendLog { holder, form, data }.into()
}

/// The text as two chunks of one piece.
fn chunks(text: &str) -> Payload {
    let (first, rest) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let mut writer = ChunkWriter::default();
    writer.push(Chunk { stream: Some(LogStream::Err), time: Some(1), data: first.as_bytes(), ..Chunk::default() });
    writer.push(Chunk { sequence: Some(7), data: rest.as_bytes(), ..Chunk::default() });
    writer.finish()
}

/// Whose report it is, and whether it is one that was accepted before, to be said once more.
fn reporter(world: &mut World) -> Result<Holder, Box<Command>> {
    let before = world.dice.recent(&world.reports, 8).cloned().filter(|_| world.dice.percent(15));
    match before {
        Some(report) if world.dice.percent(50) => Err(Box::new(report)),
        // Under the same lease, but with another content or outcome.
        Some(Command::Complete(Complete { holder, .. }) | Command::Fail(Fail { holder, .. })) => Ok(holder),
        _ => Ok(holder(world)),
    }
}

pub(super) fn complete(world: &mut World) -> Command {
    let holder = match reporter(world) {
        Ok(holder) => holder,
        Err(again) => return *again,
    };
    Complete { holder, result: Payload::from(world.dice.text(30).as_str()) }.into()
}

pub(super) fn fail(world: &mut World) -> Command {
    let holder = match reporter(world) {
        Ok(holder) => holder,
        Err(again) => return *again,
    };
    let result = if world.dice.percent(30) { world.dice.text(30) } else { String::new() };
    let (message, retryable) = (world.dice.text(40).into(), world.dice.percent(80));
    Fail { holder, message, retryable, result: Payload::from(result.as_str()) }.into()
}

pub(super) fn release(world: &mut World) -> Command {
    Release { holder: holder(world) }.into()
}

pub(super) fn pass_on(world: &mut World) -> Command {
    let (holder, delay) = (holder(world), world.dice.millis(20_000));
    PassOn { holder, delay, why: world.dice.text(20).into() }.into()
}

pub(super) fn holds(world: &mut World) -> Command {
    Holds { holder: holder(world) }.into()
}

pub(super) fn look(world: &mut World) -> Command {
    let JobKey { namespace, id } = world.job();
    Look { namespace, job: id, payload: world.dice.percent(50) }.into()
}
