//! One file a command: what it carries, what it needs to see, and what it decides. Its table of cases is in
//! `tests/rules/commands`.
//!
//! `decide` answers `Ok(Ok(reply))`, or `Ok(Err(refusal))` where the refusal brings a change with it (the lease had run
//! out, and now the job says so), or `Err(stop)`: refused without a trace, or rows missing.

use self::{
    advance::Advance,
    all::All,
    append_log::AppendLog,
    ask::Ask,
    audited::Audited,
    cancel::Cancel,
    cancel_run::CancelRun,
    claim::Claim,
    complete::Complete,
    definitions::{DeleteDefinition, PutDefinition},
    doubt::Doubt,
    due::Due,
    fail::Fail,
    fire::{DeleteSchedule, Fire, PutSchedule, RunSchedule},
    grace::{Excuse, Grace},
    holds::Holds,
    keep_part::KeepPart,
    link::Link,
    look::Look,
    principals::{ChangePrincipal, CreatePrincipal, DeletePrincipal, DisablePrincipal, EnablePrincipal},
    progress::ReportProgress,
    records::{DeleteRecord, PutRecord},
    release::{PassOn, Release},
    remind::Remind,
    renew::Renew,
    retry::Retry,
    signal::{Judge, Signal},
    start::Start,
    stop_work::StopWork,
    submit::Submit,
    submit_run::SubmitRun,
    tell::Tell,
    tokens::{IssueToken, KeepToken, NeedAdmin, ReplaceToken, RevokeToken, UseToken},
    workers::{DrainWorker, Heartbeat, RegisterWorker, UnregisterWorker},
};
use crate::{
    desk::{Desk, Stop},
    model::{
        definition::Definition,
        job::Job,
        keys::Keys,
        name::Namespace,
        principal::Principal,
        record::Record,
        refusal::Refusal,
        reply::{
            Ended, KnownRun, KnownToken, Leased, Linked, Logged, Renewed, Reply, Seen, Signalled, Submitted,
            Unregistered,
        },
        stage,
        worker::Worker,
    },
};

pub mod advance;
pub mod all;
pub mod append_log;
pub mod ask;
pub mod audited;
pub mod cancel;
pub mod cancel_run;
pub mod claim;
pub mod complete;
pub mod credential;
pub mod definitions;
pub mod doubt;
pub mod due;
pub mod fail;
pub mod fire;
pub mod grace;
pub mod holder;
pub mod holds;
pub mod keep_part;
pub mod link;
pub mod look;
pub mod principals;
pub mod progress;
pub mod records;
pub mod release;
pub mod remind;
pub mod renew;
pub mod retry;
pub mod signal;
pub mod start;
pub mod stop_work;
pub mod storage;
pub mod submit;
pub mod submit_run;
pub mod tell;
pub mod tokens;
pub mod workers;

pub type Decided<T> = Result<Result<T, Refusal>, Stop>;

macro_rules! commands {
    // Whoever asks for several commands, or one with its author, says which: `ask.rs` has what they answer.
    (@asks All($all:path) -> $many:ty, Audited($audited:path) -> $one:ty,) => {};
    (@asks $name:ident($path:path) -> $reply:ty, $($rest:tt)+) => {
        impl From<$path> for Command {
            fn from(command: $path) -> Self { Command::$name(command) }
        }
        impl Ask for $path {
            type Reply = $reply;
            fn read(reply: Reply) -> Option<Self::Reply> { reply.try_into().ok() }
        }
        commands! { @asks $($rest)+ }
    };
    ($($name:ident($path:path) -> $reply:ty,)+) => {
        /// Everything that can be asked of the engine to change.
        #[derive(Clone, Debug)]
        pub enum Command { $($name($path)),+ }

        commands! { @asks $($name($path) -> $reply,)+ }

        impl Command {
            pub fn name(&self) -> &'static str {
                match self { $(Command::$name(_) => stringify!($name)),+ }
            }
            /// Every command's name, for tests that want to have seen them all.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Rows it is known to need from the start, so that they come with the first load.
            pub(crate) fn keys(&self, keys: &mut Keys) {
                match self { $(Command::$name(command) => command.keys(keys)),+ }
            }
            pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Reply> {
                match self { $(Command::$name(command) => {
                    let decided: Decided<$reply> = command.decide(desk);
                    Ok(decided?.map(Reply::from))
                }),+ }
            }
        }
    };
}

