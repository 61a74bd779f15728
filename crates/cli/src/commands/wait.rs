//! `windlass job wait`: until jobs have ended.

use super::{Context, Done, show};
use crate::{fail::code, ids, output::note, times};
use clap::Args;
use std::{
    convert::Infallible,
    time::{Duration, Instant},
};
use windlass_api::{
    Uuid,
    job::{Job, State},
};
use windlass_sdk::Client;

/// What one call waits at most.
const PIECE: Duration = Duration::from_secs(50);
const TRIES: u32 = 10;
/// So long nothing need be said, and then so often it is looked whether something else holds the job up.
const SILENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Wait until jobs have ended.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 all completed, 3 one failed or was skipped, 4 one was cancelled, 5 not done in time."
)]
pub struct Wait {
    /// Job ids, beginnings of ids, or `last`.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Wait at most this long.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    timeout: Option<u64>,
}

impl Wait {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        let deadline = self.timeout.map(|timeout| Instant::now() + Duration::from_millis(timeout));
        let mut codes = Vec::new();
        for id in ids::jobs(&client, &self.ids).await? {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (job, code) = telling(&client, id, until_done(&client, id, left)).await?;
            context.format.one(&job, || show::ending(&job))?;
            codes.push(code);
        }
        Ok(worst(&codes))
    }
}

/// A wait that ran out says least about the job, a failure most about what to do.
pub fn worst(codes: &[u8]) -> u8 {
    [code::TIMEOUT, code::FAILED, code::CANCELLED].into_iter().find(|code| codes.contains(code)).unwrap_or(code::OK)
}

pub fn exit_code(state: State) -> u8 {
    match state {
        State::Completed => code::OK,
        State::Failed | State::Skipped => code::FAILED,
        State::Cancelled => code::CANCELLED,
        State::Blocked | State::Scheduled | State::Pending | State::Claimed | State::Running => code::TIMEOUT,
    }
}

/// Does `work`, and meanwhile says on standard error why nothing happens with the job, as often as that changes.
pub async fn telling<T>(client: &Client, id: Uuid, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        never = tell(client, id) => match never {},
    }
}

async fn tell(client: &Client, id: Uuid) -> Infallible {
    let mut told = None;
    tokio::time::sleep(SILENCE).await;
    loop {
        // Only a remark: where it cannot be had, the wait itself says what is wrong.
        if let Ok(why) = client.why(id).await {
            let waits = matches!(why.state, State::Blocked | State::Scheduled | State::Pending);
            let news = waits.then(|| why.reasons.first().map(|cause| cause.code.clone())).flatten();
            if news.is_some() && news != told {
                note(show::why_text(&why));
            }
            told = news;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The job as it is when it ends, or when the time is up. A server that is away for a moment is waited for.
pub async fn until_done(client: &Client, id: Uuid, timeout: Option<Duration>) -> anyhow::Result<(Job, u8)> {
    let begun = Instant::now();
    // The first answer comes at once: where there is none, there is nothing to wait for.
    let (mut failures, mut reached) = (0, false);
    loop {
        let left = timeout.map_or(PIECE, |timeout| timeout.saturating_sub(begun.elapsed()).min(PIECE));
        let left = if reached { left } else { Duration::ZERO };
        match client.wait(id, left).await {
            Ok(job) if job.state.is_final() || timeout.is_some_and(|timeout| begun.elapsed() >= timeout) => {
                let code = exit_code(job.state);
                return Ok((job, code));
            }
            Ok(_) => (failures, reached) = (0, true),
            Err(error) if error.is_temporary() && reached && failures < TRIES => {
                failures += 1;
                tokio::time::sleep(Duration::from_millis(100 << failures.min(5))).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
