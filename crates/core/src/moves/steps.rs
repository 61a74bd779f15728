//! Moves of steps that are decided while their run goes on: their turn at the planner, and what they wait for.

use crate::{
    desk::{Desk, Stop},
    model::{
        id::{JobId, RunId},
        job::{Job, Outcome, Reason, State},
        name::Namespace,
        payload::Payload,
        record::{Kind, key_of},
        run::Run,
        stage::{
            EarlyEvent, EarlyPlan, Hold, OF_RUN, PlanPart, RunIndex, Turn, Waiting, place, system_namespace, turn_key,
        },
    },
    moves::{dependents, life},
};

/// Tells the planners.
pub(crate) fn call(desk: &mut Desk, namespace: &Namespace, run: RunId, job: Option<JobId>) -> Result<(), Stop> {
    let turn = Turn { namespace: namespace.clone(), run, job };
    desk.put(&system_namespace(), &turn_key(namespace, run, job), &turn)
}

/// All that a held job waited for beside its hold is done. Gives the job back if it has ended by that.
pub(crate) fn turn(desk: &mut Desk, job: Job) -> Result<Option<Job>, Stop> {
    match (job.live.hold, job.run()) {
        (Some(Hold::Plan | Hold::Members), Some(run)) => {
            let key = job.key.clone();
            desk.put_job(job);
            call(desk, &key.namespace, run, Some(key.id))?;
            Ok(None)
        }
        _ => begin_wait(desk, job),
    }
}

/// Waits from now on, unless what it waits for has come already.
pub(crate) fn begin_wait(desk: &mut Desk, mut job: Job) -> Result<Option<Job>, Stop> {
    let (Some(wait), Some(node)) = (job.spec.stage.wait.clone(), job.spec.node.clone()) else {
        life::requeue_waiting(desk, job)?;
        return Ok(None);
    };
    let namespace = job.key.namespace.clone();
    if let Some(event) = &wait.event {
        let key = place(node.run, event);
        if let Some(kept) = desk.get::<EarlyEvent>(&namespace, &key)? {
            desk.remove::<EarlyEvent>(&namespace, &key)?;
            return finish(desk, job, Payload::from(&*kept.payload)).map(Some);
        }
    }
    if wait.event.is_some() || wait.approval {
        let waiting = Waiting { run: node.run, job: job.key.id, event: wait.event };
        let key = place(node.run, &node.name);
        // Locked first, like every record that is written.
        desk.get::<Waiting>(&namespace, &key)?;
        desk.put(&namespace, &key, &waiting)?;
    }
    job.live.hold_until = wait.timeout.map(|timeout| desk.now() + timeout);
    desk.put_job(job);
    Ok(None)
}

/// Completes a held job without passing the news on.
pub(crate) fn finish(desk: &mut Desk, mut job: Job, result: Payload) -> Result<Job, Stop> {
    if !result.is_empty() {
        desk.put_result(&job.key, result);
        job.live.has_result = true;
    }
    life::close(desk, job, State::Completed, None)
}

/// Forgets what a job that ends now was waiting for.
pub(crate) fn let_go(desk: &mut Desk, job: &mut Job) -> Result<(), Stop> {
    job.live.hold_until = None;
    if job.live.hold.take() == Some(Hold::Event)
        && let Some(node) = &job.spec.node
    {
        desk.remove::<Waiting>(&job.key.namespace, &place(node.run, &node.name))?;
    }
    Ok(())
}

/// The time of a wait is over.
pub(crate) fn wait_over(desk: &mut Desk, job: Job) -> Result<(), Stop> {
    let wait = job.spec.stage.wait.clone();
    if wait.as_ref().is_some_and(|wait| wait.then_complete) {
        let timed_out = wait.is_some_and(|wait| wait.event.is_some() || wait.approval);
        let result = if timed_out { Payload::from("{\"timed_out\":true}") } else { Payload::default() };
        let ended = finish(desk, job, result)?;
        return dependents::pass_on(desk, vec![ended]);
    }
    let why = match wait.and_then(|wait| wait.event) {
        Some(event) => format!("the event {event} did not come in time"),
        None => "nobody approved it in time".into(),
    };
    life::end(desk, job, State::Failed, Some(Outcome::new(Reason::DeadlinePassed, why)))?;
    Ok(())
}

/// Removes the parts of a plan whose run never came.
pub(crate) fn remove_early(desk: &mut Desk, namespace: &Namespace, run: &str) -> Result<(), Stop> {
    let parts = desk.siblings(namespace, PlanPart::KIND, run)?;
    desk.for_all(parts, |desk, key| desk.delete_record(&key))?;
    desk.delete_record(&key_of::<EarlyPlan>(namespace, run))
}

/// Removes what belongs to a run, when the run itself goes.
pub(crate) fn remove_run(desk: &mut Desk, namespace: &Namespace, run: &str) -> Result<(), Stop> {
    let mut keys = Vec::new();
    let kinds = [PlanPart::KIND, EarlyEvent::KIND, RunIndex::KIND, OF_RUN];
    for kind in kinds {
        match desk.siblings(namespace, kind, run) {
            Ok(found) => keys.push(found),
            Err(Stop::Need) => {}
            Err(stop) => return Err(stop),
        }
    }
    if keys.len() < kinds.len() {
        return Err(Stop::Need);
    }
    desk.for_all(keys.concat(), |desk, key| desk.delete_record(&key))?;
    desk.delete_record(&key_of::<Run>(namespace, run))
}
