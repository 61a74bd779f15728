//! What commands may still do when storage runs out: on a disk that is nearly full, and in a namespace that has used up its quota.

use super::{Command, all::All, audited::Audited, due::Due};

/// What a command does to storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Storage {
    /// Ends or removes something, keeps a lease, or takes away access. It may use the disk's reserve: otherwise a full disk could
    /// never become less full.
    Frees,
    /// Only checks something, or makes one small change that others overwrite. It may use the reserve too, and does not decide
    /// whether the commands it goes with may.
    Neutral,
    /// Makes or changes rows that stay small: it needs room on the disk, and is no reason to ask for the quota.
    Small,
    /// Brings what the namespace keeps from now on.
    Stores,
}

impl Command {
    pub fn storage(&self) -> Storage {
        match self {
            Command::Complete(_)
            | Command::Fail(_)
            | Command::Release(_)
            | Command::PassOn(_)
            | Command::Cancel(_)
            | Command::CancelRun(_)
            | Command::StopWork(_)
            | Command::UnregisterWorker(_)
            | Command::DeleteDefinition(_)
            | Command::DeleteSchedule(_)
            | Command::DisablePrincipal(_)
            | Command::DeletePrincipal(_)
            | Command::RevokeToken(_) => Storage::Frees,
            Command::Start(_)
            | Command::Renew(_)
            | Command::Holds(_)
            | Command::Look(_)
            | Command::Heartbeat(_)
            | Command::DrainWorker(_)
            | Command::Doubt(_)
            | Command::Grace(_)
            | Command::Excuse(_)
            | Command::Due(Due::Job(_) | Due::Record(_) | Due::Later(_))
            | Command::CreatePrincipal(_)
            | Command::ChangePrincipal(_)
            | Command::EnablePrincipal(_)
            | Command::IssueToken(_)
            | Command::KeepToken(_)
            | Command::ReplaceToken(_)
            | Command::UseToken(_)
            | Command::NeedAdmin(_)
            | Command::DeleteRecord(_) => Storage::Neutral,
            // Steps of runs that have begun go on, and bring no more than the run may have.
            Command::Advance(_)
            | Command::Claim(_)
            | Command::Progress(_)
            | Command::Remind(_)
            | Command::Signal(_)
            | Command::Judge(_)
            | Command::RegisterWorker(_)
            | Command::Tell(_) => Storage::Small,
            Command::Submit(_)
            | Command::SubmitRun(_)
            | Command::KeepPart(_)
            | Command::Retry(_)
            | Command::AppendLog(_)
            | Command::Link(_)
            | Command::PutDefinition(_)
            | Command::PutSchedule(_)
            | Command::Fire(_)
            | Command::RunSchedule(_)
            | Command::PutRecord(_) => Storage::Stores,
            Command::Audited(Audited { command, .. }) => command.storage(),
            Command::All(All { commands }) => together(commands),
        }
    }

    /// Bytes that a report leaves behind.
    pub fn reported_bytes(&self) -> usize {
        match self {
            Command::Complete(complete) => complete.result.len(),
            Command::Fail(fail) => fail.message.len() + fail.result.len(),
            Command::All(All { commands }) => commands.iter().map(Command::reported_bytes).sum(),
            Command::Audited(Audited { command, .. }) => command.reported_bytes(),
            _ => 0,
        }
    }

    /// Whether it may be carried out while nothing but the disk's reserve is left.
    pub fn may_use_reserve(&self) -> bool {
        self.storage() <= Storage::Neutral
    }
}

/// A report, a delete or a step of a run takes along what is written beside it. Otherwise the command that needs most decides.
fn together(commands: &[Command]) -> Storage {
    let each = || commands.iter().map(Command::storage);
    let is_step = |command: &Command| matches!(command, Command::Advance(_));
    if each().any(|one| one == Storage::Frees) {
        Storage::Frees
    } else if commands.iter().any(is_step) {
        Storage::Small
    } else {
        each().max().unwrap_or(Storage::Neutral)
    }
}
