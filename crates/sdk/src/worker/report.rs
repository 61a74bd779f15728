//! The end of an attempt: said until it is heard, or until the server says that nobody waits for it any more.

use super::{
    backoff::{Backoff, is_denied, worth_repeating},
    held::{Held, StopReason},
    outage::{Recovery, WorkerCall},
    outcome::Outcome,
    shared::{Counts, Shared},
};
use crate::Error;
use std::time::Duration;
use tokio::time::Instant;
use windlass_api::{
    Problem,
    job::Answer,
    lease::{Batch, Claim, Do, Leased, Operation},
    log::LogChunk,
};

/// The server takes error texts up to 64 KiB.
const MESSAGE_BYTES_MAX: usize = 32 << 10;
/// What is done is told within this time of the server's return: others may wait for it.
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Someone who wants the worker gone at once waits so long for its last words.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What the report brought: the jobs claimed with it.
pub(crate) async fn report(shared: &Shared, held: &Held, outcome: Outcome, claim: Option<Claim>) -> Vec<Leased> {
    if !held.begin_report() {
        Counts::add(&shared.counts.lost);
        if held.is_out_of_time() {
            last_words(shared, held).await;
        }
        if held.stop_reason() == Some(StopReason::Cancelled) {
            confirm(shared, held).await;
        }
        return Vec::new();
    }
    let logs = held.log.close().await;
    let mut reporter = Reporter { shared, held, claim, asked: false, leases: Vec::new() };
    let counted = match &outcome {
        Outcome::Complete(_) => &shared.counts.completed,
        Outcome::Fail(_) => &shared.counts.failed,
        Outcome::Release | Outcome::PassOn { .. } => &shared.counts.released,
    };
    match reporter.say(operations(held, logs, outcome)).await {
        Said::Accepted => Counts::add(counted),
        Said::Instead => Counts::add(&shared.counts.failed),
        Said::Lost => Counts::add(&shared.counts.lost),
        Said::Never => Counts::add(&shared.counts.unreported),
    }
    reporter.leases
}

/// The job was cancelled and taken away, and its work has stopped now: others may have its place under its concurrency key. If this
/// is not heard, they wait until the lease would have ended.
async fn confirm(shared: &Shared, held: &Held) {
    let batch = Batch { operations: vec![operation(held, Do::Release)], claim: None };
    match tokio::time::timeout(LAST_WORDS, shared.protocol.batch(&batch)).await {
        Ok(Ok(_)) => {}
        _ => tracing::debug!(job = %held.leased.job, "nobody heard that the work has stopped"),
    }
}

/// What the work printed when it was told that its time is over.
async fn last_words(shared: &Shared, held: &Held) {
    let pieces = held.log.close().await;
    let operations: Vec<_> =
        pieces.into_iter().map(|chunks| Operation { chunks, ..operation(held, Do::Log) }).collect();
    if operations.is_empty() {
        return;
    }
    let batch = Batch { operations, claim: None };
    if !matches!(tokio::time::timeout(LAST_WORDS, shared.protocol.batch(&batch)).await, Ok(Ok(_))) {
        tracing::debug!(job = %held.leased.job, "the server did not accept what the job printed at its end");
    }
}

enum Said {
    Accepted,
    /// What was to be reported is not acceptable; that it is not was reported instead.
    Instead,
    Lost,
    Never,
}

struct Reporter<'a> {
    shared: &'a Shared,
    held: &'a Held,
    claim: Option<Claim>,
    /// The claim was sent and nobody heard an answer.
    asked: bool,
    leases: Vec<Leased>,
}

