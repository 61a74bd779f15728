//! What must hold after every batch, whatever was asked: kept as a ledger of all that was told, apart from the rules.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};
use windlass_core::{
    Command, Event, Job, JobId, JobKey, LeaseId, Millis, Namespace, Payload, Refusal, Reply, RunId, State, Timestamp,
    What,
    commands::holder::{Address, Holder},
    reply::Ended,
};

/// How far a job has come, by its events alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Waiting,
    Claimed,
    Running,
    Ended(State),
}

impl Phase {
    fn of(state: State) -> Self {
        match state {
            State::Blocked | State::Scheduled | State::Pending => Phase::Waiting,
            State::Claimed => Phase::Claimed,
            State::Running => Phase::Running,
            State::Completed | State::Failed | State::Cancelled | State::Skipped => Phase::Ended(state),
        }
    }

    /// Where this event leads, if it may come now.
    fn after(self, what: &What) -> Option<Phase> {
        use Phase::{Claimed, Ended, Running, Waiting};
        match (self, what) {
            (Waiting, What::Ready { .. }) => Some(Waiting),
            (Waiting, What::Claimed { .. }) => Some(Claimed),
            (Waiting, What::Skipped { .. }) => Some(Ended(State::Skipped)),
            (Waiting | Claimed | Running, What::Failed { .. }) => Some(Ended(State::Failed)),
            (Waiting | Claimed | Running, What::Cancelled { .. }) => Some(Ended(State::Cancelled)),
            (Claimed, What::Started { .. }) | (Running, What::Progress { .. }) => Some(Running),
            // A wait completes without anybody having worked.
            (Waiting | Claimed | Running, What::Completed { .. }) => Some(Ended(State::Completed)),
            (Claimed | Running, What::Requeued { .. } | What::Released { .. }) => Some(Waiting),
            (Claimed | Running, What::CancelRequested { .. }) => Some(self),
            _ => None,
        }
    }
}

/// What befell an attempt earlier in the same batch.
#[derive(PartialEq)]
enum Fate {
    /// Its lease was given its length again.
    Graced,
    /// It has ended.
    Over,
}

struct Entry {
    phase: Phase,
    attempt: u32,
    cancel_requested: bool,
    /// The row after the last batch; none before its first.
    row: Option<Job>,
}

/// A final report as it was sent.
#[derive(Clone, PartialEq)]
pub(super) enum Report {
    Completed(Payload),
    Failed { message: Arc<str>, retryable: bool, result: Payload },
}

impl Report {
    fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Complete(complete) => Some(Report::Completed(complete.result.clone())),
            Command::Fail(fail) => {
                let (message, result) = (fail.message.clone(), fail.result.clone());
                Some(Report::Failed { message, retryable: fail.retryable, result })
            }
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Ledger {
    entries: HashMap<JobKey, Entry>,
    /// Lines were taken although the lease had run out: by the end of the batch these must have ended.
    told_late: Vec<JobKey>,
    /// The report that was accepted last about each job, and the lease it was about.
    reports: HashMap<JobKey, (LeaseId, Report)>,
    /// How often a report was recognised, and how often one was refused because it said something else.
    pub repeated: usize,
    pub contradicted: usize,
    /// Jobs that were retried as new ones, also after they were removed.
    pub retries: HashMap<JobKey, JobId>,
    /// Every job a run ever had, and how it ended.
    pub runs: HashMap<(Namespace, RunId), BTreeMap<JobKey, Option<State>>>,
}

impl Ledger {
    /// Writes that were accepted came from the one that held the job, in time, and at most one ended it.
    pub fn check_writes(
        &mut self,
        commands: &[&Command],
        replies: &[Result<Reply, Refusal>],
        now: Timestamp,
    ) -> Result<(), String> {
        let mut fates = HashMap::new();
        for (command, reply) in commands.iter().zip(replies) {
            match reply {
                Ok(reply) => self.check_write(command, reply, now, &mut fates)?,
                Err(refusal) => self.check_refused(command, refusal)?,
            }
        }
        Ok(())
    }