commands! {
    Submit(submit::Submit) -> Submitted,
    SubmitRun(submit_run::SubmitRun) -> KnownRun,
    KeepPart(keep_part::KeepPart) -> (),
    Claim(claim::Claim) -> Vec<Leased>,
    Start(start::Start) -> Box<Job>,
    Renew(renew::Renew) -> Renewed,
    Progress(progress::ReportProgress) -> Box<Job>,
    AppendLog(append_log::AppendLog) -> Logged,
    Complete(complete::Complete) -> Ended,
    Fail(fail::Fail) -> Ended,
    Release(release::Release) -> Box<Job>,
    Holds(holds::Holds) -> Box<Job>,
    Look(look::Look) -> Seen,
    PassOn(release::PassOn) -> Box<Job>,
    Cancel(cancel::Cancel) -> Box<Job>,
    CancelRun(cancel_run::CancelRun) -> KnownRun,
    StopWork(stop_work::StopWork) -> KnownRun,
    Advance(advance::Advance) -> (),
    Remind(remind::Remind) -> (),
    Signal(signal::Signal) -> Signalled,
    Judge(signal::Judge) -> Box<Job>,
    Retry(retry::Retry) -> Submitted,
    Due(due::Due) -> (),
    Grace(grace::Grace) -> (),
    Excuse(grace::Excuse) -> (),
    RegisterWorker(workers::RegisterWorker) -> Box<Worker>,
    Heartbeat(workers::Heartbeat) -> Box<Worker>,
    DrainWorker(workers::DrainWorker) -> Box<Worker>,
    UnregisterWorker(workers::UnregisterWorker) -> Unregistered,
    Doubt(doubt::Doubt) -> (),
    Link(link::Link) -> Linked,
    PutDefinition(definitions::PutDefinition) -> Box<Definition>,
    DeleteDefinition(definitions::DeleteDefinition) -> (),
    PutSchedule(fire::PutSchedule) -> (),
    DeleteSchedule(fire::DeleteSchedule) -> (),
    Fire(fire::Fire) -> (),
    RunSchedule(fire::RunSchedule) -> Submitted,
    CreatePrincipal(principals::CreatePrincipal) -> Box<Principal>,
    ChangePrincipal(principals::ChangePrincipal) -> Box<Principal>,
    DeletePrincipal(principals::DeletePrincipal) -> (),
    DisablePrincipal(principals::DisablePrincipal) -> Box<Principal>,
    EnablePrincipal(principals::EnablePrincipal) -> Box<Principal>,
    IssueToken(tokens::IssueToken) -> KnownToken,
    RevokeToken(tokens::RevokeToken) -> (),
    UseToken(tokens::UseToken) -> KnownToken,
    KeepToken(tokens::KeepToken) -> KnownToken,
    ReplaceToken(tokens::ReplaceToken) -> (),
    NeedAdmin(tokens::NeedAdmin) -> (),
    PutRecord(records::PutRecord) -> Box<Record>,
    DeleteRecord(records::DeleteRecord) -> (),
    Tell(tell::Tell) -> (),
    All(all::All) -> Vec<Reply>,
    Audited(audited::Audited<Box<Command>>) -> Reply,
}

impl Command {
    /// Whether its acknowledgement promises to outlive a power cut. Losing one of the others delivers a job once more at
    /// worst, which leases make harmless, so nobody waits for the disk because of them.
    pub fn is_promise(&self) -> bool {
        if let Command::PutRecord(PutRecord { key, .. }) | Command::DeleteRecord(DeleteRecord { key, .. }) = self {
            return *key.kind != *stage::BEGUN;
        }
        !matches!(
            self,
            Command::Claim(_)
                | Command::Renew(_)
                | Command::Progress(_)
                | Command::AppendLog(_)
                | Command::Holds(_)
                | Command::Look(_)
                | Command::KeepPart(_)
                | Command::Heartbeat(_)
        )
    }

    /// Whose it is. None: it has no parts that would say.
    pub fn namespace(&self) -> Option<&Namespace> {
        Some(match self {
            Command::Submit(Submit { namespace, .. })
            | Command::SubmitRun(SubmitRun { namespace, .. })
            | Command::KeepPart(KeepPart { namespace, .. })
            | Command::Claim(Claim { namespace, .. })
            | Command::Look(Look { namespace, .. })
            | Command::Cancel(Cancel { namespace, .. })
            | Command::CancelRun(CancelRun { namespace, .. })
            | Command::StopWork(StopWork { namespace, .. })
            | Command::Advance(Advance { namespace, .. })
            | Command::Remind(Remind { namespace, .. })
            | Command::Signal(Signal { namespace, .. })
            | Command::Judge(Judge { namespace, .. })
            | Command::Retry(Retry { namespace, .. })
            | Command::RegisterWorker(RegisterWorker { namespace, .. })
            | Command::Heartbeat(Heartbeat { namespace, .. })
            | Command::DrainWorker(DrainWorker { namespace, .. })
            | Command::UnregisterWorker(UnregisterWorker { namespace, .. })
            | Command::Doubt(Doubt { namespace, .. })
            | Command::Excuse(Excuse { namespace, .. })
            | Command::Link(Link { namespace, .. })
            | Command::PutDefinition(PutDefinition { namespace, .. })
            | Command::DeleteDefinition(DeleteDefinition { namespace, .. })
            | Command::PutSchedule(PutSchedule { namespace, .. })
            | Command::DeleteSchedule(DeleteSchedule { namespace, .. })
            | Command::Fire(Fire { namespace, .. })
            | Command::RunSchedule(RunSchedule { namespace, .. })
            | Command::CreatePrincipal(CreatePrincipal { namespace, .. })
            | Command::DisablePrincipal(DisablePrincipal { namespace, .. })
            | Command::EnablePrincipal(EnablePrincipal { namespace, .. })
            | Command::IssueToken(IssueToken { namespace, .. })
            | Command::RevokeToken(RevokeToken { namespace, .. })
            | Command::UseToken(UseToken { namespace, .. })
            | Command::ChangePrincipal(ChangePrincipal { namespace, .. })
            | Command::DeletePrincipal(DeletePrincipal { namespace, .. })
            | Command::KeepToken(KeepToken { namespace, .. })
            | Command::ReplaceToken(ReplaceToken { namespace, .. })
            | Command::NeedAdmin(NeedAdmin { namespace, .. })
            | Command::Tell(Tell { namespace, .. }) => namespace,
            Command::Start(Start { holder })
            | Command::Renew(Renew { holder, .. })
            | Command::Progress(ReportProgress { holder, .. })
            | Command::AppendLog(AppendLog { holder, .. })
            | Command::Complete(Complete { holder, .. })
            | Command::Fail(Fail { holder, .. })
            | Command::Release(Release { holder })
            | Command::PassOn(PassOn { holder, .. })
            | Command::Holds(Holds { holder }) => &holder.namespace,
            Command::Due(Due::Job(key)) | Command::Grace(Grace { job: key }) => &key.namespace,
            Command::Due(Due::Record(key) | Due::Later(key))
            | Command::PutRecord(PutRecord { key, .. })
            | Command::DeleteRecord(DeleteRecord { key, .. }) => &key.namespace,
            Command::All(All { commands }) => return commands.first().and_then(Command::namespace),
            Command::Audited(Audited { command, .. }) => return command.namespace(),
        })
    }