impl Reporter<'_> {
    async fn say(&mut self, mut operations: Vec<Operation>) -> Said {
        let mut instead = false;
        let mut backoff = Backoff::new(BACKOFF_MAX.min(self.shared.settings.backoff_max));
        let mut recovery = self.shared.outage.recovery();
        loop {
            recovery.begin();
            let error = match self.send(&operations).await {
                Ok(Ok(())) => {
                    self.shared.outage.answered(WorkerCall::Report);
                    return if instead { Said::Instead } else { Said::Accepted };
                }
                Ok(Err(problem)) => Error::Problem(problem),
                Err(error) => error,
            };
            let job = self.held.leased.job;
            let denied = is_denied(&error) && Instant::now() < self.held.runs_out_at();
            if worth_repeating(&error) || denied {
                self.shared.outage.failed(WorkerCall::Report, &error);
                if !self.pause(&mut recovery, &mut backoff, &error).await {
                    self.shared.outage.gave_up(WorkerCall::Report);
                    return Said::Never;
                }
                continue;
            }
            self.shared.outage.answered(WorkerCall::Report);
            if error.is_lease_lost() {
                tracing::info!(%job, %error, "result rejected: the lease is no longer valid");
                return Said::Lost;
            }
            if self.claim.is_some() {
                // The claim beside it may be what was refused.
                self.drop_claim().await;
            } else if !instead && !is_denied(&error) {
                instead = true;
                operations = vec![refused_result(self.held, &error)];
            } else {
                tracing::error!(%job, %error, "result rejected");
                return Said::Never;
            }
        }
    }

    /// The inner result is what became of the report itself.
    async fn send(&mut self, operations: &[Operation]) -> Result<Result<(), Box<Problem>>, Error> {
        if self.shared.ends() {
            self.drop_claim().await;
        }
        self.asked = self.claim.is_some();
        let batch = Batch { operations: operations.to_vec(), claim: self.claim.clone() };
        let done = self.shared.protocol.batch(&batch).await?;
        self.asked = false;
        self.claim = None;
        self.leases.extend(done.leases);
        let url = self.shared.client.base().to_owned();
        let no_answer = || Error::Confused { url, why: "no answer to the report".into(), retry_after: None };
        let last = done.operations.into_iter().last().ok_or_else(no_answer)?;
        match last {
            Answer::Done(_) => Ok(Ok(())),
            Answer::Refused { problem } => Ok(Err(Box::new(problem))),
        }
    }

    async fn drop_claim(&mut self) {
        if let Some(claim) = self.claim.take().filter(|_| self.asked) {
            self.shared.protocol.undo_claim(&claim).await;
        }
    }

    /// Goes on trying while the worker drains; when it is to stop at once, only for a moment.
    async fn pause(&self, recovery: &mut Recovery, backoff: &mut Backoff, error: &Error) -> bool {
        let stop_early = async {
            self.shared.hard_stop.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            () = recovery.wait(backoff, error) => true,
            () = stop_early => false,
        }
    }
}

/// Everything that is still to be said, in order, the end last.
fn operations(held: &Held, logs: Vec<Vec<LogChunk>>, outcome: Outcome) -> Vec<Operation> {
    let mut operations = Vec::with_capacity(logs.len() + 2);
    // That the work has begun goes without saying when it has ended.
    if let Some(said) = held.take_progress().filter(|said| said.percent > 0.0 || !said.message.is_empty()) {
        let (percent, message) = (Some(said.percent), said.message);
        operations.push(Operation { percent, message, ..operation(held, Do::Progress) });
    }
    operations.extend(logs.into_iter().map(|chunks| Operation { chunks, ..operation(held, Do::Log) }));
    operations.push(match outcome {
        Outcome::Complete(result) => Operation { result, ..operation(held, Do::Complete) },
        Outcome::Fail(failure) => {
            Operation { message: message(failure.message), permanent: failure.permanent, ..operation(held, Do::Fail) }
        }
        Outcome::Release => operation(held, Do::Release),
        Outcome::PassOn { why, delay } => {
            let delay_ms = Some(delay.as_millis().max(1) as u64);
            Operation { message: message(why), delay_ms, ..operation(held, Do::Release) }
        }
    });
    operations
}

fn operation(held: &Held, what: Do) -> Operation {
    Operation {
        what,
        lease: held.leased.lease.clone(),
        percent: None,
        message: String::new(),
        data: String::new(),
        chunks: Vec::new(),
        result: None,
        permanent: false,
        delay_ms: None,
    }
}

/// A result the server does not take (too large, against its schema) would be made again by every attempt.
fn refused_result(held: &Held, error: &Error) -> Operation {
    let message = message(format!("the result was refused: {error}"));
    Operation { message, permanent: true, ..operation(held, Do::Fail) }
}

/// The end of a text that is too long says more than its start.
fn message(text: String) -> String {
    let text = text.replace('\0', "\u{fffd}");
    if text.len() <= MESSAGE_BYTES_MAX {
        return text;
    }
    let start = text.ceil_char_boundary(text.len() - MESSAGE_BYTES_MAX);
    format!("…{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_keep_their_end() {
        assert_eq!(message("a\0b".into()), "a\u{fffd}b");
        let long = message(format!("start{}end", "é".repeat(MESSAGE_BYTES_MAX)));
        assert!(long.starts_with('…') && long.ends_with("éend") && long.len() <= MESSAGE_BYTES_MAX + 3);
    }
}
