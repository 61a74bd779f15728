//! Tells the server what a command says, in its order, and repeats how far it is, so that a silent command's cancellation is
//! noticed too.

use super::{
    calls::{Call, Job, Server, Trouble},
    lines::Said,
    stop::{Stop, Why},
};
use serde_json::json;
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};

/// A command that prints faster than the server can be told has its lines put together when so many wait.
const CROWD: usize = 900;
const ENTRY_BYTES_MAX: usize = 60 << 10;

/// Runs until everything was said, or until nobody wants to hear it.
pub async fn report(server: Server, job: Job, mut said: mpsc::Receiver<Said>, every: Duration, stop: Stop) {
    let mut tick = interval_at(Instant::now() + every, every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut last, mut held) = (Said::Progress(0, None), None);
    loop {
        let next = match held.take() {
            Some(next) => next,
            None => tokio::select! {
                biased;
                () = stop.over() => return,
                _ = tick.tick() => last.clone(),
                next = said.recv() => match next {
                    Some(next) => next,
                    None => return,
                },
            },
        };
        let (next, following) = crowded(next, &mut said);
        held = following;
        if matches!(next, Said::Progress(..)) {
            last = next.clone();
        }
        let answer = server.insist(&call(&job, next), stop.giving_up()).await;
        match answer {
            Ok(_) => {}
            Err(Trouble::Denied(why)) => return stop.because(Why::Denied, &why),
            Err(trouble) if trouble.ends_the_job() => return stop.because(Why::Lost, trouble.text()),
            Err(trouble) => tracing::warn!(job = job.id, why = trouble.text(), "progress or log not accepted"),
        }
    }
}

/// Entries of one level that wait in a crowd become one; what comes after them is held back.
pub fn crowded(first: Said, said: &mut mpsc::Receiver<Said>) -> (Said, Option<Said>) {
    let Said::Log(level, mut text) = first else { return (first, None) };
    if said.len() < CROWD {
        return (Said::Log(level, text), None);
    }
    loop {
        match said.try_recv() {
            Ok(Said::Log(next, more)) if next == level && text.len() + more.len() < ENTRY_BYTES_MAX => {
                text.push('\n');
                text.push_str(&more);
            }
            following => return (Said::Log(level, text), following.ok()),
        }
    }
}

fn call(job: &Job, said: Said) -> Call {
    match said {
        Said::Progress(percent, None) => Call::put(job.path("progress"), json!({ "progress": percent })),
        Said::Progress(percent, Some(text)) => {
            Call::put(job.path("progress"), json!({"progress": percent, "message": text}))
        }
        Said::Log(level, text) => Call::post(job.path("log"), json!({"level": level, "message": text})),
    }
}