    /// Jobs it makes.
    pub fn jobs(&self) -> usize {
        match self {
            Command::Submit(_) | Command::RunSchedule(_) => 1,
            Command::SubmitRun(run) => run.nodes.len(),
            Command::Advance(advance) => advance.jobs(),
            Command::All(all) => all.commands.iter().map(Command::jobs).sum(),
            Command::Audited(audited) => audited.command.jobs(),
            _ => 0,
        }
    }

    /// How much of a batch this takes up: bytes it carries plus a little for being there.
    pub fn weight(&self) -> usize {
        const BASE: usize = 256;
        BASE + match self {
            Command::Submit(submit) => submit.job.weight(),
            Command::SubmitRun(run) => {
                let plan: usize = run.plan.parts.iter().map(|part| part.len()).sum();
                plan + run.nodes.iter().map(|node| BASE + node.weight()).sum::<usize>()
            }
            Command::KeepPart(part) => part.text.len(),
            Command::Advance(advance) => advance.weight(),
            Command::Signal(signal) => signal.payload.len(),
            Command::Claim(claim) => claim.secrets.len() * BASE + claim.offer.bytes(),
            Command::Complete(complete) => complete.result.len(),
            Command::AppendLog(append) => append.data.len(),
            Command::Fail(fail) => fail.message.len() + fail.result.len(),
            Command::Judge(judge) => judge.why.len() + judge.approved.as_ref().map_or(0, |result| result.len()),
            Command::PassOn(pass) => pass.why.len(),
            Command::PutRecord(put) => put.value.len(),
            Command::Tell(tell) => tell.data.len(),
            Command::PutDefinition(put) => put.body.len(),
            Command::Link(link) => link.body.len(),
            Command::PutSchedule(put) => put.schedule.template.payload.len(),
            Command::RegisterWorker(register) => {
                register.tags.bytes() + register.extra.as_ref().map_or(0, |extra| extra.len())
            }
            Command::Audited(audited) => audited.command.weight(),
            Command::All(all) => all.commands.iter().map(Command::weight).sum(),
            Command::UnregisterWorker(_) | Command::CancelRun(_) | Command::StopWork(_) => 64 * BASE,
            // They carry names and numbers, which have limits of their own.
            Command::Start(_)
            | Command::Renew(_)
            | Command::Progress(_)
            | Command::Release(_)
            | Command::Holds(_)
            | Command::Look(_)
            | Command::Cancel(_)
            | Command::Remind(_)
            | Command::Retry(_)
            | Command::Due(_)
            | Command::Grace(_)
            | Command::Excuse(_)
            | Command::Heartbeat(_)
            | Command::DrainWorker(_)
            | Command::Doubt(_)
            | Command::DeleteDefinition(_)
            | Command::DeleteSchedule(_)
            | Command::Fire(_)
            | Command::RunSchedule(_)
            | Command::CreatePrincipal(_)
            | Command::ChangePrincipal(_)
            | Command::DeletePrincipal(_)
            | Command::DisablePrincipal(_)
            | Command::EnablePrincipal(_)
            | Command::IssueToken(_)
            | Command::RevokeToken(_)
            | Command::UseToken(_)
            | Command::KeepToken(_)
            | Command::ReplaceToken(_)
            | Command::NeedAdmin(_)
            | Command::DeleteRecord(_) => 0,
        }
    }
}
