//! What follows a verb as `name=value`.

use super::{
    super::{START, TestResult},
    line::{Line, length},
    names::Names,
};
use std::sync::Arc;
use windlass_core::{
    Facet, Millis, Namespace, Payload, Tags, Timestamp,
    commands::submit::NewJob,
    job::{ConcurrencyKey, DefinitionRef, UniqueKey, UniqueUntil},
    policy::{
        AliveBy, Backoff, CancelPolicy, FailurePolicy, JobPolicy, LeaseEnd, LeaseLength, MayClaim, OnlineFrom,
        ParentPolicy, RetryForm, StartPolicy, Unregister, WorkerPolicy,
    },
    stage::{Stage, Wait},
};

/// The options of one line; each must be used by somebody.
pub(super) struct Options {
    left: Vec<(String, String)>,
}

impl Options {
    pub fn of(line: &Line) -> Self {
        Self { left: line.options.clone() }
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        let at = self.left.iter().position(|(have, _)| have == name)?;
        Some(self.left.remove(at).1)
    }

    pub fn arc(&mut self, name: &str) -> Option<Arc<str>> {
        self.text(name).map(Into::into)
    }

    pub fn length(&mut self, name: &str) -> TestResult<Option<Millis>> {
        self.text(name).map(|text| length(&text)).transpose()
    }

    /// A time counted from the start of the scenario.
    pub fn time(&mut self, name: &str) -> TestResult<Option<Timestamp>> {
        Ok(self.length(name)?.map(|since| START + since))
    }

    pub fn number<T: std::str::FromStr>(&mut self, name: &str) -> TestResult<Option<T>> {
        let parse = |text: String| text.parse().map_err(|_| format!("{name}={text} is no such number"));
        self.text(name).map(parse).transpose()
    }

    pub fn list(&mut self, name: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        text.split(',').filter(|part| !part.is_empty()).map(str::to_string).collect()
    }

    pub fn tags(&mut self, name: &str) -> Tags {
        self.list(name).iter().map(String::as_str).collect()
    }

    pub fn facets(&mut self) -> TestResult<Vec<Facet>> {
        let pair = |text: &String| text.split_once(':').map(|(name, value)| Facet::new(name, value));
        let wrong = || "write facets=name:value,name:value".to_string();
        self.list("facets").iter().map(|text| pair(text).ok_or_else(wrong)).collect()
    }

    pub fn bytes(&mut self, name: &str) -> TestResult<Payload> {
        if let Some(count) = self.number::<usize>("bytes")? {
            return Ok(Payload::from(vec![b'x'; count]));
        }
        Ok(Payload::from(self.text(name).unwrap_or_default().as_str()))
    }

    pub fn namespace(&mut self, usual: &Namespace) -> TestResult<Namespace> {
        match self.text("ns") {
            Some(name) => Namespace::new(&name).map_err(|refusal| refusal.to_string()),
            None => Ok(usual.clone()),
        }
    }

    /// One of a few words.
    fn one_of<T: Clone>(&mut self, name: &str, words: &[(&str, T)], into: &mut T) -> TestResult<()> {
        let Some(text) = self.text(name) else { return Ok(()) };
        let found = words.iter().find(|(word, _)| *word == text);
        let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        *into =
            found.map(|(_, value)| value.clone()).ok_or_else(|| format!("{name}={text}: use one of {}", known()))?;
        Ok(())
    }

    pub fn finish(self) -> TestResult<()> {
        match self.left.first() {
            Some((name, _)) => Err(format!("nobody knows the option {name}=")),
            None => Ok(()),
        }
    }

    /// Everything a job can be submitted with.
    pub fn new_job(&mut self, names: &mut Names, id: windlass_core::JobId, now: Timestamp) -> TestResult<NewJob> {
        let mut job = NewJob::new(id);
        job.priority = self.number("priority")?.unwrap_or(job.priority);
        job.tags = self.tags("tags");
        job.payload = self.bytes("payload")?;
        job.run_at = match self.length("delay")? {
            Some(delay) => Some(now + delay),
            None => self.time("run-at")?,
        };
        job.parents = self.list("parents").iter().map(|name| names.job(name)).collect();
        let named = self.text("definition");
        job.newest = named.as_ref().is_some_and(|text| text.ends_with("@newest"));
        job.definition = named.map(|text| definition(&text.replace("@newest", "@0"))).transpose()?;
        job.facets = self.facets()?;
        job.concurrency = self.text("key").map(|text| concurrency(&text)).transpose()?;
        job.unique = self.unique()?;
        job.owner = self.arc("owner");
        job.extra = self.arc("extra");
        job.stage = self.stage()?;
        self.policy(&mut job.policy)?;
        Ok(job)
    }

    /// `staged=plan`, `wait=approval`, `wait=event:go`, `wait=time`; `wait-for=10s`, `then=complete`.
    fn stage(&mut self) -> TestResult<Stage> {
        let mut stage = Stage { plan: self.text("staged").is_some(), ..Stage::default() };
        if let Some(wait) = self.text("wait") {
            let event = wait.strip_prefix("event:").map(Into::into);
            stage.wait = Some(Wait {
                approval: wait == "approval",
                event,
                timeout: self.length("wait-for")?,
                then_complete: self.text("then").is_some(),
            });
        }
        Ok(stage)
    }

