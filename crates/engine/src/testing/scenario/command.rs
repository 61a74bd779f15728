//! From a line to the command it stands for.

use super::{
    super::TestResult,
    line::Line,
    names::{Names, token_hash},
    options::Options,
};
use std::sync::Arc;
use windlass_core::{
    Command, JobKey, Namespace, Payload, RecordKey, Timestamp, WorkerId,
    commands::{
        advance::{Advance, Move},
        all::All,
        append_log::AppendLog,
        cancel::Cancel,
        cancel_run::CancelRun,
        claim::{Claim, Offer, Unknown},
        complete::Complete,
        definitions::{DeleteDefinition, PutDefinition},
        doubt::Doubt,
        due::Due,
        fail::Fail,
        fire::{DeleteSchedule, Fire, PutSchedule, RunSchedule},
        grace::{Excuse, Grace},
        holder::{Address, Holder},
        holds::Holds,
        link::Link,
        look::Look,
        principals::{ChangePrincipal, CreatePrincipal, DeletePrincipal, DisablePrincipal},
        progress::ReportProgress,
        records::{DeleteRecord, Expect, PutRecord},
        release::{PassOn, Release},
        remind::Remind,
        renew::Renew,
        retry::Retry,
        signal::{Judge, Signal},
        start::Start,
        stop_work::StopWork,
        submit::Submit,
        submit_run::{RunNode, RunPlan, SubmitRun},
        tokens::{IssueToken, RevokeToken, UseToken},
        workers::{DrainWorker, Heartbeat, RegisterWorker, UnregisterWorker},
    },
    policy::CancelPolicy,
    principal::Role,
    schedule::{Rule, Schedule, Template},
    stage::{Hold, OF_RUN},
};

pub(super) struct Builder<'a> {
    pub names: &'a mut Names,
    pub namespace: &'a Namespace,
    pub now: Timestamp,
}