    /// A report is refused under the lease whose end it tells only if that end was told otherwise.
    fn check_refused(&mut self, command: &Command, refusal: &Refusal) -> Result<(), String> {
        let (Some(holder), Some(report)) = (holder_of(command), Report::of(command)) else { return Ok(()) };
        let (Address::Lease(lease), Refusal::LeaseLost { .. }) = (&holder.address, refusal) else { return Ok(()) };
        match self.reports.get(&holder.job_key()) {
            Some((ended, accepted)) if ended == lease && self.is_latest(&holder.job_key(), lease) => {
                if *accepted == report {
                    return Err(format!("{} was refused although it repeats what was accepted", command.name()));
                }
                self.contradicted += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn is_latest(&self, key: &JobKey, lease: &LeaseId) -> bool {
        let row = self.entries.get(key).and_then(|entry| entry.row.as_ref());
        row.is_some_and(|row| row.lease_id().as_ref() == Some(lease))
    }

    /// What is answered as a repetition says what was accepted, to the last byte.
    fn check_repeated(&mut self, command: &Command, key: &JobKey) -> Result<(), String> {
        let accepted = self.reports.get(key).map(|(_, report)| report);
        if accepted.is_none() || accepted != Report::of(command).as_ref() {
            return Err(format!("{} was answered as a repetition and is none: {key:?}", command.name()));
        }
        self.repeated += 1;
        Ok(())
    }

    fn check_write(
        &mut self,
        command: &Command,
        reply: &Reply,
        now: Timestamp,
        fates: &mut HashMap<JobKey, Fate>,
    ) -> Result<(), String> {
        if let (Command::All(all), Reply::All(replies)) = (command, reply) {
            let mut both = all.commands.iter().zip(replies);
            return both.try_for_each(|(command, reply)| self.check_write(command, reply, now, fates));
        }
        if let Command::Grace(grace) = command {
            fates.entry(grace.job.clone()).or_insert(Fate::Graced);
        }
        let Some(holder) = holder_of(command) else { return Ok(()) };
        let key = holder.job_key();
        let late_log = matches!((command, &holder.address), (Command::AppendLog(_), Address::Job(_)));
        let over = self.entries.get(&key).is_some_and(|entry| matches!(entry.phase, Phase::Ended(_)));
        if late_log && (over || fates.get(&key) == Some(&Fate::Over)) {
            return Ok(());
        }
        if matches!(reply, Reply::Ended(Ended { replayed: true, .. })) {
            return self.check_repeated(command, &key);
        }
        let row = self.entries.get(&key).and_then(|entry| entry.row.as_ref());
        let row = row.ok_or_else(|| format!("{} was accepted for a job nobody knew", command.name()))?;
        if let (Command::AppendLog(_), Address::Lease(id), Some(last)) = (command, &holder.address, &row.live.lease)
            && last.secret == id.secret
            && last.deadline.is_some_and(|deadline| deadline <= now)
        {
            return Ok(());
        }
        let fate = fates.get(&key);
        if fate == Some(&Fate::Over) {
            return Err(format!("{} was accepted after the attempt had ended: {key:?}", command.name()));
        }
        let lapsed = row.overdue(now).is_some() && fate != Some(&Fate::Graced);
        if late_log && lapsed {
            // A command before it, refused for coming too late, has ended the job.
            self.told_late.push(key);
            return Ok(());
        }
        if !row.state.is_held() || lapsed {
            return Err(format!("{} was accepted without a live lease: {row:?}", command.name()));
        }
        let right = match &holder.address {
            Address::Lease(lease) => row.lease_id() == Some(LeaseId::new(key.id, lease.secret)),
            Address::Worker { worker, .. } => row.holder() == Some(worker),
            Address::Owner { principal, .. } => {
                row.live.lease.as_ref().is_some_and(|lease| lease.principal.as_ref() == Some(principal))
            }
            Address::Job(_) => true,
        };
        if !right {
            return Err(format!("{} was accepted from somebody else: {row:?}", command.name()));
        }
        let lease = row.lease_id();
        if let (Some(lease), Some(report)) = (lease, Report::of(command)) {
            self.reports.insert(key.clone(), (lease, report));
        }
        if matches!(command, Command::Complete(_) | Command::Fail(_) | Command::Release(_)) {
            fates.insert(key, Fate::Over);
        }
        Ok(())
    }

    /// Every job's events come in an order that makes sense.
    pub fn follow(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            if let What::RunStarted { run } = event.what {
                // An id may be used again once the run it named was removed.
                self.runs.insert((event.namespace.clone(), run), BTreeMap::new());
            }
            let Some(id) = event.what.job() else { continue };
            let key = JobKey::new(&event.namespace, id);
            if let What::Submitted { .. } = event.what {
                let entry = Entry { phase: Phase::Waiting, attempt: 0, cancel_requested: false, row: None };
                if self.entries.insert(key.clone(), entry).is_some() {
                    return Err(format!("{key:?} was submitted twice"));
                }
                continue;
            }
            let entry = self.entries.get_mut(&key).ok_or_else(|| format!("{event:?} before it was submitted"))?;
            let next = entry.phase.after(&event.what);
            entry.phase = next.ok_or_else(|| format!("{:?} while {:?} ({key:?})", event.what, entry.phase))?;
            entry.note(&event.what).map_err(|why| format!("{key:?}: {why}"))?;
        }
        Ok(())
    }

    /// Rows agree with the events, final ones never change, and none leaves before its time.
    pub fn compare(&mut self, jobs: &[Job], retention: Millis, now: Timestamp) -> Result<(), String> {
        for key in self.told_late.drain(..) {
            let phase = self.entries.get(&key).map(|entry| entry.phase);
            if !matches!(phase, Some(Phase::Ended(_))) {
                return Err(format!(
                    "AppendLog was accepted without a live lease, and {key:?} has not ended: {phase:?}"
                ));
            }
        }
        let there: HashSet<&JobKey> = jobs.iter().map(|job| &job.key).collect();
        for (key, entry) in &self.entries {
            if !there.contains(key) {
                entry.may_leave(retention, now).map_err(|why| format!("{key:?} is gone: {why}"))?;
            }
        }
        self.entries.retain(|key, _| there.contains(key));
        self.reports.retain(|key, _| there.contains(key));
        for job in jobs {
            let entry = self.entries.get_mut(&job.key).ok_or_else(|| format!("nobody submitted {job:?}"))?;
            entry.compare(job).map_err(|why| format!("{why}: {job:?}"))?;
            self.retries.extend(job.live.retry_job.map(|retry| (job.key.clone(), retry)));
            if let Some(run) = job.run() {
                let ended = job.state.is_final().then_some(job.state);
                let at = (job.key.namespace.clone(), run);
                self.runs.entry(at).or_default().insert(job.key.clone(), ended);
            }
            entry.row = Some(job.clone());
        }
        Ok(())
    }
}

impl Entry {
    fn note(&mut self, what: &What) -> Result<(), String> {
        match what {
            What::Claimed { attempt, .. } => {
                if *attempt != self.attempt + 1 {
                    return Err(format!("attempt {attempt} follows attempt {}", self.attempt));
                }
                self.attempt = *attempt;
            }
            What::CancelRequested { .. } => {
                if self.cancel_requested {
                    return Err("its cancellation was told twice".into());
                }
                self.cancel_requested = true;
            }
            What::Requeued { .. } | What::Released { .. } if self.cancel_requested => {
                return Err("a job that is being cancelled was queued again".into());
            }
            _ => {}
        }
        Ok(())
    }

    fn may_leave(&self, retention: Millis, now: Timestamp) -> Result<(), String> {
        let row = self.row.as_ref().ok_or("it was never there")?;
        let over = row.due_exactly(retention).is_some_and(|due| due <= now);
        if row.state.is_final() && over { Ok(()) } else { Err(format!("its time had not come: {row:?}")) }
    }

    fn compare(&self, job: &Job) -> Result<(), String> {
        if Phase::of(job.state) != self.phase {
            return Err(format!("by its events it is {:?}", self.phase));
        }
        if job.live.attempt != self.attempt {
            return Err(format!("{} claims were told", self.attempt));
        }
        let Some(before) = &self.row else { return Ok(()) };
        if before.spec != job.spec || before.lane != job.lane || before.priority != job.priority {
            return Err(format!("what was submitted has changed from {before:?}"));
        }
        if before.state.is_final() {
            let mut same = job.clone();
            (same.due, same.live.must_pass_on) = (before.due, before.live.must_pass_on);
            same.live.passed_on = before.live.passed_on;
            same.live.retried_by = before.live.retried_by;
            // Lines that are addressed to the job are taken after its end, too, and the last words of one whose time is over.
            same.live.log = before.live.log.clone();
            if !same.live.has_place {
                (same.live.has_place, same.live.place_until) = (before.live.has_place, before.live.place_until);
            }
            if same != *before {
                return Err(format!("a final job has changed from {before:?}"));
            }
        }
        Ok(())
    }
}

pub(super) fn holder_of(command: &Command) -> Option<&Holder> {
    match command {
        Command::Start(command) => Some(&command.holder),
        Command::Renew(command) => Some(&command.holder),
        Command::Progress(command) => Some(&command.holder),
        Command::AppendLog(command) => Some(&command.holder),
        Command::Complete(command) => Some(&command.holder),
        Command::Fail(command) => Some(&command.holder),
        Command::Release(command) => Some(&command.holder),
        Command::Holds(command) => Some(&command.holder),
        _ => None,
    }
}
