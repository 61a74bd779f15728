//! Replies in the words of a scenario.

use super::names::{Names, shown};
use windlass_core::{
    Job, Refusal, Reply, Timestamp,
    reply::{Ended, KnownRun, KnownToken, Linked, Logged, Renewed, Seen, Signalled, Submitted, Unregistered},
    run::RunState,
};

/// What stands behind `->` when exactly this was answered.
pub(super) fn reply(reply: &Result<Reply, Refusal>, names: &Names, now: Timestamp) -> String {
    let job = |job: &Job| format!("{} {}", names.job_name(job.key.id), job.state.name());
    let also = |yes: bool, word: &str| if yes { format!(" {word}") } else { String::new() };
    match reply {
        Err(refusal) => refused(refusal),
        Ok(Reply::Done | Reply::All(_)) => "done".into(),
        Ok(Reply::Submitted(Submitted { job, state, existing })) => {
            format!("{} {}{}", names.job_name(*job), state.name(), also(*existing, "existing"))
        }
        Ok(Reply::Leases(leases)) if leases.is_empty() => "nothing".into(),
        Ok(Reply::Leases(leases)) => {
            let leased = leases.iter().map(|leased| format!("{} as …", names.job_name(leased.lease.job)));
            leased.collect::<Vec<_>>().join(", ")
        }
        Ok(Reply::Renewed(Renewed { until, cancelled })) => {
            let until = until.map_or_else(|| "worker".to_string(), shown);
            format!("until {until}{}", also(*cancelled, "cancelled"))
        }
        Ok(Reply::Ended(Ended { job: ended, replayed })) => format!("{}{}", job(ended), also(*replayed, "replayed")),
        Ok(Reply::Job(found)) => job(found),
        Ok(Reply::Seen(Seen { job: found, payload, worker })) => {
            let payload = String::from_utf8_lossy(payload.as_bytes());
            let worker = worker.as_ref().map_or("nobody", |worker| worker.id.as_str());
            format!("{} {payload} with {worker}", job(found))
        }
        Ok(Reply::Logged(Logged { dropped_bytes, cancelled, .. })) => {
            format!("dropped {dropped_bytes}{}", also(*cancelled, "cancelled"))
        }
        Ok(Reply::Unregistered(Unregistered { lost: 0 })) => "done".into(),
        Ok(Reply::Unregistered(Unregistered { lost })) => format!("done, {lost} lost"),
        Ok(Reply::Worker(worker)) => format!("{} {}", worker.id, worker.liveness(now).name()),
        Ok(Reply::Run(KnownRun { id, run })) => format!("{} {}", names.run_name(*id), run_state(run.state())),
        Ok(Reply::Signalled(Signalled { steps, kept })) => {
            if *kept {
                "kept".into()
            } else {
                format!("{steps} steps")
            }
        }
        Ok(Reply::Linked(Linked { definition, created, .. })) => {
            format!("version {}{}", definition.version, also(*created, "created"))
        }
        Ok(Reply::Definition(definition)) => format!("version {}", definition.version),
        Ok(Reply::Principal(principal) | Reply::Token(KnownToken { principal, .. })) => principal.name.to_string(),
        Ok(Reply::Record(record)) => format!("version {}", record.version),
    }
}

/// The code, and what the refusal names besides.
fn refused(refusal: &Refusal) -> String {
    let more = match refusal {
        Refusal::LeaseLost { state } | Refusal::NotHeld { state } | Refusal::Final { state } => {
            state.name().to_string()
        }
        Refusal::Invalid { field, .. } | Refusal::TooLarge { field, .. } => field.to_string(),
        Refusal::Cycle { path } => path.join(" "),
        Refusal::WorkerNotOnline { liveness, .. } => liveness.to_string(),
        Refusal::VersionMismatch { is, .. } => is.to_string(),
        Refusal::NotFound { what, .. } | Refusal::Exists { what, .. } | Refusal::Damaged { what, .. } => {
            what.to_string()
        }
        Refusal::TooMany { setting, .. } | Refusal::OverQuota { setting, .. } => setting.to_string(),
        Refusal::NotHolder
        | Refusal::StoreFull { .. }
        | Refusal::LastAdmin
        | Refusal::AccessEnded
        | Refusal::AccessChanged
        | Refusal::NotStarted
        | Refusal::AlreadyStarted
        | Refusal::KeyReused { .. }
        | Refusal::WorkerDraining { .. }
        | Refusal::Forbidden { .. } => String::new(),
    };
    format!("refused {} {more}", refusal.code()).trim_end().to_string()
}

pub(super) fn run_state(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
    }
}

/// Refusals may be expected by their code alone; everything else word for word.
pub(super) fn fits(expected: &str, answered: &str) -> bool {
    let by_code = || expected.starts_with("refused ") && answered.starts_with(&format!("{expected} "));
    expected == answered || by_code()
}