impl Builder<'_> {
    pub fn command(&mut self, line: &Line) -> TestResult<Command> {
        let mut options = Options::of(line);
        let namespace = options.namespace(self.namespace)?;
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        let command = match words[..] {
            ["submit", job] => {
                let id = self.names.job(job);
                let job = options.new_job(self.names, id, self.now)?;
                Submit { namespace, job }.into()
            }
            ["submit-run", run] => self.submit_run(&namespace, run, &mut options, &line.block)?.into(),
            ["all"] => {
                All { commands: line.block.iter().map(|line| self.command(line)).collect::<TestResult<_>>()? }.into()
            }
            [worker, "claims"] => self.claim(&namespace, worker, &mut options)?.into(),
            ["cancel", job] => {
                let by = options.arc("by").unwrap_or_else(|| "admin".into());
                let mode = match options.text("mode").as_deref() {
                    None => None,
                    Some("drain") => Some(CancelPolicy::Drain),
                    Some("revoke") => Some(CancelPolicy::Revoke),
                    Some(other) => return Err(format!("{other} is no way to cancel")),
                };
                let message = options.arc("message").unwrap_or_default();
                Cancel { namespace, job: self.names.job(job), by, mode, message }.into()
            }
            ["cancel-run", run] => {
                let by = options.arc("by").unwrap_or_else(|| "admin".into());
                CancelRun { namespace, run: self.names.run(run), by }.into()
            }
            ["stop-work", run] => {
                let by = options.arc("by").unwrap_or_else(|| "admin".into());
                StopWork { namespace, run: self.names.run(run), by }.into()
            }
            ["remind", run, step] => {
                let job = Some(self.names.job(&format!("{run}.{step}")));
                Remind { namespace, run: self.names.run(run), job }.into()
            }
            ["put-of-run", run, name] => {
                let key = RecordKey { namespace, kind: OF_RUN.into(), key: name.into() };
                let (expect, parent) = (expect(&mut options)?, Some(self.names.run(run).to_string().into()));
                PutRecord { key, expect, parent, value: "{}".into(), facets: Vec::new(), expires_at: None }.into()
            }
            ["advance", run, step, how] => self.advance(&namespace, run, step, how, &mut options)?.into(),
            ["expand", run, step] => {
                let nodes = self.nodes(run, &line.block)?;
                let job = self.names.job(&format!("{run}.{step}"));
                let moves = vec![(job, Hold::Plan, Move::Expand { nodes, payload: Payload::from("{}") })];
                Advance { namespace, run: self.names.run(run), moves, undo: None, strict: false }.into()
            }
            ["undo", run] => {
                let undo = Some(self.nodes(run, &line.block)?);
                Advance { namespace, run: self.names.run(run), moves: Vec::new(), undo, strict: false }.into()
            }
            ["signal", run, event] => {
                let payload = options.bytes("payload")?;
                Signal { namespace, run: self.names.run(run), event: event.into(), payload }.into()
            }
            [verb @ ("approve" | "reject"), run, step] => {
                let approved = (verb == "approve").then(|| Payload::from("true"));
                Judge { namespace, run: self.names.run(run), step: step.into(), approved, why: "no".into() }.into()
            }
            ["retry", job, "as", new] => {
                let again = options.text("again").is_some();
                Retry { namespace, job: self.names.job(job), id: self.names.job(new), again }.into()
            }
            ["look", job] => Look { namespace, job: self.names.job(job), payload: true }.into(),
            ["due", job] => Command::Due(Due::Job(JobKey::new(&namespace, self.names.job(job)))),
            ["grace", job] => Grace { job: JobKey::new(&namespace, self.names.job(job)) }.into(),
            [
                verb @ ("start" | "renew" | "progress" | "log" | "complete" | "fail" | "release" | "holds" | "pass"),
                ref address @ ..,
            ] => self.report(verb, &namespace, address, &mut options)?,
            ["link", worker, "to", definition] => {
                let body = options.arc("body").unwrap_or_else(|| "{}".into());
                let print = options.arc("print").unwrap_or_else(|| body.clone());
                let (retires, principal) = (options.text("retires").as_deref() != Some("no"), options.arc("as"));
                let (worker, definition) = (worker_id(worker)?, definition.into());
                Link { namespace, definition, body, print, retires, worker, principal }.into()
            }
            [
                verb @ ("register" | "heartbeat" | "drain" | "undrain" | "unregister" | "doubt" | "trust" | "excuse"),
                worker,
            ] => worker_command(verb, namespace, worker, &mut options)?,
            _ => self.record_command(&words, namespace, &mut options)?,
        };
        options.finish()?;
        Ok(command)
    }

    fn submit_run(
        &mut self,
        namespace: &Namespace,
        run: &str,
        options: &mut Options,
        block: &[Line],
    ) -> TestResult<SubmitRun> {
        Ok(SubmitRun {
            namespace: namespace.clone(),
            id: self.names.run(run),
            owner: options.arc("owner"),
            definition: None,
            nodes: self.nodes(run, block)?,
            extra: options.arc("extra"),
            plan: RunPlan { compensates: options.text("compensates").is_some(), ..RunPlan::default() },
        })
    }

    /// What a planner decided for a step.
    fn advance(
        &mut self,
        namespace: &Namespace,
        run: &str,
        step: &str,
        how: &str,
        options: &mut Options,
    ) -> TestResult<Advance> {
        let job = self.names.job(&format!("{run}.{step}"));
        let payload = options.bytes("payload")?;
        let wanted = match how {
            "go" => Move::Go { payload },
            "skip" => Move::Skip { why: "its condition is false".into() },
            "fail" => Move::Fail { why: "broken".into() },
            "complete" => Move::Complete { result: payload },
            other => return Err(format!("a step does not {other}; it can go, skip, fail, complete")),
        };
        let hold = if options.text("gathers").is_some() { Hold::Members } else { Hold::Plan };
        let (moves, strict) = (vec![(job, hold, wanted)], options.text("strict").is_some());
        Ok(Advance { namespace: namespace.clone(), run: self.names.run(run), moves, undo: None, strict })
    }

    fn nodes(&mut self, run: &str, block: &[Line]) -> TestResult<Vec<RunNode>> {
        let mut nodes = Vec::new();
        for line in block {
            let ["node", name] = line.words.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
                return Err(format!("line {}: under submit-run stand lines like: node a needs=b", line.number));
            };
            let mut options = Options::of(line);
            let id = self.names.job(&format!("{run}.{name}"));
            let needs = options.list("needs").into_iter().map(Arc::from).collect();
            let job = options.new_job(self.names, id, self.now)?;
            options.finish().map_err(|why| format!("line {}: {why}", line.number))?;
            nodes.push(RunNode { name: name.into(), needs, job });
        }
        Ok(nodes)
    }

    fn claim(&mut self, namespace: &Namespace, worker: &str, options: &mut Options) -> TestResult<Claim> {
        let max = options.number("max")?.unwrap_or(1);
        let secrets = (0..max).map(|_| self.names.secret()).collect();
        let mut claim = Claim::new(namespace, worker_id(worker)?, options.tags("tags"), secrets);
        match options.text("offer").as_deref() {
            None => {}
            Some("registered") => claim.offer = Offer::Registered,
            Some(narrowed) => claim.offer = Offer::Narrowed(narrowed.split(',').collect()),
        }
        claim.lease = options.length("ttl")?;
        if options.text("unknown").as_deref() == Some("refuse") {
            claim.unknown = Unknown::Refuse;
        }
        claim.principal = options.arc("as");
        claim.request_id = options.arc("request");
        Ok(claim)
    }

    /// `L1`, `j1 by w1`, `j1 by-owner alice`, or `j1` alone.
    fn holder(&mut self, namespace: &Namespace, address: &[&str], options: &mut Options) -> TestResult<Holder> {
        let address = match *address {
            [name] => match self.names.lease(name) {
                Some(lease) => Address::Lease(lease),
                None => Address::Job(self.names.job(name)),
            },
            [job, "by", worker] => Address::Worker { job: self.names.job(job), worker: worker_id(worker)? },
            [job, "by-owner", owner] => Address::Owner { job: self.names.job(job), principal: owner.into() },
            _ => return Err("name a lease, a job, `j1 by w1` or `j1 by-owner alice`".into()),
        };
        Ok(Holder { namespace: namespace.clone(), address, principal: options.arc("as") })
    }

    fn report(
        &mut self,
        verb: &str,
        namespace: &Namespace,
        address: &[&str],
        options: &mut Options,
    ) -> TestResult<Command> {
        let holder = self.holder(namespace, address, options)?;
        Ok(match verb {
            "start" => Start { holder }.into(),
            "renew" => Renew { holder, length: options.length("ttl")? }.into(),
            "progress" => {
                let percent = options.number("percent")?.unwrap_or(0.0);
                ReportProgress { holder, percent, message: options.arc("message") }.into()
            }
            "log" => AppendLog::new(holder, options.bytes("text")?).into(),
            "complete" => Complete { holder, result: options.bytes("result")? }.into(),
            "fail" => {
                let message = options.arc("message").unwrap_or_default();
                let retryable = options.text("retryable").as_deref() != Some("no");
                Fail { holder, message, retryable, result: options.bytes("result")? }.into()
            }
            "holds" => Holds { holder }.into(),
            "pass" => {
                let delay = options.length("delay")?.ok_or("pass needs delay=")?;
                PassOn { holder, delay, why: options.arc("message").unwrap_or_default() }.into()
            }
            _ => Release { holder }.into(),
        })
    }

    fn record_command(&mut self, words: &[&str], namespace: Namespace, options: &mut Options) -> TestResult<Command> {
        Ok(match *words {
            ["define", name] => {
                PutDefinition { namespace, name: name.into(), body: options.arc("body").unwrap_or_default() }.into()
            }
            ["undefine", name] => DeleteDefinition { namespace, name: name.into() }.into(),
            ["put-schedule", name] => self.schedule(namespace, name, options)?.into(),
            ["delete-schedule", name] => DeleteSchedule { namespace, name: name.into() }.into(),
            ["run-schedule", name, "as", job] => {
                let (id, owner, unique) = (self.names.job(job), options.arc("owner"), options.unique()?);
                RunSchedule { namespace, name: name.into(), id, owner, unique }.into()
            }
            ["fire", name] => {
                let expected_at = options.time("expected")?.ok_or("fire needs expected=")?;
                let next_at = options.time("next")?.ok_or("fire needs next=")?;
                let wall = options.time("wall")?.unwrap_or(self.now);
                Fire { namespace, name: name.into(), expected_at, next_at, wall }.into()
            }
            ["principal", name] => {
                let role = role(options.text("role").as_deref())?;
                let namespaces = options.list("namespaces").iter().map(|name| Namespace::new(name)).collect();
                let namespaces: Result<Vec<Namespace>, _> = namespaces;
                let namespaces = namespaces.map_err(|refusal| refusal.to_string())?;
                CreatePrincipal { namespace, name: name.into(), role, namespaces }.into()
            }
            ["change", name] => {
                let role = Some(role(options.text("role").as_deref())?);
                ChangePrincipal { namespace, name: name.into(), role, namespaces: None }.into()
            }
            ["delete-principal", name] => DeletePrincipal { namespace, name: name.into() }.into(),
            ["disable", name] => DisablePrincipal { namespace, name: name.into() }.into(),
            ["token", name, "for", principal] => {
                let hash = options.text("hash").unwrap_or_else(|| token_hash(name)).into();
                let expires_at = options.time("expires")?;
                let made_by = options.text("made-by").map(|maker| token_hash(&maker).into());
                let (principal, shown) = (principal.into(), name.into());
                IssueToken { namespace, principal, hash, shown, expires_at, made_by, session: false }.into()
            }
            ["revoke", name] => RevokeToken { namespace, hash: token_hash(name).into() }.into(),
            ["use", name] => UseToken { namespace, hash: token_hash(name).into() }.into(),
            ["put", name] => {
                let key = record_key(&namespace, name)?;
                let (expect, parent) = (expect(options)?, options.arc("parent"));
                let value = options.arc("value").unwrap_or_else(|| "{}".into());
                let (facets, expires_at) = (options.facets()?, options.time("expires")?);
                PutRecord { key, expect, parent, value, facets, expires_at }.into()
            }
            ["delete", name] => DeleteRecord { key: record_key(&namespace, name)?, expect: expect(options)? }.into(),
            _ => return Err(format!("nobody knows what {:?} means", words.join(" "))),
        })
    }

    fn schedule(&mut self, namespace: Namespace, name: &str, options: &mut Options) -> TestResult<PutSchedule> {
        let rule = match (options.length("every")?, options.arc("calendar")) {
            (Some(every), None) => Rule::Every(every),
            (None, Some(calendar)) => Rule::Calendar(calendar),
            _ => return Err("a schedule needs every= or calendar=".into()),
        };
        let next_at = options.time("first")?.unwrap_or(self.now);
        let mut template = Template { priority: options.number("priority")?.unwrap_or(100), ..Template::default() };
        template.tags = options.tags("tags");
        template.payload = options.arc("payload").unwrap_or_default();
        template.extra = options.arc("extra");
        options.policy(&mut template.policy)?;
        Ok(PutSchedule { namespace, schedule: Schedule::new(name, rule, next_at, template) })
    }
}