    pub fn unique(&mut self) -> TestResult<Option<UniqueKey>> {
        let Some(key) = self.arc("unique") else { return Ok(None) };
        let until = self.length("unique-for")?.map_or(UniqueUntil::Final, UniqueUntil::After);
        Ok(Some(UniqueKey { key, body_hash: self.arc("body").unwrap_or_default(), until }))
    }

    pub fn policy(&mut self, policy: &mut JobPolicy) -> TestResult<()> {
        policy.lease.length = match self.text("lease").as_deref() {
            None | Some("asked") => LeaseLength::Asked,
            Some("deadline") => LeaseLength::FromDeadline,
            Some(fixed) => LeaseLength::Fixed(length(fixed)?),
        };
        let ends = [("renewable", LeaseEnd::Renewable), ("fixed", LeaseEnd::Fixed), ("worker", LeaseEnd::WithWorker)];
        self.one_of("ends", &ends, &mut policy.lease.ends)?;
        policy.hard_deadline = self.length("deadline")?;
        policy.total_deadline = self.length("overall")?;
        policy.pending_deadline = self.length("pending")?;
        self.one_of(
            "start",
            &[("implied", StartPolicy::Implied), ("required", StartPolicy::Required)],
            &mut policy.start,
        )?;
        self.one_of("cancel", &[("revoke", CancelPolicy::Revoke), ("drain", CancelPolicy::Drain)], &mut policy.cancel)?;
        let parents = [
            ("skip", ParentPolicy::Skip),
            ("run", ParentPolicy::RunAnyway),
            ("failure", ParentPolicy::OnFailure),
            ("cancel", ParentPolicy::CancelRun),
        ];
        self.one_of("on-parent", &parents, &mut policy.parents)?;
        let failure = [("alone", FailurePolicy::Alone), ("cancels-pending", FailurePolicy::CancelsPending)];
        self.one_of("on-failure", &failure, &mut policy.failure)?;
        policy.retention = self.length("retention")?;
        self.retry(policy)
    }

    fn retry(&mut self, policy: &mut JobPolicy) -> TestResult<()> {
        let retry = &mut policy.retry;
        retry.attempts = self.number("attempts")?.unwrap_or(retry.attempts);
        retry.deadline_retries = self.number("timeouts")?;
        retry.losses_max = self.number("losses")?.unwrap_or(retry.losses_max);
        if let Some(on) = self.text("retry-on") {
            let on: Vec<&str> = on.split(',').collect();
            retry.on_failure = on.contains(&"failure");
            retry.on_lost = on.contains(&"lost");
            retry.on_deadline = on.contains(&"deadline");
        }
        if let Some(text) = self.text("backoff") {
            retry.backoff = backoff(&text)?;
        }
        self.one_of("form", &[("same", RetryForm::SameJob), ("new", RetryForm::NewJob)], &mut retry.form)
    }

    pub fn unregister(&mut self, name: &str) -> TestResult<Option<Unregister>> {
        let words = [
            ("requeue", Some(Unregister::Requeue)),
            ("fail", Some(Unregister::Fail)),
            ("offline", Some(Unregister::Offline)),
        ];
        let mut how = None;
        self.one_of(name, &words, &mut how)?;
        Ok(how)
    }

    pub fn worker_policy(&mut self) -> TestResult<WorkerPolicy> {
        let mut policy = WorkerPolicy::default();
        self.one_of("alive", &[("heartbeat", AliveBy::Heartbeat), ("any", AliveBy::AnyCall)], &mut policy.alive_by)?;
        let may_claim = [("always", MayClaim::Always), ("online", MayClaim::OnlineOnly)];
        self.one_of("may-claim", &may_claim, &mut policy.may_claim)?;
        policy.unregister = self.unregister("unregister")?.unwrap_or_default();
        let from = [("registration", OnlineFrom::Registration), ("first-sign", OnlineFrom::FirstSign)];
        self.one_of("online-from", &from, &mut policy.online_from)?;
        policy.unreachable_after = self.length("unreachable")?;
        policy.offline_after = self.length("offline")?.unwrap_or(policy.offline_after);
        match self.text("delete").as_deref() {
            Some("never") => policy.delete_after = None,
            Some(after) => policy.delete_after = Some(length(after)?),
            None => {}
        }
        policy.kept_after = self.length("kept")?;
        Ok(policy)
    }
}

fn definition(text: &str) -> TestResult<DefinitionRef> {
    let parsed = text.split_once('@').and_then(|(name, version)| Some((name, version.parse().ok()?)));
    let (name, version) = parsed.ok_or("write definition=name@version or name@newest")?;
    Ok(DefinitionRef { name: name.into(), version })
}

fn concurrency(text: &str) -> TestResult<ConcurrencyKey> {
    let parsed = text.split_once('/').and_then(|(key, limit)| Some((key, limit.parse().ok()?)));
    let (key, limit) = parsed.ok_or("write key=name/limit")?;
    Ok(ConcurrencyKey { key: key.into(), limit })
}

/// `none`, `5s`, or `exp:1s:60s:50` for base, cap and percent of jitter.
fn backoff(text: &str) -> TestResult<Backoff> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        ["none"] => Ok(Backoff::None),
        [fixed] => Ok(Backoff::Fixed(length(fixed)?)),
        ["exp", base, cap, jitter] => {
            let jitter_percent = jitter.parse().map_err(|_| format!("{jitter} is no percentage"))?;
            Ok(Backoff::Exponential { base: length(base)?, cap: length(cap)?, jitter_percent })
        }
        _ => Err("write backoff=none, backoff=5s or backoff=exp:1s:60s:50".into()),
    }
}