fn worker_command(verb: &str, namespace: Namespace, worker: &str, options: &mut Options) -> TestResult<Command> {
    let worker = worker_id(worker)?;
    Ok(match verb {
        "register" => RegisterWorker {
            namespace,
            worker,
            tags: options.tags("tags"),
            slots: options.number("slots")?.unwrap_or(0),
            owner: options.arc("owner"),
            policy: options.worker_policy()?,
            extra: options.arc("extra"),
        }
        .into(),
        "heartbeat" => Heartbeat { namespace, worker, principal: None }.into(),
        "drain" => DrainWorker { namespace, worker, draining: true, principal: None }.into(),
        "doubt" => {
            let silence = Some(options.length("for")?.ok_or("doubt needs for=")?);
            Doubt { namespace, worker, silence, principal: options.arc("as") }.into()
        }
        "trust" => Doubt { namespace, worker, silence: None, principal: options.arc("as") }.into(),
        "excuse" => Excuse { namespace, worker }.into(),
        "undrain" => DrainWorker { namespace, worker, draining: false, principal: None }.into(),
        _ => {
            let (how, only_offline) = (options.unregister("how")?, options.text("only").as_deref() == Some("offline"));
            UnregisterWorker { namespace, worker, how, only_offline, principal: None }.into()
        }
    })
}

fn worker_id(name: &str) -> TestResult<WorkerId> {
    WorkerId::new(name).map_err(|refusal| refusal.to_string())
}

fn role(text: Option<&str>) -> TestResult<Role> {
    match text {
        Some("viewer") => Ok(Role::Viewer),
        None | Some("editor") => Ok(Role::Editor),
        Some("admin") => Ok(Role::Admin),
        Some("worker") => Ok(Role::Worker),
        Some(other) => Err(format!("there is no role {other}")),
    }
}

pub(super) fn record_key(namespace: &Namespace, text: &str) -> TestResult<RecordKey> {
    let (kind, key) = text.split_once('/').ok_or_else(|| format!("write kind/key, not {text}"))?;
    Ok(RecordKey { namespace: namespace.clone(), kind: kind.into(), key: key.into() })
}

fn expect(options: &mut Options) -> TestResult<Expect> {
    match options.text("expect").as_deref() {
        None | Some("anything") => Ok(Expect::Anything),
        Some("nothing") => Ok(Expect::Nothing),
        Some(version) => version.parse().map(Expect::Version).map_err(|_| format!("expect={version} is no version")),
    }
}
